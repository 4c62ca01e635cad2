//! The facts beside the tables of a report: inputs, steps, communication, ranks, recompute, and how
//! well device work could be placed.

use super::super::document::Note;
use super::super::number::{count, ms, percent};
use super::label::{self, counted};
use super::timeline::Windows;
use crate::attribute::{
    Attribution, Bucket, Coverage, HostPhase, Phase, Recompute, RunResult, Table,
};
use crate::health::HealthCode;
use crate::units::Ns;

/// What was read, and what the options leave out of it.
pub(super) fn inputs(attribution: &Attribution, verbose: bool) -> Vec<Note> {
    let inputs = &attribution.inputs;
    let mut parts = Vec::new();
    match inputs.as_slice() {
        [only] => parts.push(only.path.clone()),
        many if attribution.runs.len() > 1 => {
            parts.push(format!(
                "{} files in {} runs",
                many.len(),
                attribution.runs.len()
            ));
        }
        many => parts.push(format!("{} files", many.len())),
    }
    parts.push(counted(
        inputs.iter().map(|input| input.events).sum(),
        "event",
    ));
    if attribution.runs.len() == 1 {
        let mut ranks: Vec<i64> = inputs.iter().filter_map(|input| input.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        if !ranks.is_empty() {
            let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
            let world = inputs.iter().filter_map(|input| input.world_size).max();
            let world = world.map_or_else(String::new, |world| format!(" of {world}"));
            parts.push(format!("{noun} {}{world}", label::ranges(&ranks)));
        }
    }
    let mut names: Vec<&str> = Vec::new();
    for name in inputs.iter().flat_map(|input| &input.device_names) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    parts.extend(names.into_iter().map(str::to_owned));
    let mut notes = vec![Note::new("input", parts.join(", "))];
    let options = options(attribution);
    if !options.is_empty() {
        notes.push(Note::new("options", options.join(", ")));
    }
    if verbose && inputs.len() > 1 {
        notes.extend(inputs.iter().map(|input| {
            let rank = input
                .rank
                .map_or_else(String::new, |rank| format!(", rank {rank}"));
            let events = counted(input.events, "event");
            Note::new("file", format!("{}: {events}{rank}", input.path))
        }));
    }
    notes
}

/// The options that change the numbers, as on the command line.
fn options(attribution: &Attribution) -> Vec<String> {
    let option = |name: &str| attribution.options.get(name);
    let list = |name: &str| {
        option(name)
            .and_then(|value| value.as_array())
            .into_iter()
            .flatten()
            .map(|value| {
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned)
            })
    };
    let mut parts = Vec::new();
    if let Some([first, last]) = option("steps")
        .and_then(|value| value.as_array())
        .map(Vec::as_slice)
    {
        let last = last.as_u64().filter(|last| *last < u64::MAX);
        let last = last.map_or_else(String::new, |last| last.to_string());
        parts.push(format!("--steps {first}..{last}"));
    }
    parts.extend(list("ranks").map(|rank| format!("--rank {rank}")));
    parts.extend(list("phases").map(|pattern| format!("--phase {pattern}")));
    parts.extend(list("communication").map(|pattern| format!("--comm {pattern}")));
    for (name, flag) in [
        ("ignore_annotations", "--ignore-annotations"),
        ("include_partial_steps", "--include-partial-steps"),
    ] {
        if option(name).and_then(serde_json::Value::as_bool) == Some(true) {
            parts.push(flag.to_owned());
        }
    }
    if let Some(evidence) = option("recompute_evidence").and_then(|value| value.as_str())
        && evidence != "auto"
    {
        parts.push(format!("--recompute-evidence {evidence}"));
    }
    parts
}

/// The facts about one run.
pub(super) fn of_run(attribution: &Attribution, run: &RunResult) -> Vec<Note> {
    let mut notes = vec![Note::new("steps", steps(attribution, run))];
    notes.extend(communication(attribution, run).map(|text| Note::new("communication", text)));
    notes.extend(ranks(attribution, run).map(|text| Note::new("ranks", text)));
    let recompute = &run.recompute;
    notes.push(Note::new("recompute", recomputed(run)));
    if recompute.weak.regions > 0 {
        let weak = &recompute.weak;
        let time = if run.totals.total.events > 0 {
            format!("{} ms of device time", ms(weak.device_sum_ns))
        } else {
            format!("{} ms of host self time", ms(weak.host_self_ns))
        };
        let text = format!(
            "not counted as recompute: {} in {} of grad-enabled work in backward, {time}, that no \
             forward work confirms",
            counted(weak.ops, "op"),
            counted(weak.regions, "region"),
        );
        notes.push(Note::new("weak", text));
    }
    if recompute.disagreement_ns > Ns::ZERO {
        let text = format!(
            "two kinds of recompute evidence disagree about {} ms of device time",
            ms(recompute.disagreement_ns)
        );
        notes.push(Note::new("disagreement", text));
    }
    notes
}

