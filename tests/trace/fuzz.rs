//! Mutated traces, without end if one likes: `TRACEKIT_FUZZ=N` runs N times as many mutants as usual,
//! made from the seed in `TRACEKIT_FUZZ_SEED` (default 1). What fails is printed as escaped text, to
//! be kept in `fixtures/fuzz-corpus`, which every run replays.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rayon::ThreadPool;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use tempfile::TempDir;
use tracekit::attribute::AttributeOptions;
use tracekit::ingest::{IngestOptions, Reader};
use tracekit::model::Ph;
use tracekit::rewrite::{RepairOptions, repair};
use tracekit::{Error, Trace};

use crate::support::answer::{attribution, comparable, differences, json, stored};
use crate::support::reference::{self, Place, Row};
use crate::support::seeded::Seeded;
use crate::support::{files_under, gzip, laws, package, whole_content, zstd};

mod copies;
mod mutate;

/// What a target says about one input: nothing, or which promise is broken.
type Verdict = Result<(), String>;

/// Something to be fuzzed.
struct Target {
    name: &'static str,
    /// Mutants in an ordinary run.
    mutants: u64,
    mutant: fn(&mut Seeded, &[Vec<u8>]) -> Vec<u8>,
    check: fn(&[u8], &mut Seeded) -> Verdict,
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}

impl Target {
    /// Replays the corpus, then runs mutants of it and of the golden traces; says how many.
    fn run(&self) -> String {
        let kept = files_under(&package("fixtures/fuzz-corpus").join(self.name));
        assert!(!kept.is_empty(), "the corpus of {} is gone", self.name);
        let read = |paths: Vec<PathBuf>| -> Vec<Vec<u8>> {
            let known = |path: &PathBuf| !path.ends_with("expected.toml");
            let paths = paths.iter().filter(|path| known(path));
            paths.filter_map(|path| whole_content(path)).collect()
        };
        let mut seeds = read(kept);
        for (number, input) in seeds.iter().enumerate() {
            for seed in 0..4 {
                self.try_one(input, seed, &format!("corpus file {number}"));
            }
        }
        seeds.extend(read(files_under(&package("fixtures/golden"))));
        seeds.retain(|seed| seed.len() < 40_000);
        let times = number_from("TRACEKIT_FUZZ").unwrap_or(1);
        let first = number_from("TRACEKIT_FUZZ_SEED").unwrap_or(1);
        let mut master = Seeded::new(first);
        let mutants = self.mutants * times;
        for number in 0..mutants {
            let seed = master.next();
            let input = (self.mutant)(&mut Seeded::new(seed), &seeds);
            self.try_one(&input, seed, &format!("mutant {number} of seed {first}"));
        }
        format!("{}: {mutants} mutants of seed {first}", self.name)
    }

    fn verdict(&self, input: &[u8], seed: u64) -> Verdict {
        let check = || (self.check)(input, &mut Seeded::new(seed));
        catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("panic: {}", text.unwrap_or("?")))
        })
    }

    fn try_one(&self, input: &[u8], seed: u64, what: &str) {
        let Err(first) = self.verdict(input, seed) else {
            return;
        };
        let (smaller, reason) = self.smaller(input, seed, first);
        panic!(
            "{}, {what} (its own seed is {seed}): {reason}\nmade smaller:\n{}\nas it was:\n{}",
            self.name,
            smaller.escape_ascii(),
            input.escape_ascii(),
        );
    }

    /// Takes parts of a failing input away as long as it fails in about the same words.
    fn smaller(&self, input: &[u8], seed: u64, reason: String) -> (Vec<u8>, String) {
        let start: String = reason.chars().take(16).collect();
        let (mut best, mut reason) = (input.to_vec(), reason);
        let mut tries = 4_000;
        let mut part = best.len() / 2;
        while part > 0 {
            let mut at = 0;
            while at < best.len() && tries > 0 {
                let mut less = best.clone();
                less.drain(at..(at + part).min(best.len()));
                tries -= 1;
                match self.verdict(&less, seed) {
                    Err(words) if words.starts_with(&start) => (best, reason) = (less, words),
                    _ => at += part,
                }
            }
            part /= 2;
        }
        (best, reason)
    }
}

