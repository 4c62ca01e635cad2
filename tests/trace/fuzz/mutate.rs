//! Changes to JSON text that know its structure, or wilfully do not.

use std::ops::Range;

use crate::support::seeded::Seeded;

/// No mutant is larger.
const LARGEST: usize = 60_000;

const KEYS: [&str; 34] = [
    "ph",
    "cat",
    "name",
    "pid",
    "tid",
    "ts",
    "dur",
    "id",
    "args",
    "bp",
    "s",
    "correlation",
    "External id",
    "external id",
    "device",
    "inDevice",
    "stream",
    "Sequence number",
    "Fwd thread id",
    "Ev Idx",
    "Profiler Event Index",
    "Input Dims",
    "Input dims",
    "finished",
    "traceEvents",
    "baseTimeNanoseconds",
    "distributedInfo",
    "deviceProperties",
    "schemaVersion",
    "graph node id",
    "Collective name",
    "labels",
    "sort_index",
    "",
];

const STRINGS: [&str; 48] = [
    "X",
    "B",
    "E",
    "M",
    "s",
    "f",
    "i",
    "",
    "XX",
    "kernel",
    "gpu_memcpy",
    "gpu_memset",
    "cpu_op",
    "user_annotation",
    "gpu_user_annotation",
    "cuda_runtime",
    "cuda_driver",
    "ac2g",
    "fwdbwd",
    "python_function",
    "Kernel",
    "Operator",
    "ProfilerStep#0",
    "ProfilerStep#18446744073709551615",
    "ProfilerStep#-1",
    "Optimizer.step#AdamW.step",
    "Optimizer.zero_grad#SGD.zero_grad",
    "aten::mm",
    "autograd::engine::evaluate_function: MmBackward0",
    "CheckpointFunctionBackward",
    "CheckpointFunction",
    "torch::autograd::AccumulateGrad",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "Memcpy HtoD (Pageable -> Device)",
    "Memcpy PtoP (Device -> Device)",
    "cudaLaunchKernel",
    "cudaGraphLaunch",
    "process_name",
    "thread_name",
    "process_labels",
    "false",
    "12",
    " 7 ",
    "1.5",
    "é€😀",
    r"\ud83d\ude00",
    r"\u0058",
    r"q\q\\",
];

const NUMBERS: [&str; 40] = [
    "0",
    "-0",
    "1",
    "-1",
    "2",
    "7",
    "10",
    "100",
    "0.001",
    "0.0005",
    "0.0015",
    "-0.5",
    "1e3",
    "1E+2",
    "2e-1",
    "5.0",
    "255",
    "4096",
    "2147483647",
    "2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
    "4611686018427387.903",
    "4611686018427387.904",
    "-4611686018427387.904",
    "1712195495505582.988",
    "86400000000",
    "604800000000.001",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999",
    "1e400",
    "-1e400",
    "1e-400",
    "0e99999999999999999999",
];

const HOSTILE: [&str; 40] = [
    "\"",
    "\\",
    "\\\"",
    "\\\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "}, {\"ph\"",
    "}, {\"ph\": \"X\"",
    "},{\"ph\":",
    "}]}, {\"ph\":\"X\",",
    "\\u",
    "\\ud800",
    "\\u0022",
    "\\x",
    "\0",
    "\n",
    "\r\n",
    "\t",
    "\u{1}",
    "\u{feff}",
    "\u{2028}",
    "NaN",
    "-nan",
    "inf",
    "-Infinity",
    "N/A",
    "nul",
    "true",
    "01",
    "1.",
    "-",
    "1e",
    ",,",
    "/*",
    "\"traceEvents\":[",
    "]}",
];

fn pick<'a, T: ?Sized>(random: &mut Seeded, of: &[&'a T]) -> &'a T {
    of[random.index(of.len())]
}

/// A number below `mostly`, and once in `often` times below `rarely`.
fn up_to(random: &mut Seeded, often: u64, rarely: usize, mostly: usize) -> usize {
    let most = if random.one_in(often) { rarely } else { mostly };
    random.index(most)
}

/// Where a value stands.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// Element of an array.
    Element,
    /// Value of a member of an object.
    Member,
    /// Key of a member.
    Key,
}

