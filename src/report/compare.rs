//! A comparison as a document: the verdict first, then what it rests on, then the tables.

use super::document::{Block, Document, Note, Section};
use super::findings::in_brief;
use super::inspection::{Several, section};
use super::number::{count, counted, ms, ms_change, number, percent, percent_change};
use crate::compare::{
    Bottleneck, Comparison, Judgement, Mixture, SideSummary, StepVerdict, Verdict,
};

/// `comparison` as a report; all rows when `verbose`.
pub fn comparison_document(comparison: &Comparison, verbose: bool) -> Document {
    let mut sections = vec![Section {
        title: None,
        blocks: vec![Block::Notes(notes(comparison, verbose))],
    }];
    let shown = comparison.frames.iter().filter(|frame| {
        let told = matches!(frame.name, "phases" | "cost_shift" | "contract");
        verbose || told || !frame.is_empty()
    });
    sections.extend(shown.map(|frame| section(frame, verbose, Several::default())));
    Document {
        title: "Comparison".to_owned(),
        lead: lead(&comparison.step),
        sections,
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::NoDifference => "no difference",
        Verdict::Inconclusive => "inconclusive",
    }
}

fn lead(step: &StepVerdict) -> String {
    let verdict = word(step.judgement.verdict);
    let work = match step.same_work {
        Some(false) => " (not the same work)",
        _ => "",
    };
    let (Some(base), Some(candidate)) = (step.base_ns, step.candidate_ns) else {
        return format!("{verdict}{work}: a side has no whole steps, so there are no step times");
    };
    let change = step.judgement.change.map_or_else(
        || "n/a".to_owned(),
        |change| format!("{} %", percent_change(change)),
    );
    format!(
        "{verdict}{work}: median step {} → {} ms ({change})",
        ms(base),
        ms(candidate)
    )
}

fn notes(comparison: &Comparison, verbose: bool) -> Vec<Note> {
    let step = &comparison.step;
    let mut notes = vec![Note::new("why", why(step))];
    if step.base_ns.is_some() {
        notes.push(Note::new("test", test(step)));
    }
    if !step.sees_noise_between_runs && step.base_ns.is_some() {
        let text = "single runs: the noise between runs is not in these numbers; three or more \
                    repeats a side show it";
        notes.push(Note::new("noise", text));
    }
    notes.push(Note::new("work", work(step)));
    for (label, side) in [
        ("base", &comparison.base),
        ("candidate", &comparison.candidate),
    ] {
        notes.extend(
            side.mixed
                .as_ref()
                .map(|mixture| Note::new(label, mixed(mixture))),
        );
    }
    if let Some(bottleneck) = &comparison.bottleneck {
        notes.push(Note::new("bottleneck", changed(bottleneck)));
    }
    let costs = comparison.costs.iter().take(3).map(|cost| {
        let delta = cost.delta_ns.map(ms_change).unwrap_or_default();
        let name = cost.cost.replace('_', " ");
        let verdict = cost.verdict.map_or("not tested", Verdict::of_part);
        let verdict = verdict.replace('_', " ");
        format!("{name} ({}) {delta} ms a step, {verdict}", cost.place)
    });
    let costs: Vec<String> = costs.collect();
    if !costs.is_empty() {
        notes.push(Note::new("cost", costs.join("; ")));
    }
    notes.push(Note::new("base", side(&comparison.base)));
    notes.push(Note::new("candidate", side(&comparison.candidate)));
    for absent in &comparison.absent {
        notes.push(Note::new(
            "not compared",
            format!("{}: {}", absent.what, absent.reason),
        ));
    }
    for (label, side) in [
        ("base", &comparison.base),
        ("candidate", &comparison.candidate),
    ] {
        for input in side.skipped.iter().filter(|input| input.failed || verbose) {
            notes.push(Note::new(
                label,
                format!("skipped {}: {}", input.path, input.reason),
            ));
        }
        let found = in_brief(&side.health, verbose);
        notes.extend(found.map(|text| Note::new(label, text)));
    }
    notes
}

