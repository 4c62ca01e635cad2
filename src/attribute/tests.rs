//! Each rule by its smallest example.

use super::phase::Phase::{self, Backward, Forward, Optimizer, Other, Recompute};
use super::table::OtherKind;
use super::testing::{attribute, phases_of, sums, trace};
use super::{AttributeOptions, RecomputeEvidence, StepRange, host_operations};
use crate::health::HealthCode;
use crate::units::Ns;

#[test]
fn work_belongs_to_the_phase_of_its_launch_not_of_its_run() {
    let file = attribute(
        "note 9/1 0 100 forward
         note 9/1 100 100 backward
         launch 9/1 99 5 cudaLaunchKernel corr=1
         launch 9/1 100 5 cudaLaunchKernel corr=2
         kernel 0/7 150 10 a corr=1
         kernel 0/7 300 20 b corr=2",
    );
    assert_eq!(sums(&file), [10, 20, 0, 0, 0, 0, 0]);
    assert_eq!(file.totals.total.launches, 2);
}

#[test]
fn the_innermost_annotation_counts_and_framework_ranges_are_annotations() {
    let lines = "note 9/1 0 200 backward
         note 9/1 50 50 Optimizer.step#SGD.step
         op 9/1 10 5 aten::mm
         op 9/1 60 5 aten::mm
         op 9/1 110 5 aten::mm
         op 9/1 210 5 aten::mm";
    assert_eq!(
        phases_of(lines, "aten::mm"),
        [Backward, Optimizer, Backward, Other]
    );
}

#[test]
fn a_thread_without_annotation_has_the_one_phase_open_elsewhere_in_its_process() {
    let file = attribute(
        "note 9/1 0 100 forward
         note 9/1 100 100 backward
         launch 9/2 150 5 cudaLaunchKernel corr=1
         launch 8/2 150 5 cudaLaunchKernel corr=2
         kernel 0/7 160 10 a corr=1
         kernel 0/7 170 20 b corr=2",
    );
    // The other process has no annotation and no operators: nothing says what its thread does.
    assert_eq!(sums(&file), [0, 10, 0, 0, 20, 0, 0]);
}

#[test]
fn of_several_phases_elsewhere_the_main_threads_counts() {
    let lines = "note 9/1 0 300 ProfilerStep#1
         note 9/1 0 100 forward
         note 9/2 0 100 backward
         op 9/3 50 5 aten::mm";
    assert_eq!(phases_of(lines, "aten::mm"), [Forward]);
}

#[test]
fn graph_launches_own_many_kernels_and_count_once() {
    let file = attribute(
        "note 9/1 0 100 forward
         launch 9/1 10 5 cudaGraphLaunch corr=3
         kernel 0/7 20 5 a corr=3
         kernel 0/8 20 6 b corr=3",
    );
    assert_eq!(sums(&file)[0], 11);
    assert_eq!(file.totals.total.launches, 1);
    assert_eq!(file.totals.total.busy_ns, Ns(6000));
    assert_eq!(file.recompute.observable, "no");
}

#[test]
fn work_from_before_the_window_and_work_without_launch_are_kept_apart() {
    let file = attribute(
        "note 9/1 0 100 forward
         launch 9/1 10 5 cudaLaunchKernel corr=10
         kernel 0/7 20 5 a corr=9
         kernel 0/7 30 6 b corr=11
         kernel 0/7 40 7 c corr=0
         kernel 0/7 50 8 d corr=10",
    );
    assert_eq!(sums(&file), [8, 0, 0, 0, 0, 5, 13]);
    assert_eq!(file.coverage.pre_window, 1);
    assert_eq!(file.coverage.unlinked, 2);
}

#[test]
fn flows_and_then_external_ids_link_what_correlation_does_not() {
    let file = attribute(
        "note 9/1 0 100 forward
         note 9/1 100 100 backward
         launch 9/1 5 1 cudaLaunchKernel corr=1
         op 9/1 110 10 aten::mm ext=77
         flow_s 9/1 20 0 ac2g id=500
         flow_f 0/7 50 0 ac2g id=500
         kernel 0/7 50 10 a
         kernel 0/7 70 20 b ext=77
         kernel 0/7 95 40 c corr=78 ext=78",
    );
    assert_eq!(sums(&file), [10, 20, 0, 0, 0, 0, 40]);
    assert_eq!(file.coverage.linked_by.flow, 1);
    assert_eq!(file.coverage.linked_by.external_id, 1);
}