/// A value in a text, with its key when it has one.
#[derive(Clone)]
struct Part {
    role: Role,
    value: Range<usize>,
    /// From the key on.
    whole: Range<usize>,
}

/// The end of the string, number, word or mark that starts at `at`.
fn token_end(text: &[u8], at: usize) -> usize {
    let rest = &text[at..];
    let length = match rest[0] {
        b'"' => {
            let mut end = 1;
            while end < rest.len() && rest[end] != b'"' {
                end += 1 + usize::from(rest[end] == b'\\');
            }
            (end + 1).min(rest.len())
        }
        mark if b"{}[],:".contains(&mark) => 1,
        blank if blank.is_ascii_whitespace() => blanks(rest, true),
        _ => blanks(rest, false).max(1),
    };
    at + length
}

/// How long the white space is, or what is neither white space nor a mark.
fn blanks(text: &[u8], white: bool) -> usize {
    let inside = |byte: &u8| {
        let blank = byte.is_ascii_whitespace();
        if white {
            blank
        } else {
            !blank && !b"{}[],:\"".contains(byte)
        }
    };
    text.iter().take_while(|byte| inside(byte)).count()
}

fn tokens(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let end = token_end(text, at);
        found.push(at..end);
        at = end;
    }
    found
}

/// The values of a text, as far as it is JSON.
fn parts(text: &[u8]) -> Vec<Part> {
    let mut found: Vec<Part> = Vec::new();
    // Brackets that are open, with the number of their part.
    let mut open: Vec<(u8, Option<usize>)> = Vec::new();
    let mut key: Option<usize> = None;
    for token in tokens(text) {
        let first = text[token.start];
        if first.is_ascii_whitespace() || first == b',' {
            continue;
        }
        if first == b':' {
            key = found.last().map(|part| part.value.start);
            if let Some(part) = found.last_mut() {
                part.role = Role::Key;
            }
            continue;
        }
        if matches!(first, b'}' | b']') {
            if let Some((_, Some(number))) = open.pop() {
                let part: &mut Part = &mut found[number];
                part.value.end = token.end;
                part.whole.end = token.end;
            }
            continue;
        }
        let part = (!open.is_empty()).then(|| {
            let start = key.take();
            let role = start.map_or(Role::Element, |_| Role::Member);
            found.push(Part {
                role,
                whole: start.unwrap_or(token.start)..token.end,
                value: token,
            });
            found.len() - 1
        });
        if matches!(first, b'{' | b'[') {
            open.push((first, part));
        }
    }
    found
}

fn replace(text: &mut Vec<u8>, range: Range<usize>, with: &[u8]) {
    text.splice(range, with.iter().copied());
}

/// A mutant of one of `seeds`; with `valid`, JSON stays JSON.
pub(super) fn trace(random: &mut Seeded, seeds: &[Vec<u8>], valid: bool) -> Vec<u8> {
    let mut text = seeds[random.index(seeds.len())].clone();
    for _ in 0..=random.below(5) {
        if text.is_empty() {
            break;
        }
        let other = &seeds[random.index(seeds.len())];
        if valid || random.one_in(2) {
            polite(random, &mut text, other);
        } else {
            rude(random, &mut text, other);
        }
        text.truncate(LARGEST);
    }
    text
}

