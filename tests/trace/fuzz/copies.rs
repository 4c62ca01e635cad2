//! Traces that `redact`, `slice` and `annotate` write, of traces with secrets in odd places.

use tracekit::attribute::AttributeOptions;
use tracekit::ingest::IngestOptions;
use tracekit::model::Ph;
use tracekit::rewrite::{
    AnnotateInput, RedactOptions, SliceOptions, TimeRange, annotate, redact, slice,
};
use tracekit::{Ns, Trace};

use super::{Target, Verdict, any_trace, numbers_of, strict_json};
use crate::support::seeded::Seeded;

/// What text of traces may hold that somebody wants to be gone, whole and cut.
const WORDS: [&str; 14] = [
    "password=\u{e9}'x y",
    "password = 'correct horse",
    "token: ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    r"C:\\Users\\\u00c9lise \u00dcnal\\x.py",
    "/home/al\u{e9}/\u{1f600}.py",
    "alice@zeus-box-17",
    "https://u:p@h.example/x?token=\u{e9}&a=1",
    "{'PATH': '/b', 'HOME': '/home/\u{e9}', 'USER': 'bob', 'SHELL': 'x'}",
    "PATH=/b; HOME=/home/bob; USER=bob; SHELL=x; LANG=C",
    "UEFUSD0vdXNyL2JpbgpIT01FPS9ob21lL2JvYgpTSEVMTD0vYmluL3NoClVTRVI9Ym9i",
    r"\u00e9\ud83d\ude00 alice",
    "--api-key \u{e9}\u{1f389}",
    "Cookie: sid=ab\u{e9}12; x=1",
    "wandb_key",
];

/// A trace with such words behind some of its quotes.
fn secretive(random: &mut Seeded, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut text = any_trace(random, seeds);
    for _ in 0..random.below(6) {
        let quotes: Vec<usize> = memchr::memchr_iter(b'"', &text).collect();
        if quotes.is_empty() {
            break;
        }
        let at = quotes[random.index(quotes.len())] + 1;
        let word = WORDS[random.index(WORDS.len())];
        text.splice(at..at, word.bytes());
    }
    text
}

/// What `out` holds: strict JSON, and a trace.
fn read(what: &str, out: &[u8]) -> Result<Trace, String> {
    strict_json(out).map_err(|reason| format!("{what}: {reason}"))?;
    Trace::from_bytes(out, &IngestOptions::default())
        .map_err(|error| format!("{what} is broken: {error}"))
}

fn redacted(input: &[u8], whole: &Trace, random: &mut Seeded) -> Verdict {
    let options = RedactOptions::default();
    let again = |input: &[u8]| {
        let mut out = Vec::new();
        redact(input, &mut out, &options, &|_, _| {})
            .map(|_| out)
            .map_err(|error| format!("redact refuses: {error}"))
    };
    let out = again(input)?;
    let trace = read("what was redacted", &out)?;
    let times = |trace: &Trace| -> Vec<_> {
        let events = &trace.events;
        let ids = events
            .ids()
            .map(|id| (events.ph(id), events.ts(id), events.dur(id)));
        ids.collect()
    };
    // What was cut off from its path may be found to be a dump the next time, but no event may change.
    let twice = read("what was redacted twice", &again(&out)?)?;
    if times(&twice) != times(&trace) {
        return Err("redact changes events the second time".to_owned());
    }
    let (mut got, want) = (times(&trace), times(whole));
    // A list has a note about damage behind its events.
    if got.len() > want.len() && got.last().is_some_and(|(ph, ..)| *ph == Ph::METADATA) {
        got.pop();
    }
    if got != want {
        return Err("redact changes events".to_owned());
    }
    if random.one_in(4) {
        let totals = |input: &[u8]| numbers_of(input).map(|numbers| numbers["totals"].clone());
        if totals(input) != totals(&out) {
            return Err("redact changes numbers".to_owned());
        }
    }
    Ok(())
}

#[test]
fn copies() {
    let target = Target {
        name: "copies",
        mutants: 100,
        mutant: secretive,
        check: |input, random| {
            let Ok(whole) = Trace::from_bytes(input, &IngestOptions::default()) else {
                return Ok(());
            };
            redacted(input, &whole, random)?;
            let start = i64::try_from(random.below(400)).unwrap() * 1_000;
            let mut options = SliceOptions::default();
            options.time = Some(TimeRange {
                start: Ns(start),
                end: Ns(start + i64::try_from(random.below(200)).unwrap() * 1_000),
            });
            let mut out = Vec::new();
            // There may be nothing in the range.
            if slice(input, &mut out, &options, &|_, _| {}).is_ok() {
                let part = read("the slice", &out)?;
                if part.events.len() > whole.events.len() + 1 {
                    return Err("a slice has more events than the whole".to_owned());
                }
            }
            let mut out = Vec::new();
            let one = AnnotateInput {
                stored: input,
                label: "a",
                clock: None,
            };
            let inputs = if random.one_in(2) {
                vec![one]
            } else {
                vec![one, one]
            };
            let options = AttributeOptions::default();
            annotate(&inputs, &mut out, &options, &|_, _| {})
                .map_err(|error| format!("annotate refuses: {error}"))?;
            read("what was annotated", &out).map(drop)
        },
    };
    println!("{}", target.run());
}