/// A trace with some of the faults that files have.
fn any_trace(random: &mut Seeded, seeds: &[Vec<u8>]) -> Vec<u8> {
    let valid = random.one_in(2);
    mutate::trace(random, seeds, valid)
}

/// A trace that is valid JSON most of the time, if what it was made of is.
fn valid_trace(random: &mut Seeded, seeds: &[Vec<u8>]) -> Vec<u8> {
    let valid = !random.one_in(8);
    mutate::trace(random, seeds, valid)
}

/// Runs `work` on one to three threads.
fn on_threads<T: Send>(random: &mut Seeded, work: impl FnOnce() -> T + Send) -> T {
    static POOLS: OnceLock<Vec<ThreadPool>> = OnceLock::new();
    let pools = POOLS.get_or_init(|| {
        let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads);
        (1..=3)
            .map(|threads| pool(threads).build().unwrap())
            .collect()
    });
    pools[random.index(pools.len())].install(work)
}

/// Everything that reading says, a line an event; strings by their text.
fn describe(answer: &Result<Trace, Error>) -> Vec<String> {
    let trace = match answer {
        Ok(trace) => trace,
        Err(error) => return vec![format!("{:?} {}", error.kind(), error.reason())],
    };
    let mut lines = vec![format!("{:?}", trace.metadata)];
    for id in trace.events.ids() {
        let events = &trace.events;
        let (activity, flags) = (events.activity(id), events.flags(id));
        let row = reference::row_of(trace, id);
        let op = events.op_args(id).is_some();
        lines.push(format!("{row:?} {activity:?} {flags:?} {op}"));
    }
    let findings = trace.health.entries();
    lines.extend(findings.iter().map(|entry| format!("{entry:?}")));
    lines
}

fn same_lines(what: &str, want: &[String], got: &[String]) -> Verdict {
    if want == got {
        return Ok(());
    }
    let pairs = want.iter().zip(got);
    let same = pairs.take_while(|(want, got)| want == got).count();
    let line = |lines: &[String]| lines.get(same).cloned().unwrap_or_default();
    let (want, got) = (line(want), line(got));
    Err(format!(
        "another answer by {what}, line {same}:\n  want: {want}\n  got:  {got}"
    ))
}

fn size(random: &mut Seeded) -> usize {
    let most = [1, 64, 300, 2_000, 20_000, 1 << 24][random.index(6)];
    1 + random.index(most)
}

fn sizes(random: &mut Seeded, reader: Reader) -> IngestOptions {
    IngestOptions {
        reader,
        mmap: random.one_in(2),
        chunk_bytes: size(random),
        segment_bytes: size(random),
        block_bytes: size(random),
        max_content: u64::MAX,
    }
}

/// The plainest way to read.
fn plain() -> IngestOptions {
    IngestOptions {
        reader: Reader::Text,
        chunk_bytes: usize::MAX,
        segment_bytes: usize::MAX,
        ..IngestOptions::default()
    }
}

#[test]
fn readers() {
    let target = Target {
        name: "readers",
        mutants: 250,
        mutant: any_trace,
        check: |input, random| {
            let want = describe(&Trace::from_bytes(input, &plain()));
            let default = IngestOptions::default();
            let mut ways = vec![default];
            for reader in [Reader::Auto, Reader::Auto, Reader::Simd, Reader::Text] {
                ways.push(sizes(random, reader));
            }
            for options in ways {
                let got = on_threads(random, || Trace::from_bytes(input, &options));
                same_lines(&format!("{options:?}"), &want, &describe(&got))?;
            }
            against_the_reference(input, &Trace::from_bytes(input, &default), false)
        },
    };
    println!("{}", target.run());
}

