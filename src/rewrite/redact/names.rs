//! Names of users and hosts, to be found wherever they stand.
//!
//! ```text
//! gpu-box-7.corp     is found in runs of letters and digits, one by one, and the longest name that
//! ^^^ ^^^ ^ ^^^^     ends with a run counts; so time is that of the text, however many names there are
//! ```

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;

use super::pattern::is_identity;
use super::pseudonym::Subject;

/// What a name is of, and how it is spelled.
type Name = (Subject, Box<str>);

/// Names to look for.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// By what they start with, up to the end of each run of letters and digits, in lower case: the
    /// name that ends there, when one does.
    starts: HashMap<Box<[u8]>, Option<Name>, RandomState>,
}

/// Longer names are not looked for; names of machines are at most that long.
const LONGEST: usize = 255;

impl Names {
    /// Adds a name as it is spelled; false when it is known or cannot be looked for.
    pub(super) fn add(&mut self, subject: Subject, name: &str) -> bool {
        let name = name.trim_matches(|letter: char| !letter.is_alphanumeric());
        if !is_name(name) {
            return false;
        }
        let lower = name.to_ascii_lowercase();
        if let Some(Some(_)) = self.starts.get(lower.as_bytes()) {
            return false;
        }
        let mut end = 0;
        while let Some(run) = next_run(&lower, end) {
            end = run.end;
            self.starts
                .entry(lower.as_bytes()[..end].into())
                .or_insert(None);
        }
        self.starts
            .insert(lower.as_bytes().into(), Some((subject, name.into())));
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The name as it was spelled first, when only its case is another.
    pub(super) fn spelled<'a>(&'a self, name: &'a str) -> &'a str {
        match self.starts.get(name.to_ascii_lowercase().as_bytes()) {
            Some(Some((_, first))) => first,
            _ => name,
        }
    }

    /// The first name in `text` from `at` on: where it is and which.
    pub(super) fn find(&self, lower: &str, mut at: usize) -> Option<(Range<usize>, Subject, &str)> {
        while let Some(first) = next_run(lower, at) {
            let mut found = None;
            let mut end = first.end;
            while let Some(here) = self.starts.get(&lower.as_bytes()[first.start..end]) {
                if let Some((subject, name)) = here {
                    found = Some((first.start..end, *subject, &**name));
                }
                match next_run(lower, end) {
                    Some(next) if next.end - first.start <= LONGEST => end = next.end,
                    _ => break,
                }
            }
            if found.is_some() {
                return found;
            }
            at = first.end;
        }
        None
    }

    /// True when a name is somewhere in `text`.
    pub(super) fn are_in(&self, text: &str) -> bool {
        !self.is_empty() && self.find(&text.to_ascii_lowercase(), 0).is_some()
    }

    /// `text` with other words in place of names; `None` when there are none.
    pub(super) fn replace(
        &self,
        text: &str,
        mut replace: impl FnMut(Subject, &str) -> String,
    ) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let lower = text.to_ascii_lowercase();
        let mut changed = String::new();
        let mut copied = 0;
        while let Some((range, subject, name)) = self.find(&lower, copied) {
            changed.push_str(&text[copied..range.start]);
            changed.push_str(&replace(subject, name));
            copied = range.end;
        }
        (copied > 0).then(|| changed + &text[copied..])
    }
}

/// The first run of letters and digits from `at` on, which is no place inside of one.
fn next_run(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = &text[at..];
    let start = at + rest.find(char::is_alphanumeric)?;
    let rest = &text[start..];
    let len = rest.find(|letter: char| !letter.is_alphanumeric());
    Some(start..start + len.unwrap_or(rest.len()))
}

/// Keys and words that traces of all people have. A user may be called so, but then nothing says
/// where he is meant, and what reads traces needs the words.
const PHRASES: &[&str] = &[
    "schemaVersion traceEvents traceName baseTimeNanoseconds displayTimeUnit distributedInfo",
    "deviceProperties computeProperties record_shapes with_stack profile_memory with_flops",
    "tracekit_repair tracekit_slice tracekit raw dur INFO WARNING ERROR STAGE pid tid args name cat",
    "External id correlation device inDevice stream Sequence number Fwd thread id Ev Idx",
    "Profiler Event Index Input Dims Input type Input Strides Concrete Inputs finished cbid context",
    "Collective name Process Group Name Process Group Description Process Group Ranks Group size",
    "In msg nelems Out msg nelems dtype Global rank start Global rank stride rank world_size backend",
    "Device Type Device Id Total Reserved Total Allocated Addr Bytes Python id Python parent id",
    "Python module id Call stack Record function id graph node id kernel backend kernel hash",
    "grid block registers per thread shared memory warps per SM blocks per SM occupancy bandwidth",
    "memory queued process_name process_labels process_sort_index thread_name thread_sort_index",
    "ProfilerStep Optimizer step DataLoader dataloader checkpoint utils module modules engine",
    "evaluate_function Iteration Start Record Window End Dropped buffers collect CUPTI warmup",
    "initialization failed terminated Sync Synchronize Wait Memcpy Memset Pageable Pinned Unknown",
    "phase idle communication compute python_function user_annotation gpu_user_annotation cpu_op",
    "path token url email mac removed user host tracekit adam adamw sgd lion",
];

