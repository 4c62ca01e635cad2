//! Work grows with the events of a trace, and not with devices times steps, streams times groups or the like.
//!
//! A trace of this size takes seconds with every topic. One loop over all devices inside a loop over all of
//! their work takes a minute, and a table of steps for each device more memory than there is.

use std::any::Any;
use std::fmt::Write as _;

use super::folder::subject_of;
use super::subject::{AnySubject, Inspected};
use super::testing::asked;
use super::view::View;
use super::{Definition, InspectOptions, Topic};
use crate::attribute::{Dissection, attribute_and};
use crate::error::Result;

/// As many devices, steps, streams, process groups and operators.
const MANY: usize = 20_000;

/// Each device has a kernel that its own step launched, and communication of its own group.
fn trace() -> String {
    let mut json =
        r#"{"traceEvents":[{"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}}"#
            .to_owned();
    for number in 0..MANY {
        let at = number * 20;
        let start = at + 8;
        let group = number + 7;
        write!(
            json,
            r#",
{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{number}","pid":1,"tid":1,"ts":{at},"dur":19}},
{{"ph":"X","cat":"cpu_op","name":"op{number}","pid":1,"tid":1,"ts":{at},"dur":6}},
{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{at},"dur":5,"args":{{"correlation":{group}}}}},
{{"ph":"X","cat":"kernel","name":"gemm","pid":{number},"tid":7,"ts":{start},"dur":9,"args":{{"device":{number},"stream":{group},"correlation":{group}}}}},
{{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32","pid":{number},"tid":9,"ts":{start},"dur":9,"args":{{"device":{number},"stream":3,"Process Group Name":"{group}","Seq":1}}}}"#,
        )
        .unwrap();
    }
    json.push_str("]}");
    json
}

/// Every topic with every definition, as all of one file sees it.
fn topics() -> Vec<(Topic, Definition)> {
    Topic::ALL
        .into_iter()
        .flat_map(|topic| topic.definitions().iter().map(move |whose| (topic, *whose)))
        .collect()
}

#[test]
fn many_devices_steps_streams_and_groups_take_no_more_than_their_events() {
    let topics = topics();
    let subjects: Vec<Box<dyn AnySubject>> =
        topics.iter().map(|(topic, _)| subject_of(*topic)).collect();
    let look = |dissection: &Dissection<'_>, content: &[u8]| {
        let looked = topics
            .iter()
            .zip(&subjects)
            .map(|((topic, whose), subject)| {
                let options = InspectOptions {
                    by: topic.groups_by(*whose).to_vec(),
                    definition: *whose,
                    top: 0,
                    ..InspectOptions::default()
                };
                subject.look(&View::new(dissection, content, &options))
            });
        looked.collect::<Result<Vec<Box<dyn Any + Send>>>>()
    };
    let (attribution, seen) = asked(&trace(), |request| {
        attribute_and(request, &|_| {}, look).unwrap()
    });
    assert_eq!(attribution.ranks[0].devices.len(), MANY);
    let [seen] = <[_; 1]>::try_from(seen).unwrap();
    for (((topic, whose), subject), seen) in topics.iter().zip(&subjects).zip(seen) {
        let frames = subject.tables(Inspected::of(&attribution, vec![seen]));
        let rows: usize = frames.iter().map(super::Frame::len).sum();
        // A queue has a hundred rows.
        assert!(
            rows <= 128 * MANY,
            "{} {whose:?}: {rows} rows",
            topic.name()
        );
    }
}
