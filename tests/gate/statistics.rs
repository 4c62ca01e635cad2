//! Whether repeats as samples keep the error rates that they state, by simulation.

use tracekit::gate::{Decision, Json, Samples, StatisticsOptions, judge_samples};

use super::program::run;
use super::{chain::Chain, chain::STRATEGY};

/// Normal numbers that are the same every time: SplitMix64 and the method of Box and Muller.
struct Normal(u64);

impl Normal {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((mixed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn next(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let angle = 2.0 * std::f64::consts::PI * self.uniform();
        mean + deviation * radius * angle.cos()
    }

    fn runs(&mut self, count: usize, mean: f64, deviation: f64) -> Vec<f64> {
        (0..count).map(|_| self.next(mean, deviation)).collect()
    }
}

/// One workload of a family: gain that is true, and spread of its sides.
#[derive(Clone, Copy)]
struct Truth {
    gain: f64,
    deviations: [f64; 2],
}

fn family(random: &mut Normal, truths: &[Truth], repeats: usize, threshold: f64) -> Vec<Samples> {
    truths
        .iter()
        .enumerate()
        .map(|(number, truth)| Samples {
            subject: format!("w{number}"),
            role: if number == 0 { "primary" } else { "adjacent" },
            metric: "step_time_ms",
            baseline: random.runs(repeats, 100.0, truth.deviations[0]),
            candidate: random.runs(repeats, 100.0 - truth.gain, truth.deviations[1]),
            threshold,
            more_is_better: false,
        })
        .collect()
}

const TRIALS: usize = 1_500;

/// Without asking how many repeats would be needed.
fn quick() -> StatisticsOptions {
    StatisticsOptions {
        resolution: 0.0,
        ..StatisticsOptions::default()
    }
}

/// `alpha` and three standard errors of its estimate.
fn at_most(alpha: f64) -> f64 {
    alpha + 3.0 * (alpha * (1.0 - alpha) / TRIALS as f64).sqrt()
}

#[test]
fn all_intervals_together_are_wrong_at_most_as_often_as_stated() {
    let options = quick();
    let truth = |deviations| Truth {
        gain: 5.0,
        deviations,
    };
    for (repeats, deviations) in [
        (3, [1.0, 1.0]),
        (5, [1.0, 1.0]),
        (5, [1.0, 2.0]),
        (10, [3.0, 1.0]),
    ] {
        for workloads in [1, 3] {
            let mut random = Normal(repeats as u64 * 31 + workloads as u64);
            let truths = vec![truth(deviations); workloads];
            let wrong = (0..TRIALS)
                .filter(|_| {
                    let samples = family(&mut random, &truths, repeats, 0.0);
                    let verdict = judge_samples(&samples, options);
                    verdict.metrics.iter().any(|metric| {
                        let bounds = metric.interval.unwrap();
                        bounds.low > 5.0 || bounds.high < 5.0
                    })
                })
                .count();
            let rate = wrong as f64 / TRIALS as f64;
            assert!(
                rate <= at_most(options.alpha),
                "{repeats} repeats, {workloads} workloads, {deviations:?}: {rate}"
            );
        }
    }
}

#[test]
fn a_change_that_misses_a_threshold_anywhere_is_accepted_at_most_as_often_as_stated() {
    let options = quick();
    let clear = Truth {
        gain: 30.0,
        deviations: [1.0, 1.0],
    };
    // One workload of three is just short of the threshold: the hardest case.
    let short = Truth {
        gain: 9.999,
        ..clear
    };
    for repeats in [3, 5] {
        let mut random = Normal(repeats as u64);
        let (mut accepted, mut rejected) = (0, 0);
        for _ in 0..TRIALS {
            let samples = family(&mut random, &[clear, short, clear], repeats, 10.0);
            match judge_samples(&samples, options).decision {
                Decision::Accept => accepted += 1,
                Decision::Reject => rejected += 1,
                Decision::Tune => {}
            }
        }
        for (what, count) in [("accepted", accepted), ("rejected", rejected)] {
            let rate = f64::from(count) / TRIALS as f64;
            assert!(
                rate <= at_most(options.alpha),
                "{what} {rate} of {repeats} repeats"
            );
        }
    }
}

#[test]
fn enough_repeats_tell_the_wanted_resolution() {
    // A gain of 2 % above the threshold, with the repeats that a first look says are needed.
    let options = StatisticsOptions::default();
    let truth = Truth {
        gain: 12.0,
        deviations: [1.0, 1.0],
    };
    let mut random = Normal(7);
    let first = family(&mut random, &[truth], 30, 10.0);
    let needed = judge_samples(&first, options).metrics[0]
        .needed_repeats
        .unwrap();
    assert!((3..=8).contains(&needed), "{needed}");
    let told = (0..TRIALS)
        .filter(|_| {
            // Half an interval is the resolution then, so about half of them tell; with four times the
            // repeats nearly all do.
            let samples = family(&mut random, &[truth], needed * 4, 10.0);
            judge_samples(&samples, quick()).decision == Decision::Accept
        })
        .count();
    assert!(told * 10 > TRIALS * 9, "{told} of {TRIALS}");
}

#[test]
fn statistics_stand_beside_the_decision() {
    let chain = Chain::with_strategies();
    let path = chain.at(STRATEGY);
    let path = path.to_str().unwrap();
    let plain = run(&["gate", "strategies", path, "--format", "json"]).json(3);
    let with = run(&[
        "gate",
        "strategies",
        path,
        "--format",
        "json",
        "--statistics",
    ])
    .json(3);
    assert!(plain.get("statistics").is_none());
    for key in ["decision", "reason", "result", "checks"] {
        assert_eq!(plain.at(&[key]), with.at(&[key]));
    }
    let statistics = with.at(&["statistics"]);
    assert_eq!(statistics.at(&["decision"]).as_str(), Some("reject"));
    let memory = &statistics.at(&["metrics"]).items()[0];
    assert_eq!(memory.at(&["subject"]).as_str(), Some("checkpoint"));
    assert_eq!(memory.at(&["difference"]).as_f64(), Some(331.98));
    assert_eq!(memory.at(&["decision"]).as_str(), Some("reject"));
    let text = run(&["gate", "strategies", path, "--statistics", "--alpha", "0.1"]);
    assert!(text.out.contains("Repeats as samples"), "{}", text.out);
    assert!(run(&["gate", "strategies", path, "--alpha", "0.1"]).code == 2);
    let refused = run(&["gate", "strategies", path, "--statistics", "--alpha", "1.5"]);
    assert!(refused.refused().contains("above 0 and below 1"));
}

#[test]
fn workloads_are_judged_together() {
    let folder = tempfile::tempdir().unwrap();
    let runs = |times: [f64; 4]| -> Vec<Json> {
        times
            .iter()
            .map(|time| {
                let mut run = Json::object();
                run.set("step_time_ms", *time);
                run.set("quality", 1.0);
                run
            })
            .collect()
    };
    let vectors = super::list("vectors.json");
    let vector = |id: &str| {
        let found = vectors
            .iter()
            .find(|one| one.at(&["id"]).as_str() == Some(id));
        found.unwrap().at(&["input"]).clone()
    };
    let mut input = vector("contract-0");
    input.set("original_bottleneck", "backward");
    let records = input.get_mut("workload_records").unwrap().items_mut();
    records[0].set("baseline_runs", runs([119.8, 120.2, 120.0, 119.9]));
    records[0].set("candidate_runs", runs([105.1, 104.8, 105.0, 105.2]));
    records[1].set("baseline_runs", runs([70.0, 70.1, 69.9, 70.0]));
    records[1].set("candidate_runs", runs([68.2, 67.9, 68.0, 68.1]));
    let path = folder.path().join("regression.json");
    std::fs::write(&path, input.to_text()).unwrap();
    let path = path.to_str().unwrap();
    let found = run(&[
        "gate",
        "regression",
        path,
        "--statistics",
        "--format",
        "json",
    ])
    .json(0);
    let statistics = found.at(&["statistics"]);
    assert_eq!(statistics.at(&["decision"]).as_str(), Some("accept"));
    assert_eq!(statistics.at(&["metrics"]).items().len(), 4);
    assert_eq!(
        statistics.at(&["interval_confidence"]).as_f64(),
        Some(0.9875)
    );
    // Noise hides the gain of the primary workload: the decision stays, its statistics do not clear it.
    let records = input.get_mut("workload_records").unwrap().items_mut();
    records[0].set("candidate_runs", runs([95.0, 118.0, 99.0, 108.0]));
    std::fs::write(path, input.to_text()).unwrap();
    let found = run(&[
        "gate",
        "regression",
        path,
        "--statistics",
        "--format",
        "json",
    ])
    .json(0);
    assert_eq!(found.at(&["statistics", "decision"]).as_str(), Some("tune"));
    assert_eq!(
        found.at(&["statistics", "reason"]).as_str(),
        Some("inconclusive")
    );
}