/// One change that leaves JSON as JSON.
fn polite(random: &mut Seeded, text: &mut Vec<u8>, other: &[u8]) {
    let all = parts(text);
    if all.is_empty() {
        return;
    }
    let part = all[random.index(all.len())].clone();
    let value = text[part.value.clone()].to_vec();
    let whole = text[part.whole.clone()].to_vec();
    let is_number = value[0].is_ascii_digit() || value[0] == b'-';
    let objects = |role: Role| all.iter().filter(move |part| part.role == role);
    match random.below(14) {
        0..=2 if part.role == Role::Member => {
            let new = if is_number || random.one_in(4) {
                number_like(random, &value)
            } else if value[0] == b'"' {
                format!("\"{}\"", pick(random, &STRINGS)).into_bytes()
            } else {
                value
            };
            replace(text, part.value, &new);
        }
        // An event again, often: the fast reader waits for several of one shape.
        3 | 4 => {
            let events: Vec<&Part> = objects(Role::Element)
                .filter(|part| text[part.value.start] == b'{')
                .collect();
            if events.is_empty() {
                return;
            }
            let event = events[random.index(events.len())];
            let from = events[random.index(events.len())].value.clone();
            let mut copies = Vec::new();
            for _ in 0..=up_to(random, 4, 40, 3) {
                let mut copy = text[from.clone()].to_vec();
                if random.one_in(2) {
                    let inner = parts(&copy);
                    let numbers: Vec<&Part> = inner
                        .iter()
                        .filter(|part| copy[part.value.start].is_ascii_digit())
                        .collect();
                    if !numbers.is_empty() {
                        let at = numbers[random.index(numbers.len())].value.clone();
                        let new = number_like(random, &copy[at.clone()]);
                        replace(&mut copy, at, &new);
                    }
                }
                copies.extend_from_slice(&copy);
                copies.extend_from_slice(pick(random, &[",", ", ", ",\n  "]).as_bytes());
            }
            let at = event.value.start;
            replace(text, at..at, &copies);
        }
        // The member or element again.
        5 if part.role != Role::Key => {
            let again = [&whole[..], b","].concat();
            replace(text, part.whole.start..part.whole.start, &again);
        }
        // Without it.
        6 if part.role != Role::Key => {
            let before = text[..part.whole.start].trim_ascii_end().len();
            let behind = text.len() - text[part.whole.end..].trim_ascii_start().len();
            let range = if text[..before].ends_with(b",") {
                before - 1..part.whole.end
            } else if text.get(behind) == Some(&b',') {
                part.whole.start..behind + 1
            } else {
                part.whole
            };
            replace(text, range, b"");
        }
        // Two of a kind change places.
        7 | 8 => {
            let alike: Vec<&Part> = objects(part.role)
                .filter(|other| {
                    let apart = other.value.start >= part.value.end;
                    apart && text[other.value.start] == value[0]
                })
                .collect();
            if alike.is_empty() {
                return;
            }
            let second = alike[random.index(alike.len())].value.clone();
            let theirs = text[second.clone()].to_vec();
            replace(text, second, &value);
            replace(text, part.value, &theirs);
        }
        // A value from another file.
        9 => {
            let theirs = parts(other);
            let alike: Vec<&Part> = theirs
                .iter()
                .filter(|theirs| theirs.role == part.role && other[theirs.value.start] == value[0])
                .collect();
            if !alike.is_empty() {
                let from = alike[random.index(alike.len())].value.clone();
                replace(text, part.value, &other[from]);
            }
        }
        10 if part.role == Role::Key => {
            let key = format!("\"{}\"", pick(random, &KEYS));
            replace(text, part.value, key.as_bytes());
        }
        11 if part.role != Role::Key => {
            let times = 1 + up_to(random, 5, 300, 4);
            let (open, close) = pick(random, &[&("[", "]"), &("{\"a\":", "}")]);
            let (open, close) = (open.repeat(times), close.repeat(times));
            let deep = [open.as_bytes(), &value, close.as_bytes()].concat();
            replace(text, part.value, &deep);
        }
        // An escape that means the same, or nearly.
        12 if value.len() > 2 && value[0] == b'"' => {
            let at = part.value.start + 1 + random.index(value.len() - 2);
            let byte = text[at];
            if byte.is_ascii_alphanumeric() && text[at - 1] != b'\\' && !value.contains(&b'\\') {
                replace(text, at..at + 1, format!("\\u{byte:04x}").as_bytes());
            }
        }
        _ => {
            let blank = pick(
                random,
                &[" ", "\n", "\t\r\n ", "                              "],
            );
            let at = if random.one_in(2) {
                part.value.start
            } else {
                part.value.end
            };
            replace(text, at..at, blank.as_bytes());
        }
    }
}

