//! What rules count and what they do not.

use tracekit::infer::{Thresholds, Verdict};

use super::{Sketch, busy, check, check_verdict, effect, hungry, inferred, synchronising};

impl Sketch {
    /// A kernel of 1000 us at `at`, beside which memory is taken and all but `kept` bytes of it given back.
    pub(super) fn allocate(&mut self, at: u64, kept: u64) {
        self.kernel("elementwise", at, 1000);
        for (ts, bytes, total) in [
            (at + 100, "4096".to_owned(), at * 1000 + 4096),
            (at + 200, format!("-{}", 4096 - kept), at * 1000 + kept),
        ] {
            self.events.push(format!(
                r#"{{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":1,"ts":{ts},"args":{{"Device Type":1,"Device Id":0,"Addr":{at},"Bytes":{bytes},"Total Allocated":{total},"Total Reserved":9000000}}}}"#
            ));
        }
    }
}

#[test]
fn memory_that_only_the_first_steps_keep_does_not_grow() {
    let steps = |growing: u64| {
        let mut sketch = Sketch::with_steps(&[1000; 10]);
        for step in 0..10 {
            let kept = if step < growing { 512 } else { 0 };
            sketch.allocate(1000 + step * 1000, kept);
        }
        sketch
    };
    check("allocator_growth", Verdict::Refuted, &[steps(3)]);
    check("allocator_growth", Verdict::Supported, &[steps(10)]);
}

#[test]
fn calls_of_every_vendor_and_spelling_count_for_rules() {
    for cat in [
        "cuda_runtime",
        "cuda_driver",
        "hip_runtime",
        "runtime",
        "Runtime",
        "xpu_runtime",
    ] {
        let calls = Sketch::new(|sketch, at| {
            sketch.kernel("elementwise", at, 1000);
            sketch.host(cat, "hipMemcpyWithStream", at + 100, 10);
        });
        let inferences = inferred(&[calls], &Thresholds::default());
        check_verdict("memory_copies", Verdict::InsufficientEvidence, &inferences);
        check_verdict(
            "pageable_transfers",
            Verdict::InsufficientEvidence,
            &inferences,
        );
        check_verdict("allocator_growth", Verdict::Refuted, &inferences);
    }
}

#[test]
fn the_median_of_an_even_number_of_steps_lies_between_the_middle_ones() {
    // 1500 us: one step takes 500 more and one 2500.
    let steps = Sketch::with_steps(&[4000, 1000, 2000, 1000]);
    assert_eq!(effect("warm_up_or_noise", steps), 500 + 2500);
}

#[test]
fn little_is_not_told_as_nothing() {
    let mut calling = busy();
    calling.host("cuda_runtime", "cudaMalloc", 2500, 1);
    let inferences = inferred(&[calling], &Thresholds::default());
    let mut all = inferences.runs[0].inferences.iter();
    let found = all.find(|inference| inference.code == "allocator_growth");
    assert_eq!(
        found.unwrap().summary,
        "1 call to the driver for memory takes only <0.1 % of the window"
    );
}

#[test]
fn the_loader_is_found_in_every_spelling_of_its_category() {
    for cat in ["user_annotation", "cpu_op", "Operator", "operator", "net"] {
        let mut spelled = hungry();
        for event in &mut spelled.events {
            if event.contains("DataLoader") {
                *event = event.replace("\"user_annotation\"", &format!("{cat:?}"));
            }
        }
        check("data_loading", Verdict::Supported, &[spelled]);
    }
}

#[test]
fn events_with_impossible_times_count_for_no_rule() {
    let with = |mut sketch: Sketch, times: &str| {
        for name in [
            "cudaStreamSynchronize",
            "cudaMalloc",
            "enumerate(DataLoader)#x",
        ] {
            for cat in ["cuda_runtime", "user_annotation"] {
                sketch.events.push(format!(
                    r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":1,"tid":1,{times}}}"#
                ));
            }
        }
        sketch
    };
    let expected = effect("synchronisation", synchronising());
    for times in [
        r#""ts":1500,"dur":-5000000"#,
        r#""ts":1500,"dur":9000000000000000"#,
        r#""ts":-9000000000000000,"dur":9000000000000000"#,
    ] {
        assert_eq!(
            effect("synchronisation", with(synchronising(), times)),
            expected,
            "{times}"
        );
        for inference in
            &inferred(&[with(busy(), times)], &Thresholds::default()).runs[0].inferences
        {
            let share = inference.effect.map_or(0.0, |effect| effect.share);
            assert!((0.0..=1.0).contains(&share), "{times}: {inference:#?}");
            if ["data_loading", "allocator_growth"].contains(&inference.code.as_str()) {
                assert_ne!(
                    inference.verdict,
                    Verdict::Supported,
                    "{times}: {inference:#?}"
                );
            }
        }
    }
}
