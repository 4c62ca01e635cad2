//! The sentence a report starts with: where the step goes.

use std::collections::BTreeSet;

use super::super::number::{counted, ms, percent, percent_change};
use super::label;
use super::timeline::{Windows, device_count};
use crate::attribute::{Attribution, Bucket, Phase, RankResult, RunResult, StepTime};
use crate::units::Ns;

/// The sentence for the whole attribution.
pub(in super::super) fn lead(attribution: &Attribution) -> String {
    match attribution.runs.as_slice() {
        [] => "no runs".to_owned(),
        [run] => of_run(attribution, run),
        [base, others @ ..] => comparison(&attribution.runs, base, others),
    }
}

/// The sentence for one run.
pub(in super::super) fn of_run(attribution: &Attribution, run: &RunResult) -> String {
    let head = run.step_time.map(|time| steps(attribution, run, time));
    let step_windows = Windows::of_steps(attribution, run);
    if let Some(windows) = step_windows.or_else(|| Windows::of_captures(attribution, run)) {
        let whole = if step_windows.is_some() {
            "of the step"
        } else {
            "of the window"
        };
        let head = head.unwrap_or_else(|| {
            let time = ms(windows.sum.window_ns);
            match (device_count(attribution, run), windows.count) {
                (_, 1) => format!("no steps, device window {time} ms"),
                (devices, windows) if windows > devices => format!(
                    "no steps, {} with {windows} device windows of {time} ms together",
                    counted(devices, "device"),
                ),
                (devices, _) => format!(
                    "no steps, {} with {time} ms of device windows",
                    counted(devices, "device"),
                ),
            }
        });
        return format!("{head}: {}", device_shares(&windows, whole));
    }
    let head = head.unwrap_or_else(|| "no steps".to_owned());
    match host_shares(run) {
        Some(shares) => {
            let of_step = operators_of_step(attribution, run).map_or_else(String::new, |share| {
                format!("; operators take {} % of the step", percent(share))
            });
            format!("{head}: {shares} of host operator time{of_step}; no device work")
        }
        None => "nothing to attribute: no device work and no host operators".to_owned(),
    }
}

/// Where the device takes its own time for a step, that is told, too: shares are of it.
fn steps(attribution: &Attribution, run: &RunResult, time: StepTime) -> String {
    let partial = if time.partial {
        " (partial ones too)"
    } else {
        ""
    };
    let of_ranks: Vec<u64> = RankResult::by_rank(&attribution.ranks, &run.ranks)
        .map(|files| {
            let steps = files
                .iter()
                .flat_map(|file| &attribution.ranks[*file].host.steps);
            steps.filter(|step| time.counts(step.partial)).count() as u64
        })
        .collect();
    let ranks = of_ranks.len();
    // Where all ranks have the same steps, the number of one says more than that of all.
    let (number, on_ranks) = match of_ranks.as_slice() {
        [] | [_] => (time.steps, String::new()),
        [each, others @ ..]
            if others.iter().all(|other| other == each) && each * ranks as u64 == time.steps =>
        {
            (*each, format!(" on each of {ranks} ranks"))
        }
        _ => (time.steps, format!(" on {ranks} ranks together")),
    };
    let in_windows = if run.ranks.len() > ranks {
        format!(" in {} windows", run.ranks.len())
    } else {
        String::new()
    };
    let median = if time.steps == 1 { "" } else { "median " };
    let device = Windows::spread_of_steps(attribution, run).map(|(median, _, _)| median);
    let device = device
        .filter(|device| (*device - time.median_ns).0.abs() > time.median_ns.0 / 20)
        .map_or_else(String::new, |device| {
            format!(" (on the device {} ms)", ms(device))
        });
    let steps = counted(number, "step");
    format!(
        "{steps}{partial}{on_ranks}{in_windows}, {median}{} ms{device}",
        ms(time.median_ns)
    )
}

/// `forward 31.2 %, …, idle 5.0 %`, without what is zero.
fn device_shares(windows: &Windows, whole: &str) -> String {
    let window = windows.sum.window_ns;
    let share = |time: Ns| percent(time.ratio(window).unwrap_or(0.0));
    let mut parts: Vec<String> = Bucket::ALL
        .into_iter()
        .filter(|bucket| windows.phase(*bucket) > Ns::ZERO)
        .map(|bucket| format!("{} {} %", bucket.as_str(), share(windows.phase(bucket))))
        .collect();
    parts.push(format!("idle {} %", share(windows.sum.idle_ns)));
    let exposed = windows.sum.exposed_communication_ns;
    let exposed = if exposed > Ns::ZERO {
        format!("; exposed communication {} %", share(exposed))
    } else {
        String::new()
    };
    format!("{} {whole}{exposed}", parts.join(", "))
}