/// One change that cares for nothing.
fn rude(random: &mut Seeded, text: &mut Vec<u8>, other: &[u8]) {
    let marks = tokens(text);
    let number = random.index(marks.len());
    let token = marks[number].clone();
    let span = number + 1 + up_to(random, 3, 20, 3);
    let span = token.start..marks[span.min(marks.len()) - 1].end;
    match random.below(12) {
        0 => {
            let second = marks[random.index(marks.len())].clone();
            let (first, second) = if token.start < second.start {
                (token, second)
            } else {
                (second, token)
            };
            if first != second {
                let (mine, theirs) = (text[first.clone()].to_vec(), text[second.clone()].to_vec());
                replace(text, second, &mine);
                replace(text, first, &theirs);
            }
        }
        1 => {
            let again = text[span.clone()].to_vec();
            replace(text, span.end..span.end, &again);
        }
        2 => replace(text, span, b""),
        3 => {
            let theirs = tokens(other);
            if !theirs.is_empty() {
                let from = random.index(theirs.len());
                let to = (from + 1 + random.index(30)).min(theirs.len());
                let piece = &other[theirs[from].start..theirs[to - 1].end];
                replace(text, span, piece);
            }
        }
        4 => replace(text, token, pick(random, &HOSTILE).as_bytes()),
        5 | 6 => {
            let at = random.index(text.len() + 1);
            replace(text, at..at, pick(random, &HOSTILE).as_bytes());
        }
        7 => text.truncate(random.index(text.len() + 1)),
        8 => {
            let between = pick(random, &["", ",", "\n", "\u{feff}"]);
            text.extend_from_slice(between.as_bytes());
            text.extend_from_slice(other);
        }
        9 => {
            let at = random.index(text.len());
            text[at] = random.next().to_le_bytes()[0];
        }
        10 => {
            let telling = b"{}[],:\"\\ 0-.eEtfn\0\n\xff\xc3";
            let at = random.index(text.len());
            text[at] = telling[random.index(telling.len())];
        }
        _ => {
            let times = 1 + up_to(random, 8, 3_000, 5);
            let open = pick(random, &["[", "{\"a\":", "]", "}", "[{", "\"", ",", "\\"]);
            replace(
                text,
                token.start..token.start,
                open.repeat(times).as_bytes(),
            );
        }
    }
}

/// A number in the place of `old`, near to it or extreme.
fn number_like(random: &mut Seeded, old: &[u8]) -> Vec<u8> {
    let near = std::str::from_utf8(old)
        .ok()
        .and_then(|text| text.parse::<i64>().ok());
    match (random.below(4), near) {
        (0 | 1, Some(near)) => {
            let by = i64::try_from(random.below(7)).expect("small") - 3;
            near.saturating_add(by).to_string().into_bytes()
        }
        (2, _) => number(random),
        _ => pick(random, &NUMBERS).as_bytes().to_vec(),
    }
}

fn digits(random: &mut Seeded, most: usize) -> String {
    let kind = random.below(4);
    let length = random.index(most + 1);
    let digit = |random: &mut Seeded| match kind {
        0 => '0',
        1 => '9',
        _ => char::from(b'0' + random.next().to_le_bytes()[0] % 10),
    };
    (0..length).map(|_| digit(random)).collect()
}

/// The text of a number, mostly as JSON wants it.
pub(super) fn number(random: &mut Seeded) -> Vec<u8> {
    let mut text = String::new();
    if random.one_in(3) {
        text.push('-');
    }
    if random.one_in(3) {
        text.push_str(pick(random, &NUMBERS).trim_start_matches('-'));
    } else {
        let whole = digits(random, 24);
        let whole = whole.trim_start_matches('0');
        text.push_str(if whole.is_empty() { "0" } else { whole });
    }
    if random.one_in(2) && !text.contains(['.', 'e', 'E']) {
        text.push('.');
        text.push_str(&digits(random, 9));
        if random.one_in(2) {
            text.push('5');
            let zeros = up_to(random, 8, 400, 12);
            text.push_str(&"0".repeat(zeros));
            text.push_str(pick(random, &["", "0", "1"]));
        } else {
            text.push_str(pick(random, &["0", "1", "4999", "5001", "9"]));
        }
    }
    if random.one_in(4) && !text.contains(['e', 'E']) {
        text.push_str(pick(random, &["e", "E", "e+", "E-", "e-", "e0", "e-0"]));
        let most = if random.one_in(6) { 22 } else { 2 };
        text.push(char::from(b'0' + random.next().to_le_bytes()[0] % 10));
        text.push_str(&digits(random, most));
    }
    let mut bytes = text.into_bytes();
    if random.one_in(8) {
        let at = random.index(bytes.len());
        bytes[at] = b"0123456789+-.eE _x"[random.index(18)];
    }
    bytes
}