#[test]
fn one_correlation_in_two_processes_is_told_apart_by_external_id() {
    let lines = "note 8/1 0 100 forward
         note 9/1 0 100 backward
         launch 8/1 10 1 cudaLaunchKernel corr=5 ext=1
         launch 9/1 10 1 cudaLaunchKernel corr=5 ext=2
         kernel 0/7 20 10 a corr=5 ext=1
         kernel 1/7 20 20 b corr=5 ext=2
         kernel 1/7 60 40 c corr=5";
    let file = attribute(lines);
    assert_eq!(sums(&file), [10, 20, 0, 0, 0, 0, 40]);
    assert_eq!(file.health.get(HealthCode::AmbiguousLaunch), 1);
    assert_eq!(file.devices.len(), 2);
}

/// One checkpointed block: forward, then its backward node with the replay inside.
fn checkpoint(replay: &str, after: &str) -> String {
    format!(
        "op 9/1 0 10 aten::layer_norm seq=1 dims=[[2]]
         op 9/1 10 10 aten::linear seq=2 dims=[[3]]
         op 9/1 20 2 aten::ones
         op 9/1 22 8 aten::gelu seq=3 dims=[[4]]
         op 9/1 100 90 autograd::engine::evaluate_function: GeluBackward0 seq=3 fwd=1
         op 9/1 101 88 GeluBackward0 seq=3 fwd=1
         {replay}
         {after}"
    )
}

const REPLAY: &str = "op 9/1 102 10 aten::layer_norm seq=9 dims=[[2]]
     op 9/1 112 10 aten::linear seq=10 dims=[[3]]
     op 9/1 113 5 aten::addmm dims=[[3]]
     op 9/1 122 2 aten::ones
     op 9/1 124 6 aten::gelu seq=11 dims=[[4]]";

const GRADIENT: &str = "op 9/1 150 10 aten::gelu_backward dims=[[4]]";

fn recomputed(lines: &str) -> u64 {
    attribute(lines).recompute.ops
}

#[test]
fn replayed_forward_work_in_a_backward_node_is_recompute() {
    let lines = checkpoint(REPLAY, GRADIENT);
    assert_eq!(phases_of(&lines, "aten::layer_norm"), [Forward, Recompute]);
    assert_eq!(phases_of(&lines, "aten::addmm"), [Recompute]);
    assert_eq!(phases_of(&lines, "aten::ones"), [Forward, Recompute]);
    assert_eq!(phases_of(&lines, "aten::gelu_backward"), [Backward]);
    let file = attribute(&lines);
    assert_eq!((file.recompute.regions, file.recompute.ops), (1, 5));
    assert_eq!(file.recompute.evidence, "sequence");
    assert_eq!(file.recompute.observable, "yes");
}

#[test]
fn grad_enabled_work_that_the_forward_does_not_know_is_weak() {
    let lines = checkpoint("op 9/1 102 10 aten::cosh seq=9 dims=[[2]]", GRADIENT);
    let file = attribute(&lines);
    assert_eq!((file.recompute.ops, file.recompute.weak.ops), (0, 1));
    assert_eq!(phases_of(&lines, "aten::cosh"), [Backward]);
}

#[test]
fn a_node_that_never_turns_grad_mode_off_needs_a_long_contiguous_replay() {
    // create_graph: everything in the node has a number, and nothing without follows.
    let short = "op 9/1 102 1 aten::layer_norm seq=9 dims=[[2]]
         op 9/1 103 1 aten::linear seq=10 dims=[[3]]";
    assert_eq!(recomputed(&checkpoint(short, "")), 0);
    let longer = checkpoint(
        "op 9/1 102 1 aten::layer_norm seq=9 dims=[[2]]
         op 9/1 103 1 aten::linear seq=10 dims=[[3]]
         op 9/1 104 1 aten::ones
         op 9/1 105 1 aten::gelu seq=11 dims=[[4]]
         op 9/1 106 1 aten::mul seq=12 dims=[[5]]
         op 9/1 107 1 aten::gelu_backward seq=13 dims=[[4]]",
        "op 9/1 30 10 aten::mul seq=4 dims=[[5]]",
    );
    assert_eq!(recomputed(&longer), 5);
}