/// What strict JSON accepts is accepted, with the events that the plain reader of the tests finds.
/// That reader knows numbers in places other than times only in their common spelling.
fn against_the_reference(input: &[u8], got: &Result<Trace, Error>, common: bool) -> Verdict {
    if is_beyond_the_reference(input) {
        return Ok(());
    }
    match (reference::read(input), got) {
        (Ok(want), Ok(trace)) => {
            let lines = |rows: Vec<Row>| -> Vec<String> {
                let rows = rows.into_iter().map(|row| known_to_both(row, common));
                rows.map(|row| format!("{row:?}")).collect()
            };
            same_lines("the library", &lines(want), &lines(rows_of(trace)))
        }
        (Ok(_), Err(error)) => Err(format!("valid JSON was refused: {error}")),
        (Err(_), _) => Ok(()),
    }
}

fn known_to_both(mut row: Row, common: bool) -> Row {
    // The library keeps 32 bits of it.
    row.fwd_thread = row.fwd_thread.clamp(i32::MIN.into(), i32::MAX.into());
    // The plain reader takes white space also out of strings in lists.
    row.dims.retain(|letter| !letter.is_ascii_whitespace());
    if common {
        return row;
    }
    // Where an open event ends is another matter when times are absurd.
    let dur = row.dur.filter(|_| row.ph != b'B');
    Row {
        offset: row.offset,
        ph: row.ph,
        name: row.name,
        cat: row.cat,
        ts: row.ts,
        dur,
        unfinished: row.unfinished,
        dims: row.dims,
        ..Row::default()
    }
}

/// Exponents of more than 64 bits, numbers in strings with white space around, and numbers or `false`
/// in strings with escapes, and halves of surrogate pairs.
fn is_beyond_the_reference(input: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut exponents = input.split(|byte| matches!(byte, b'e' | b'E')).skip(1);
    let long = exponents.any(|behind| {
        let sign = usize::from(matches!(behind.first(), Some(b'+' | b'-')));
        digits(&behind[sign..]) > 17
    });
    let odd = |text: &[u8]| {
        let quoted = [b"\"", text, b"\""].concat();
        let Ok(plain) = serde_json::from_slice::<String>(&quoted) else {
            return false;
        };
        let bare = plain.trim();
        let means = bare == "false" || bare.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        means && bare.as_bytes() != text
    };
    let half = input
        .windows(3)
        .any(|part| matches!(part, b"\\ud" | b"\\uD"));
    long || half || input.split(|byte| *byte == b'"').any(odd)
}

fn rows_of(trace: &Trace) -> Vec<Row> {
    let ids = trace.events.ids();
    ids.map(|id| reference::row_of(trace, id)).collect()
}

#[test]
fn stream() {
    let target = Target {
        name: "stream",
        mutants: 200,
        mutant: any_trace,
        check: |input, random| {
            if matches!(input, [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..]) {
                return Ok(());
            }
            let whole = describe(&Trace::from_bytes(input, &IngestOptions::default()));
            for (how, pack) in [("gzip", gzip as fn(&[u8]) -> Vec<u8>), ("zstd", zstd)] {
                let at = random.index(input.len() + 1);
                let mut packed = match random.below(3) {
                    0 => [pack(&input[..at]), pack(&input[at..])].concat(),
                    _ => pack(input),
                };
                for reader in [Reader::Auto, Reader::Auto, Reader::Text] {
                    let options = sizes(random, reader);
                    let got = on_threads(random, || Trace::from_bytes(&packed, &options));
                    same_lines(&format!("{how}, {options:?}"), &whole, &describe(&got))?;
                }
                // Damage is refused, or it is none.
                let at = random.index(packed.len());
                packed[at] ^= 1 << random.below(8);
                packed.truncate(packed.len() - random.index(2));
                let got = Trace::from_bytes(&packed, &sizes(random, Reader::Auto));
                if got.is_ok() {
                    same_lines(&format!("damaged {how}"), &whole, &describe(&got))?;
                }
            }
            Ok(())
        },
    };
    println!("{}", target.run());
}