fn steps(attribution: &Attribution, run: &RunResult) -> String {
    let Some(time) = run.step_time else {
        return "none here, so one window holds everything".to_owned();
    };
    let steps = run
        .ranks
        .iter()
        .flat_map(|rank| &attribution.ranks[*rank].host.steps);
    let partial = steps.filter(|step| step.partial).count() as u64;
    let mut text = format!(
        "median {} ms (min {}, max {}) over {}",
        ms(time.median_ns),
        ms(time.min_ns),
        ms(time.max_ns),
        counted(time.steps, "step"),
    );
    if partial > 0 {
        let partial = counted(partial, "partial step");
        text.push_str(&if time.partial {
            format!(", {partial} among them")
        } else {
            format!(", {partial} left out")
        });
    }
    if time.inferred {
        text.push_str("; boundaries inferred from optimizer steps");
    }
    text
}

fn communication(attribution: &Attribution, run: &RunResult) -> Option<String> {
    let sum = Windows::of_captures(attribution, run)?.sum;
    let overlap = sum.overlap_ns.ratio(sum.communication_ns)?;
    Some(format!(
        "{} ms, {} % of it under compute, {} ms exposed",
        ms(sum.communication_ns),
        percent(overlap),
        ms(sum.exposed_communication_ns)
    ))
}

fn ranks(attribution: &Attribution, run: &RunResult) -> Option<String> {
    let apart = run.imbalance?;
    let name = |rank: usize| label::rank(attribution, &attribution.ranks[rank]);
    Some(format!(
        "{} with device work, busy {} ms ({}) to {} ms ({}), {} % apart",
        apart.ranks,
        ms(apart.min_busy_ns),
        name(apart.min_rank),
        ms(apart.max_busy_ns),
        name(apart.max_rank),
        percent(apart.spread)
    ))
}

fn recomputed(run: &RunResult) -> String {
    let recompute = &run.recompute;
    let hidden = match recompute.observable {
        "yes" => None,
        "no" => Some("not observable in compiled regions and graph launches"),
        _ => Some("a lower bound: compiled regions and graph launches hide some"),
    };
    if recompute.regions == 0 && recompute.device_sum_ns == Ns::ZERO {
        return hidden.map_or_else(|| "none".to_owned(), |why| format!("none seen, {why}"));
    }
    let device = run.totals.phase(Phase::Recompute);
    let mut text = String::new();
    if run.totals.total.events > 0 {
        text = format!(
            "{}, {} ms{}; ",
            counted(device.events, "device event"),
            ms(recompute.device_sum_ns),
            of_forward(recompute.share_of_forward)
        );
    }
    let host = run
        .host_phases
        .get(&Phase::Forward)
        .map(|HostPhase { self_ns, .. }| *self_ns);
    let share = if text.is_empty() {
        host.and_then(|forward| recompute.host_self_ns.ratio(forward))
    } else {
        None
    };
    text.push_str(&format!(
        "{} in {}, {} ms host self{} (evidence: {})",
        counted(recompute.ops, "op"),
        counted(recompute.regions, "region"),
        ms(recompute.host_self_ns),
        of_forward(share),
        evidence(recompute)
    ));
    if let Some(why) = hidden {
        text.push_str("; ");
        text.push_str(why);
    }
    text
}

fn of_forward(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| {
        format!(" = {} % of forward", percent(share))
    })
}

fn evidence(recompute: &Recompute) -> String {
    if recompute.by_evidence.len() < 2 {
        return recompute.evidence.to_owned();
    }
    let kinds: Vec<String> = recompute
        .by_evidence
        .iter()
        .map(|(kind, share)| format!("{kind} for {}", counted(share.regions, "region")))
        .collect();
    kinds.join(", ")
}