/// The share of the step time that is in operators, where annotations show what steps are made of.
/// It is only told of one process: the operators of several run side by side.
fn operators_of_step(attribution: &Attribution, run: &RunResult) -> Option<f64> {
    let [file] = run.ranks.as_slice() else {
        return None;
    };
    let host = &attribution.ranks[*file].host;
    let annotated = host.phases.values().any(|phase| phase.wall_ns.is_some());
    // Every process has its own steps, of the same names.
    let names: BTreeSet<&str> = host.steps.iter().map(|step| step.name.as_str()).collect();
    if !annotated || names.len() < host.steps.len() {
        return None;
    }
    let operators: Ns = host.phases.values().map(|phase| phase.self_ns).sum();
    let steps: Ns = host.steps.iter().map(|step| step.wall_ns).sum();
    // More than all of it is work beside the steps, or on threads side by side.
    operators.ratio(steps).filter(|share| *share <= 1.0)
}

fn host_shares(run: &RunResult) -> Option<String> {
    let total: Ns = run.host_phases.values().map(|phase| phase.self_ns).sum();
    let shares: Vec<String> = Phase::ALL
        .into_iter()
        .filter_map(|phase| {
            let time = run.host_phases.get(&phase)?.self_ns;
            let share = time.ratio(total)?;
            (time > Ns::ZERO).then(|| format!("{phase} {} %", percent(share)))
        })
        .collect();
    (!shares.is_empty()).then(|| shares.join(", "))
}

/// How the step times of runs compare.
fn comparison(runs: &[RunResult], base: &RunResult, others: &[RunResult]) -> String {
    let name = |run| label::run(runs, run);
    let count = counted(others.len() as u64 + 1, "run");
    let Some(base_time) = base.step_time else {
        return format!(
            "{count}; {} has no steps to compare step times with",
            name(base)
        );
    };
    let others: Vec<String> = others
        .iter()
        .map(|run| match run.step_time {
            Some(time) => {
                let change = (time.median_ns - base_time.median_ns).ratio(base_time.median_ns);
                let change = percent_change(change.unwrap_or(f64::NAN));
                format!("{} {} ms ({change} %)", name(run), ms(time.median_ns))
            }
            None => format!("{} has no steps", name(run)),
        })
        .collect();
    format!(
        "{count}, median step: {} {} ms, {}",
        name(base),
        ms(base_time.median_ns),
        others.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_verdict_says_where_the_step_goes() {
        assert_eq!(
            lead(&sample::one_rank()),
            "2 steps, median 10.000 ms: forward 30.0 %, backward 40.0 %, recompute 10.0 %, \
             other 5.0 %, idle 15.0 % of the step; exposed communication 5.0 %"
        );
    }

    #[test]
    fn without_device_work_the_host_answers() {
        assert_eq!(
            lead(&sample::host_only()),
            "1 step, 10.000 ms: forward 25.0 %, backward 75.0 % of host operator time; \
             operators take 80.0 % of the step; no device work"
        );
    }

    #[test]
    fn operators_are_compared_with_steps_only_where_that_is_right() {
        let share = |change: &dyn Fn(&mut RankResult)| {
            let mut attribution = sample::host_only();
            change(&mut attribution.ranks[0]);
            operators_of_step(&attribution, &attribution.runs[0])
        };
        assert_eq!(share(&|_| {}), Some(0.8));
        // Nothing is annotated; two processes; more operators than steps; no steps.
        assert_eq!(
            share(&|file| file
                .host
                .phases
                .values_mut()
                .for_each(|it| it.wall_ns = None)),
            None
        );
        assert_eq!(
            share(&|file| file.host.steps.push(file.host.steps[0].clone())),
            None
        );
        assert_eq!(
            share(&|file| file.host.steps[0].wall_ns = Ns(7_999_999)),
            None
        );
        assert_eq!(share(&|file| file.host.steps.clear()), None);
    }

    #[test]
    fn windows_of_one_rank_are_no_ranks() {
        let mut attribution = sample::two_ranks();
        let head = |attribution: &Attribution| {
            let lead = lead(attribution);
            lead.split(':').next().unwrap().to_owned()
        };
        assert_eq!(
            head(&attribution),
            "2 steps on each of 2 ranks, median 10.000 ms"
        );
        // One of them was stopped early.
        let mut uneven = attribution.clone();
        uneven.ranks[1].host.steps.truncate(1);
        uneven.runs[0].step_time.as_mut().unwrap().steps = 3;
        assert_eq!(
            head(&uneven),
            "3 steps on 2 ranks together, median 10.000 ms"
        );
        attribution.ranks[1].rank = Some(0);
        attribution.ranks[1].window = 1;
        assert_eq!(head(&attribution), "4 steps in 2 windows, median 10.000 ms");
        attribution.runs[0].step_time = None;
        assert_eq!(
            head(&attribution),
            "no steps, 1 device with 2 device windows of 40.000 ms together"
        );
    }

    #[test]
    fn runs_are_compared_with_the_first() {
        assert_eq!(
            lead(&sample::two_runs()),
            "2 runs, median step: baseline 10.000 ms, ckpt 12.500 ms (+25.0 %)"
        );
    }
}