#[test]
fn a_nested_engine_run_in_a_region_is_backward_again() {
    let lines = "op 9/1 0 30 CheckpointFunction seq=1
         op 9/1 1 20 aten::linear dims=[[3]]
         op 9/1 100 90 autograd::engine::evaluate_function: CheckpointFunctionBackward seq=1 fwd=1
         op 9/1 101 88 CheckpointFunctionBackward seq=1 fwd=1
         op 9/1 102 10 aten::linear seq=5 dims=[[3]]
         op 9/1 120 60 autograd::engine::evaluate_function: AddmmBackward0 seq=5 fwd=1
         op 9/1 121 50 AddmmBackward0 seq=5 fwd=1
         op 9/1 122 10 aten::mm";
    assert_eq!(phases_of(lines, "aten::linear"), [Forward, Recompute]);
    assert_eq!(phases_of(lines, "aten::mm"), [Backward]);
}

#[test]
fn the_kinds_of_evidence_can_be_asked_for_one_by_one() {
    let lines = format!(
        "frame 9/1 101.5 40 torch/utils/checkpoint.py(1399): recompute_fn\n{}",
        checkpoint(REPLAY, GRADIENT)
    );
    let trace = trace(&lines);
    let count = |evidence| {
        let options = AttributeOptions {
            recompute_evidence: evidence,
            ..Default::default()
        };
        host_operations(&trace, &options)
            .iter()
            .filter(|it| it.recompute.is_some())
            .count()
    };
    assert_eq!(count(RecomputeEvidence::Sequence), 5);
    assert_eq!(count(RecomputeEvidence::Annotation), 0);
    assert_eq!(count(RecomputeEvidence::Stack), 5);
    assert_eq!(attribute(&lines).recompute.evidence, "stack");
    assert_eq!(attribute(&lines).recompute.regions, 1);
}

#[test]
fn without_annotations_the_order_of_events_tells_the_phases() {
    let lines = "note 9/1 0 400 ProfilerStep#4
         op 9/1 5 10 aten::embedding seq=1
         op 9/1 20 2 aten::arange
         op 9/1 40 2 aten::ones_like
         op 9/1 50 20 autograd::engine::evaluate_function: AddmmBackward0 seq=1 fwd=1
         op 9/1 80 5 aten::norm
         note 9/1 100 50 Optimizer.step#Adam.step
         op 9/1 110 5 aten::_foreach_add_
         note 9/1 200 50 Optimizer.zero_grad#Adam.zero_grad
         op 9/1 210 5 aten::zero_
         op 9/1 300 5 aten::item
         launch 9/1 81 1 cudaLaunchKernel corr=1
         launch 9/1 211 1 cudaLaunchKernel corr=2
         kernel 0/7 90 3 a corr=1
         kernel 0/7 220 4 b corr=2";
    let only = |name| phases_of(lines, name)[0];
    let found: Vec<Phase> = [
        "aten::embedding",
        "aten::arange",
        "aten::ones_like",
        "aten::norm",
        "aten::_foreach_add_",
    ]
    .map(only)
    .to_vec();
    assert_eq!(found, [Forward, Forward, Backward, Other, Optimizer]);
    assert_eq!(only("aten::zero_"), Other);
    assert_eq!(only("aten::item"), Other);
    let file = attribute(lines);
    assert_eq!(file.coverage.phases, "inferred");
    assert_eq!(file.totals.other(OtherKind::PostBackward).sum_ns, Ns(3000));
    assert_eq!(file.totals.other(OtherKind::ZeroGrad).sum_ns, Ns(4000));
}

#[test]
fn engine_threads_do_backward_work_only() {
    let lines = "note 9/1 0 400 ProfilerStep#4
         op 9/1 5 10 aten::linear seq=1
         op 9/2 50 20 autograd::engine::evaluate_function: AddmmBackward0 seq=1 fwd=1
         op 9/2 80 5 torch.distributed.ddp.reducer::copy_bucket_to_grad";
    let name = "torch.distributed.ddp.reducer::copy_bucket_to_grad";
    assert_eq!(phases_of(lines, name), [Backward]);
}

#[test]
fn steps_without_ranges_end_with_the_optimizer() {
    let file = attribute(
        "op 9/1 0 10 aten::linear seq=1
         op 9/1 20 10 autograd::engine::evaluate_function: AddmmBackward0 seq=1 fwd=1
         note 9/1 40 10 Optimizer.step#A.step
         note 9/1 55 10 Optimizer.step#B.step
         op 9/1 70 10 aten::linear seq=2
         op 9/1 90 10 autograd::engine::evaluate_function: AddmmBackward0 seq=2 fwd=1
         note 9/1 110 10 Optimizer.step#A.step
         op 9/1 130 10 aten::item",
    );
    let steps: Vec<(&str, i64)> = file
        .host
        .steps
        .iter()
        .map(|step| (step.name.as_str(), step.wall_ns.0))
        .collect();
    assert_eq!(steps, [("step#0", 65_000), ("step#1", 55_000)]);
    assert!(file.steps_inferred);
}