/// How device events were linked to their launches.
pub(super) fn coverage(coverage: &Coverage, totals: &Table) -> String {
    let phases = match coverage.phases {
        "none" => "no phases found".to_owned(),
        "mixed" => "phases annotated in some files and inferred in others".to_owned(),
        how => format!("phases {how}"),
    };
    let events = coverage.device_events;
    if events == 0 {
        return format!("no device events; {phases}");
    }
    let share = |number: u64| {
        if number == 0 {
            return String::new();
        }
        format!(" ({} %)", percent(number as f64 / events as f64))
    };
    let beside = |number: u64, bucket: Bucket| {
        if number == 0 {
            return String::new();
        }
        let share = percent(number as f64 / events as f64);
        format!(" ({share} %, {} ms)", ms(totals.bucket(bucket).sum_ns))
    };
    let by = &coverage.linked_by;
    format!(
        "{}: {} linked by correlation{}, {} by flow{}, {} by External id{}, {} pre-window{}, {} \
         unlinked{}; {phases}",
        counted(events, "device event"),
        count(by.correlation),
        share(by.correlation),
        count(by.flow),
        share(by.flow),
        count(by.external_id),
        share(by.external_id),
        count(coverage.pre_window),
        beside(coverage.pre_window, Bucket::PreWindow),
        count(coverage.unlinked),
        beside(coverage.unlinked, Bucket::Unlinked),
    )
}

/// How many events the numbers leave out or show shortened.
pub(super) fn dropped(attribution: &Attribution) -> String {
    let sum = |codes: &[HealthCode]| -> u64 {
        let entries = attribution.health.iter();
        let of_codes = entries.filter(|entry| codes.iter().any(|code| code.as_str() == entry.code));
        of_codes.map(|entry| entry.count).sum()
    };
    let dropped = sum(&[
        HealthCode::MissingTimestamp,
        HealthCode::InvalidTimestamp,
        HealthCode::NegativeDuration,
        HealthCode::ZeroTimestamp,
        HealthCode::AbsurdTime,
    ]);
    let repaired = sum(&[HealthCode::LaneOverlapRepaired]);
    format!(
        "{} dropped, {} repaired",
        counted(dropped, "event"),
        count(repaired)
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn recompute_names_its_evidence() {
        let attribution = sample::one_rank();
        assert_eq!(
            recomputed(&attribution.runs[0]),
            "4 device events, 2.000 ms = 33.3 % of forward; 24 ops in 2 regions, 1.000 ms host \
             self (evidence: sequence)"
        );
    }

    #[test]
    fn hidden_recompute_is_not_none() {
        let mut run = sample::host_only().runs.remove(0);
        assert_eq!(recomputed(&run), "none");
        run.recompute.observable = "no";
        assert_eq!(
            recomputed(&run),
            "none seen, not observable in compiled regions and graph launches"
        );
    }

    #[test]
    fn coverage_counts_every_kind_of_link() {
        let attribution = sample::one_rank();
        assert_eq!(
            coverage(&attribution.coverage, &attribution.totals),
            "40 device events: 38 linked by correlation (95.0 %), 2 by flow (5.0 %), 0 by External \
             id, 0 pre-window, 0 unlinked; phases annotated"
        );
        assert_eq!(dropped(&attribution), "3 events dropped, 0 repaired");
    }

    #[test]
    fn steps_say_what_they_leave_out() {
        let mut attribution = sample::one_rank();
        attribution.ranks[0].host.steps[0].partial = true;
        assert_eq!(
            steps(&attribution, &attribution.runs[0]),
            "median 10.000 ms (min 10.000, max 10.000) over 2 steps, 1 partial step left out"
        );
        attribution.runs[0].step_time = None;
        assert!(steps(&attribution, &attribution.runs[0]).starts_with("none"));
    }

    #[test]
    fn options_that_change_numbers_are_told() {
        let mut attribution = sample::one_rank();
        assert_eq!(inputs(&attribution, false).len(), 1);
        attribution
            .options
            .insert("steps", serde_json::json!([3, u64::MAX]));
        attribution.options.insert("ranks", serde_json::json!([0]));
        attribution
            .options
            .insert("phases", serde_json::json!(["forward=^fwd$"]));
        attribution
            .options
            .insert("ignore_annotations", serde_json::json!(true));
        assert_eq!(
            inputs(&attribution, false)[1].text,
            "--steps 3.., --rank 0, --phase forward=^fwd$, --ignore-annotations"
        );
    }
}