/// True for what can be looked for in other strings.
fn is_name(text: &str) -> bool {
    let inside = |letter: char| letter.is_alphanumeric() || ". _-'+@\\".contains(letter);
    // `path-1` would be found in what stands for a path.
    let stands_for = || {
        Subject::ALL.iter().any(|subject| {
            let behind = text.strip_prefix(subject.as_str());
            behind.is_some_and(|behind| {
                behind
                    .bytes()
                    .all(|byte| byte == b'-' || byte.is_ascii_digit())
            })
        })
    };
    (3..=LONGEST).contains(&text.len())
        && is_identity(text)
        && text.chars().all(inside)
        && text.chars().any(char::is_alphabetic)
        && !stands_for()
        && !is_phrase(text)
}

fn is_phrase(text: &str) -> bool {
    let is_inside = |phrase: &&str| {
        let ends = |at: usize| {
            let outside =
                |byte: Option<&u8>| byte.is_none_or(|byte| *byte == b' ' || *byte == b'_');
            let bytes = phrase.as_bytes();
            outside(at.checked_sub(1).and_then(|before| bytes.get(before)))
                && outside(bytes.get(at + text.len()))
        };
        let places = 0..(phrase.len() + 1).saturating_sub(text.len());
        places.into_iter().any(|at| {
            phrase.as_bytes()[at..at + text.len()].eq_ignore_ascii_case(text.as_bytes()) && ends(at)
        })
    };
    PHRASES.iter().any(is_inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Names {
        let mut all = Names::default();
        for name in names {
            assert!(all.add(Subject::User, name), "{name}");
        }
        all
    }

    fn replaced(names: &Names, text: &str) -> String {
        let replaced = names.replace(text, |_, name| format!("<{name}>"));
        replaced.unwrap_or_else(|| text.to_owned())
    }

    #[test]
    fn names_are_whole_words_in_any_case_and_the_longest_counts() {
        let names = names(&[
            "alice",
            "alice-b",
            "Alice Smith",
            "zoë",
            "gpu-box-7.corp",
            "gpu-box-7",
        ]);
        for (text, expected) in [
            ("alice", "<alice>"),
            ("ALICE_2 malice alicea", "<alice>_2 malice alicea"),
            ("alice-bob", "<alice>-bob"),
            ("alice-b", "<alice-b>"),
            (
                "alice smithers and Alice Smith",
                "<alice> smithers and <Alice Smith>",
            ),
            ("by zoë.", "by <zoë>."),
            (
                "gpu-box-7.corp.x gpu-box-7.co gpu-box",
                "<gpu-box-7.corp>.x <gpu-box-7>.co gpu-box",
            ),
        ] {
            assert_eq!(replaced(&names, text), expected, "{text}");
        }
        assert_eq!(names.spelled("ALICE"), "alice");
        assert!(names.are_in("x/Alice") && !names.are_in("x/alic"));
    }

    #[test]
    fn words_of_traces_are_not_looked_for() {
        for word in [
            "stream",
            "External id",
            "group",
            "path-1",
            "path",
            "python",
            "12",
            "1.2.3.4",
            "ab",
            "a/b",
            "correlation",
            "Process Group",
            "token",
        ] {
            assert!(!Names::default().add(Subject::User, word), "{word}");
        }
    }

    #[test]
    fn many_names_take_no_longer() {
        let mut all = Names::default();
        for number in 0..20_000 {
            all.add(Subject::Host, &format!("box-{number}-x"));
        }
        let text = "box-1 box-19999-x ".repeat(2_000);
        let want = "box-1 <box-19999-x> ".repeat(2_000);
        assert_eq!(replaced(&all, &text), want);
    }
}