/// Events with `text` in every place of a number, bare and as a string.
fn with_number(text: &[u8]) -> Vec<u8> {
    let mut out = b"[".to_vec();
    for quote in ["", "\""] {
        for keys in [
            r#"{"ph":"X","cat":"kernel","name":"k","ts":@,"dur":@,"args":{"correlation":@,"External id":@,"device":@,"stream":@}},"#,
            r#"{"ph":"X","cat":"cpu_op","name":"o","pid":@,"tid":@,"ts":@,"dur":2,"args":{"External id":@,"Sequence number":@,"Fwd thread id":@,"Ev Idx":@}},"#,
            r#"{"ph":"X","cat":"cuda_runtime","name":"c","ts":1,"dur":@,"pid":1,"tid":1,"args":{"correlation":@}},"#,
            r#"{"ph":"s","cat":"ac2g","name":"f","id":@,"ts":@,"pid":1,"tid":1},"#,
        ] {
            for (number, part) in keys.split('@').enumerate() {
                if number > 0 {
                    out.extend_from_slice(quote.as_bytes());
                    out.extend_from_slice(text);
                    out.extend_from_slice(quote.as_bytes());
                }
                out.extend_from_slice(part.as_bytes());
            }
        }
    }
    out.pop();
    out.push(b']');
    out
}

#[test]
fn numbers() {
    let target = Target {
        name: "numbers",
        mutants: 1_000,
        mutant: |random, _| mutate::number(random),
        check: |input, random| {
            let mut all = Ok(());
            for text in input.split(|byte| *byte == b'\n') {
                let document = with_number(text);
                let want = Trace::from_bytes(&document, &plain());
                let lines = describe(&want);
                for reader in [Reader::Auto, Reader::Simd] {
                    let got = Trace::from_bytes(&document, &sizes(random, reader));
                    all = all.and(same_lines(&format!("{reader:?}"), &lines, &describe(&got)));
                }
                let common = std::str::from_utf8(text).is_ok_and(|text| {
                    let number = text.parse::<u64>();
                    number.is_ok_and(|number| number.to_string() == text)
                });
                all = all.and(against_the_reference(&document, &want, common));
            }
            all
        },
    };
    println!("{}", target.run());
}

/// The same trace with its events in another order; `None` when that may matter.
fn shuffled(input: &[u8], random: &mut Seeded) -> Option<Vec<u8>> {
    let trace = Trace::from_bytes(input, &IngestOptions::default()).ok()?;
    let events = &trace.events;
    if events
        .ids()
        .any(|id| matches!(events.ph(id), Ph::BEGIN | Ph::END))
    {
        return None;
    }
    let text = std::str::from_utf8(input).ok()?;
    if text.matches("traceEvents").count() > 1 {
        return None;
    }
    let array: &RawValue = if text.trim_start().starts_with('{') {
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
        fields.get("traceEvents")?
    } else {
        serde_json::from_str(text).ok()?
    };
    let at = array.get().as_ptr() as usize - text.as_ptr() as usize;
    let mut elements: Vec<&RawValue> = serde_json::from_str(array.get()).ok()?;
    random.shuffle(&mut elements);
    let elements: Vec<&str> = elements.iter().map(|element| element.get()).collect();
    let behind = &text[at + array.get().len()..];
    Some(format!("{}[{}]{behind}", &text[..at], elements.join(",")).into_bytes())
}

fn answer_to(input: &[u8]) -> Option<Value> {
    let folder = TempDir::new().expect("a folder");
    let path = stored(folder.path(), "trace", "rank0.json", input);
    attribute(&path)
}

fn attribute(path: &Path) -> Option<Value> {
    let answer = attribution(path, &AttributeOptions::default());
    answer.ok().map(|answer| json(&answer))
}