fn why(step: &StepVerdict) -> String {
    let Judgement { reason, .. } = step.judgement;
    let few = match (reason, step.units) {
        (crate::compare::Reason::TooFew, "repeats") => {
            "; five repeats a side reach a level of 0.01, four one of 0.05"
        }
        (crate::compare::Reason::TooFew, _) => {
            "; five whole steps a side reach a level of 0.01: record more"
        }
        _ => "",
    };
    format!("{}{few}", reason.as_str())
}

fn test(step: &StepVerdict) -> String {
    let judgement = &step.judgement;
    let units = step.units.replace('_', " ");
    let mut parts = vec![format!(
        "{} against {} {units} ({} time)",
        count(step.base_units),
        count(step.candidate_units),
        step.clock.unwrap_or("no")
    )];
    if let (Some(p), Some(exact)) = (judgement.p, judgement.exact) {
        let kind = if exact { "exact" } else { "random splits" };
        parts.push(format!(
            "permutation test, {kind}: p = {} (level {})",
            number(p),
            number(step.alpha)
        ));
    }
    if let (Some(low), Some(high)) = (judgement.low, judgement.high) {
        parts.push(format!(
            "{} % interval {} to {} %",
            percent(1.0 - step.alpha),
            percent_change(low),
            percent_change(high)
        ));
    }
    parts.push(format!(
        "smallest effect that counts {} %",
        percent(step.min_effect)
    ));
    parts.join("; ")
}

fn work(step: &StepVerdict) -> String {
    let work = match step.same_work {
        Some(true) => "the same: devices, ranks and the shapes of the model",
        Some(false) => "NOT the same: what changed is not only how fast it is",
        None => "not known to be the same: a side has no input shapes of forward operators",
    };
    let differing: Vec<String> = step
        .differences
        .iter()
        .map(|name| name.replace('_', " "))
        .collect();
    if differing.is_empty() {
        work.to_owned()
    } else {
        format!("{work} (differing: {})", differing.join(", "))
    }
}

fn changed(bottleneck: &Bottleneck) -> String {
    let verdict = match bottleneck.judgement.as_ref().map(|found| found.verdict) {
        Some(Verdict::Faster) => "reduced",
        Some(Verdict::Slower) => "grown",
        Some(Verdict::NoDifference) => "as before",
        Some(Verdict::Inconclusive) => "inconclusive",
        None => "not tested",
    };
    let time = |time: Option<crate::units::Ns>| time.map_or_else(|| "—".to_owned(), ms);
    let share = |share: Option<f64>| share.map_or_else(|| "—".to_owned(), percent);
    format!(
        "{} ({}) was {} ms a step = {} % of the base, is {} ms = {} %: {verdict}",
        bottleneck.cost.replace('_', " "),
        bottleneck.place,
        time(bottleneck.base_ns),
        share(bottleneck.base_share),
        time(bottleneck.candidate_ns),
        share(bottleneck.candidate_share),
    )
}

fn mixed(mixture: &Mixture) -> String {
    let shown = 4;
    let mut repeats: Vec<&str> = mixture.repeats.iter().map(String::as_str).collect();
    if repeats.len() > shown {
        repeats.truncate(shown);
        repeats.push("…");
    }
    format!(
        "NOT repeats of one program: {} differ in {}; name one of them, for together they have no meaningful median",
        repeats.join(", "),
        mixture.differ_in.join(", "),
    )
}

fn side(side: &SideSummary) -> String {
    let shown = match side.inputs.as_slice() {
        [only] => only.clone(),
        [first, ..] => format!("{first}, …"),
        [] => "nothing".to_owned(),
    };
    format!(
        "{} of {} whole, {}, {}, {}: {shown}",
        count(side.whole_steps),
        counted(side.steps, "step"),
        counted(side.inputs.len() as u64, "file"),
        counted(side.repeats, "repeat"),
        counted(side.ranks, "rank"),
    )
}
