//! The facts about a run beside its tables: steps, communication, ranks, recompute.

use super::super::document::Note;
use super::super::number::{counted, ms, percent};
use super::label;
use super::recompute;
use super::timeline::Windows;
use crate::attribute::{Attribution, HostStep, RankResult, RunResult, StepTime};
use crate::units::Ns;

/// The facts about one run.
pub(in super::super) fn of_run(attribution: &Attribution, run: &RunResult) -> Vec<Note> {
    let mut notes = vec![Note::new("steps", steps(attribution, run))];
    notes.extend(communication(attribution, run).map(|text| Note::new("communication", text)));
    notes.extend(ranks(attribution, run).map(|text| Note::new("ranks", text)));
    notes.extend(recompute::notes(run));
    notes
}

fn steps(attribution: &Attribution, run: &RunResult) -> String {
    let Some(time) = run.step_time else {
        return "none; the whole capture is one window".to_owned();
    };
    let ranks = run.ranks.iter().map(|rank| &attribution.ranks[*rank]);
    let steps: Vec<&HostStep> = ranks.flat_map(|rank| &rank.host.steps).collect();
    let mut parts = vec![step_times(attribution, run, time)];
    let partial = steps.iter().filter(|step| step.partial).count() as u64;
    if partial > 0 {
        let how = if time.partial {
            "among them"
        } else {
            "left out"
        };
        parts.push(format!("{} {how}", counted(partial, "partial step")));
    }
    if time.inferred {
        parts.push("boundaries inferred from optimizer steps".to_owned());
    }
    let counting = || steps.iter().filter(|step| time.counts(step.partial));
    if run.totals.total.events == 0 && counting().any(|step| !step.phases.is_empty()) {
        let bare: Ns = counting().map(|step| step.unattributed_ns).sum();
        let share = bare.ratio(counting().map(|step| step.wall_ns).sum());
        parts.extend(
            share.map(|share| format!("{} % of the time in no annotated phase", percent(share))),
        );
    }
    parts.join("; ")
}

/// Step times on the host, and on the device where they differ.
fn step_times(attribution: &Attribution, run: &RunResult, time: StepTime) -> String {
    let single = time.steps == 1;
    let spread = |(median, min, max): (Ns, Ns, Ns)| {
        if single {
            format!("{} ms", ms(median))
        } else {
            format!("{} ms (min {}, max {})", ms(median), ms(min), ms(max))
        }
    };
    let host = (time.median_ns, time.min_ns, time.max_ns);
    let place = match Windows::spread_of_steps(attribution, run) {
        None => String::new(),
        Some(device) if device == host => " on host and device".to_owned(),
        Some(device) => format!(" on the host, {} on the device", spread(device)),
    };
    let median = if single { "" } else { "median " };
    format!(
        "{}, {median}{}{place}",
        counted(time.steps, "step"),
        spread(host)
    )
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

/// Waiting for a slow rank keeps the others busy with communication, so compute is told apart.
fn ranks(attribution: &Attribution, run: &RunResult) -> Option<String> {
    let apart = run.imbalance?;
    let between =
        |(least, least_rank): (Ns, usize), (most, most_rank): (Ns, usize), spread: f64| {
            let name = |rank: usize| label::whole_rank(attribution, &attribution.ranks[rank]);
            format!(
                "{} ms ({}) to {} ms ({}), {} % apart",
                ms(least),
                name(least_rank),
                ms(most),
                name(most_rank),
                percent(spread)
            )
        };
    let busy = between(
        (apart.min_busy_ns, apart.min_rank),
        (apart.max_busy_ns, apart.max_rank),
        apart.spread,
    );
    let mut parts = vec![format!("{} with device work, busy {busy}", apart.ranks)];
    if run.totals.total.communication_ns > Ns::ZERO {
        let file = |number: &usize| &attribution.ranks[*number];
        let mut compute: Vec<(Ns, usize)> = RankResult::by_rank(&attribution.ranks, &run.ranks)
            .filter(|windows| {
                windows
                    .iter()
                    .any(|window| !file(window).devices.is_empty())
            })
            .map(|windows| {
                let times = windows
                    .iter()
                    .map(|window| file(window).totals.total.compute_ns);
                (times.sum(), windows[0])
            })
            .collect();
        compute.sort_unstable();
        if let [least, .., most] = compute.as_slice()
            && let Some(spread) = (most.0 - least.0).ratio(most.0)
        {
            parts.push(format!("compute {}", between(*least, *most, spread)));
        }
    }
    Some(parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn steps_say_what_they_leave_out() {
        let mut attribution = sample::one_rank();
        attribution.ranks[0].host.steps[0].partial = true;
        assert_eq!(
            steps(&attribution, &attribution.runs[0]),
            "2 steps, median 10.000 ms (min 10.000, max 10.000) on host and device; 1 partial step \
             left out"
        );
        attribution.runs[0].step_time = None;
        assert!(steps(&attribution, &attribution.runs[0]).starts_with("none"));
    }

    #[test]
    fn ranks_are_told_apart_by_compute_when_they_communicate() {
        let mut attribution = sample::two_ranks();
        attribution.ranks[1].totals.total.compute_ns = Ns(8_000_000);
        assert_eq!(
            ranks(&attribution, &attribution.runs[0]).as_deref(),
            Some(
                "2 with device work, busy 17.000 ms (rank 0) to 17.000 ms (rank 0), 0 % apart; \
                 compute 8.000 ms (rank 1) to 16.000 ms (rank 0), 50.0 % apart"
            )
        );
    }
}