#[test]
fn attributions() {
    let target = Target {
        name: "attribute",
        mutants: 200,
        mutant: valid_trace,
        check: |input, random| {
            let readable = Trace::from_bytes(input, &IngestOptions::default()).is_ok();
            let Some(want) = answer_to(input) else {
                return if readable {
                    Err("a trace without an answer".to_owned())
                } else {
                    Ok(())
                };
            };
            let found = laws::broken(&want);
            if !found.is_empty() {
                return Err(format!("broken laws:\n{}", found.join("\n")));
            }
            let Some(other) = shuffled(input, random) else {
                return Ok(());
            };
            let got = on_threads(random, || answer_to(&other));
            let got = got.ok_or("no answer in another order")?;
            let found = differences(&comparable(want), &comparable(got));
            if found.is_empty() {
                return Ok(());
            }
            Err(format!(
                "another order, another answer:\n{}",
                found.join("\n")
            ))
        },
    };
    println!("{}", target.run());
}

fn strict_json(text: &[u8]) -> Verdict {
    let text = std::str::from_utf8(text).map_err(|error| format!("no text: {error}"))?;
    let read = serde_json::from_str::<IgnoredAny>(text);
    read.map(drop)
        .map_err(|error| format!("no JSON: {error}\n{text}"))
}

/// The rows of events wherever they stand.
fn placeless(trace: &Trace, exact: bool) -> Vec<String> {
    let rows = rows_of(trace).into_iter().map(|mut row| {
        row.offset = 0;
        // The text of a list, which a repair may have to write in another way.
        if !exact {
            row.dims.clear();
            for place in [&mut row.pid, &mut row.tid] {
                if matches!(place, Place::Text(text) if text.starts_with(['[', '{'])) {
                    *place = Place::Missing;
                }
            }
        }
        format!("{row:?}")
    });
    rows.collect()
}

fn numbers_of(input: &[u8]) -> Option<Value> {
    let mut answer = answer_to(input)?;
    for key in ["inputs", "health", "options"] {
        answer.as_object_mut()?.remove(key);
    }
    Some(answer)
}

#[test]
fn rewrites() {
    let target = Target {
        name: "rewrite",
        mutants: 150,
        mutant: any_trace,
        check: |input, random| {
            let whole = Trace::from_bytes(input, &IngestOptions::default());
            for salvage in [false, true] {
                let mut options = RepairOptions::default();
                options.salvage = salvage;
                let mut out = Vec::new();
                let done = match repair(input, &mut out, &options, &|_, _| {}) {
                    Ok(done) => done,
                    Err(error) if whole.is_ok() => return Err(format!("refused: {error}")),
                    Err(_) => continue,
                };
                strict_json(&out)?;
                let trace = Trace::from_bytes(&out, &IngestOptions::default());
                let trace =
                    trace.map_err(|error| format!("what was repaired is broken: {error}"))?;
                let array = out.trim_ascii_start().starts_with(b"[");
                let notes = u64::from(array && done.lost.count > 0);
                if trace.events.len() as u64 != done.events + notes {
                    let (read, said) = (trace.events.len(), done.events);
                    return Err(format!("{said} events were written and {read} are read"));
                }
                let mut twice = Vec::new();
                let again = repair(&out, &mut twice, &RepairOptions::default(), &|_, _| {});
                let again = again.map_err(|error| format!("refused when repaired: {error}"))?;
                if !again.is_unchanged() || twice != out {
                    return Err(format!("changes again: {}", out.escape_ascii()));
                }
                let Ok(whole) = &whole else { continue };
                if done.lost.count > 0 {
                    return Err("a readable trace has lost something".to_owned());
                }
                let exact = done.is_unchanged();
                let (want, got) = (placeless(whole, exact), placeless(&trace, exact));
                same_lines("what was repaired", &want, &got)?;
                if random.one_in(4) {
                    let want = numbers_of(input).ok_or("a trace without numbers")?;
                    let got = numbers_of(&out).ok_or("a repaired trace without numbers")?;
                    let found = differences(&want, &got);
                    if !found.is_empty() {
                        return Err(format!("other numbers:\n{}", found.join("\n")));
                    }
                }
            }
            Ok(())
        },
    };
    println!("{}", target.run());
}