#[test]
fn a_step_on_the_device_lasts_until_its_last_work_ends() {
    let lines = "note 9/1 0 100 ProfilerStep#3
         note 9/1 100 100 ProfilerStep#4
         note 9/1 0 200 forward
         launch 9/1 10 1 cudaLaunchKernel corr=1
         launch 9/1 110 1 cudaLaunchKernel corr=2
         launch 9/1 250 1 cudaLaunchKernel corr=3
         kernel 0/7 90 40 a corr=1
         kernel 0/7 140 30 b corr=2
         kernel 0/7 260 5 c corr=3";
    let file = attribute(lines);
    let steps = &file.devices[0].steps;
    assert_eq!(steps[0].timeline.window_ns, Ns(130_000));
    assert_eq!(steps[1].timeline.window_ns, Ns(70_000));
    assert_eq!(steps[1].timeline.idle_ns, Ns(40_000));
    assert_eq!(file.totals.other(OtherKind::OutsideSteps).sum_ns, Ns(5000));
    let options = AttributeOptions {
        steps: Some(StepRange {
            first: 4,
            last: u64::MAX,
        }),
        ..Default::default()
    };
    let second = super::file::attribute_file(&trace(lines), &options).unwrap();
    assert_eq!(second.totals.total.sum_ns, Ns(30_000));
    assert_eq!(second.devices[0].timeline.window_ns, Ns(70_000));
    assert_eq!(second.host.steps.len(), 1);
}

#[test]
fn the_first_or_last_step_is_partial_when_launches_have_no_work() {
    let file = attribute(
        "note 9/1 0 100 ProfilerStep#3
         note 9/1 100 100 ProfilerStep#4
         launch 9/1 10 1 cudaLaunchKernel corr=1
         launch 9/1 110 1 cudaLaunchKernel corr=2
         launch 9/1 120 1 cudaLaunchKernel corr=3
         kernel 0/7 90 4 a corr=1
         kernel 0/7 140 3 b corr=2",
    );
    let partial: Vec<bool> = file.devices[0]
        .steps
        .iter()
        .map(|step| step.partial)
        .collect();
    assert_eq!(partial, [false, true]);
}

#[test]
fn only_long_overlaps_on_a_bad_lane_are_clipped() {
    let bad = attribute(
        "kernel 0/7 0 100 a
         kernel 0/7 40 100 b
         kernel 0/7 40 10 c
         kernel 0/7 200 10 d",
    );
    assert_eq!(bad.totals.total.sum_ns, Ns((40 + 100 + 10 + 10) * 1000));
    assert_eq!(bad.health.get(HealthCode::LaneOverlapRepaired), 1);
    assert_eq!(bad.health.get(HealthCode::LaneOverlap), 1);
    let entry = bad.health.entries();
    let entry = entry
        .iter()
        .find(|entry| entry.code == "lane_overlap_repaired")
        .unwrap();
    assert_eq!(
        (entry.raw_ns, entry.repaired_ns),
        (Some(220_000), Some(60_000))
    );
    let small = attribute("kernel 0/7 0 10 a\nkernel 0/7 6 10 b");
    assert_eq!(small.totals.total.sum_ns, Ns(20_000));
    let rare = attribute("kernel 0/7 0 10 a\nkernel 0/7 3 10 b\nkernel 0/7 100 9000 c");
    assert_eq!(rare.totals.total.sum_ns, Ns(9_020_000));
}

#[test]
fn self_times_add_up_to_the_union_of_the_operators() {
    let lines = "op 9/1 0 100 outer
         op 9/1 10 50 inner
         op 9/1 20 40.5 bleeding
         op 9/1 200 10 next
         op 9/1 205 20 overlapping";
    let trace = trace(lines);
    let mut operations = host_operations(&trace, &AttributeOptions::default());
    operations.sort_by_key(|operation| trace.events.ts(operation.event));
    let own: Vec<i64> = operations
        .iter()
        .map(|operation| operation.self_ns.0)
        .collect();
    assert_eq!(own, [49_500, 10_000, 40_500, 10_000, 15_000]);
}
