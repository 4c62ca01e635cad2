//! Pictures read back: what is drawn is what the JSON of the report says, to the pixel.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tracekit::attribute::{AttributeOptions, Request};
use tracekit::compare::{CompareOptions, compare_paths};
use tracekit::ingest::IngestOptions;
use tracekit::inspect::survey_paths;
use tracekit::report::{Document, OverviewParts, html, json, overview_document, svg};

use crate::report::traces;
use crate::support::drawing::{Mark, marks, plain, scale};
use crate::support::package;
use crate::support::page::says;
use crate::support::training::{Training, trace};

/// The report on `path`; of two sides when there is a `base`.
fn document(path: &Path, base: Option<&Path>) -> Option<Document> {
    let options = AttributeOptions::default();
    let bases: Vec<PathBuf> = base.iter().map(|base| base.to_path_buf()).collect();
    let paths = [path.to_owned()];
    let request = |paths| Request {
        paths,
        ingest: IngestOptions::default(),
        options: &options,
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: false,
        salvage: None,
    };
    let survey = survey_paths(&request(&paths), &|_| {}).ok()?;
    let comparison = base.map(|_| {
        let options = CompareOptions::default();
        compare_paths(&request(&bases), &request(&paths), &options, &|_| {}).unwrap()
    });
    Some(overview_document(OverviewParts {
        survey: &survey,
        comparison: comparison.as_ref(),
        inferences: None,
        decisions: &[],
        verbose: false,
    }))
}

/// Every picture of a kind in the reports on `paths`: its marks, and what the JSON says about it.
fn pictures(kind: &str, paths: &[PathBuf], base: Option<&Path>) -> Vec<(Vec<Mark>, Value)> {
    let mut found = Vec::new();
    for path in paths {
        let Some(document) = document(path, base) else {
            continue;
        };
        let report: Value = serde_json::from_str(&json::render(&document).unwrap()).unwrap();
        let known = charts(&report);
        let drawn = svg::charts(&document).map(svg::render);
        let both = drawn.zip(known).filter(|(_, chart)| chart["kind"] == kind);
        found.extend(both.map(|(drawn, chart)| (marks(&drawn), chart.clone())));
    }
    found
}

fn charts(report: &Value) -> impl Iterator<Item = &Value> {
    let sections = report["sections"].as_array().unwrap().iter();
    let blocks = sections.flat_map(|section| section["blocks"].as_array().unwrap());
    blocks.filter_map(|block| block.get("chart"))
}

fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn bars_are_as_long_as_what_they_say() {
    let mut bars = 0;
    for (marks, chart) in pictures("bars", &traces(), None) {
        let (along, size, start) = match scale(&marks, "x") {
            Some(scale) => (scale, "width", "x"),
            None => (scale(&marks, "y").unwrap(), "height", "y"),
        };
        let told = |mark: &&Mark| mark.kind == "rect" && mark.says.contains(" (");
        let drawn: Vec<&Mark> = marks.iter().filter(told).collect();
        for mark in &drawn {
            let (of, said) = mark.says.rsplit_once(": ").unwrap();
            let (label, name) = of.rsplit_once(", ").unwrap();
            let fits = |part: &&Value| {
                part["name"] == name && {
                    let length = (number(&part["value"]) * 1e-6 * along.each).abs();
                    let (time, share) = said.split_once(" ms (").unwrap();
                    says(time, &part["value"], Some("ms"))
                        && says(share.trim_end_matches(" %)"), &part["share"], Some("%"))
                        && (mark.number(size) - length).abs() <= 2.0
                }
            };
            let known = items(&chart, "bars").iter();
            let mut known = known.filter(|bar| bar["label"] == label);
            let found = known.any(|bar| items(bar, "parts").iter().any(|part| fits(&part)));
            assert!(found, "{mark:?} is not in {chart}");
            bars += 1;
        }
        // The parts of a bar follow each other without a hole.
        for pair in drawn.windows(2) {
            let label = |mark: &Mark| mark.says.rsplit_once(", ").unwrap().0.to_owned();
            if label(pair[0]) == label(pair[1]) {
                let gap = if start == "x" {
                    pair[1].number("x") - pair[0].number("x") - pair[0].number("width")
                } else {
                    pair[0].number("y") - pair[1].number("y") - pair[1].number("height")
                };
                assert!(gap.abs() <= 1.0, "{gap} between {pair:?}");
            }
        }
    }
    assert!(bars > 200, "only {bars} parts of bars");
}

#[test]
fn cells_of_a_heat_table_say_their_time_and_share() {
    let mut cells = 0;
    for (marks, chart) in pictures("heat", &traces(), None) {
        let mut drawn = marks
            .iter()
            .zip(marks.iter().skip(1))
            .filter(|(mark, _)| mark.kind == "rect" && mark.says.contains(" ms ("));
        let mut shades: Vec<(f64, f64)> = Vec::new();
        for row in items(&chart, "rows") {
            let values = items(row, "cells").iter().zip(items(row, "shares"));
            for ((value, share), column) in values.zip(items(&chart, "columns")) {
                let (mark, text) = drawn.next().unwrap();
                let (of, said) = mark.says.split_once(": ").unwrap();
                let (time, part) = said.split_once(" ms (").unwrap();
                let label = row["label"].as_str().unwrap();
                assert_eq!(of, format!("{label}, {}", column.as_str().unwrap()));
                assert!(says(time, value, Some("ms")), "{said} for {value}");
                assert!(says(part.trim_end_matches(" %)"), share, Some("%")));
                // What stands in the cell is the same.
                assert_eq!(text.says, time);
                let inside = text.number("x") - mark.number("x");
                assert!(inside > 0.0 && inside < mark.number("width"));
                let shade = match mark.text("fill") {
                    "#5B9FDB" => mark.number("opacity"),
                    empty => {
                        assert_eq!((empty, share), ("#E6EAEF", &Value::from(0.0)));
                        0.0
                    }
                };
                shades.push((number(share), shade));
                cells += 1;
            }
        }
        assert!(drawn.next().is_none());
        // More is deeper: more of the one colour lies on the empty cell.
        shades.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(shades.is_sorted_by(|a, b| a.1 <= b.1), "{shades:?}");
    }
    assert!(cells > 200, "only {cells} cells");
}

#[test]
fn timelines_are_drawn_where_and_as_large_as_their_bins() {
    let (mut lanes, mut places) = (0, 0);
    for (marks, chart) in pictures("timeline", &traces(), None) {
        // Captures of a nanosecond or so have no scale to read.
        let Some(scale) = scale(&marks, "x") else {
            continue;
        };
        let x = |ns: f64| scale.place(ns * 1e-6);
        // Each lane stands on a ground of its own, which tells where its strips are.
        let grounds = marks
            .iter()
            .filter(|mark| mark.kind == "rect" && mark.text("fill") == "#E6EAEF");
        let names = ["classes", "buckets"];
        let keys = names.map(|field| items(&chart, field).len());
        for (ground, lane) in grounds.zip(items(&chart, "lanes")) {
            let (top, tall) = (ground.number("y"), (ground.number("height") - 1.0) / 2.0);
            for (strip, (field, kinds)) in names.into_iter().zip(keys).enumerate() {
                let top = top + strip as f64 * (tall + 1.0);
                let within = |mark: &&Mark| {
                    let ys = mark.points();
                    mark.kind == "polygon" && ys.iter().all(|(_, y)| (top..=top + tall).contains(y))
                };
                let drawn: Vec<&Mark> = marks.iter().filter(within).collect();
                let mut colours: Vec<Option<&str>> = vec![None; kinds];
                for bin in items(lane, "bins") {
                    let bin = bin.as_array().unwrap();
                    let parts = bin[2 + strip].as_array().unwrap();
                    let [kind, time] = parts.as_slice() else {
                        continue;
                    };
                    // One kind all along, wide enough to be seen: it is there, and alone.
                    let (start, length) = (number(&bin[0]), number(&bin[1]));
                    if time != &bin[1] || length * 1e-6 * scale.each < 7.0 {
                        continue;
                    }
                    let middle = (x(start + length / 2.0), top + tall / 2.0);
                    let there: Vec<&str> = drawn
                        .iter()
                        .filter(|mark| mark.covers(middle))
                        .map(|mark| mark.text("fill"))
                        .collect();
                    let kind = usize::try_from(kind.as_u64().unwrap()).unwrap();
                    assert_eq!(there.len(), 1, "{field} at {middle:?} of {lane}");
                    assert_eq!(*colours[kind].get_or_insert(there[0]), there[0]);
                    places += 1;
                }
                // All together, the strip is as full as the device was busy, but for ends between two pixels.
                let sum = |bins: &[Value]| -> f64 {
                    let parts = bins
                        .iter()
                        .flat_map(|bin| bin[2 + strip].as_array().unwrap());
                    parts.skip(1).step_by(2).map(number).sum()
                };
                let busy = sum(items(lane, "bins")) * 1e-6 * scale.each * tall;
                let area: f64 = drawn.iter().map(|mark| mark.area()).sum();
                let bound = ground.number("width") * tall * 0.08 + 4.0 * tall;
                assert!((area - busy).abs() <= bound, "{area} for {busy} in {field}");
            }
            lanes += 1;
        }
    }
    assert!(lanes > 30 && places > 100, "{lanes} lanes, {places} places");
}

#[test]
fn the_data_of_the_page_is_that_of_the_json() {
    let mut timelines = 0;
    for path in traces() {
        let Some(document) = document(&path, None) else {
            continue;
        };
        let report: Value = serde_json::from_str(&json::render(&document).unwrap()).unwrap();
        let page = html::render(&document);
        let data = page.split("<script type=\"application/json\"").skip(1);
        let data = data.map(|rest| {
            let text = rest.split_once('>').unwrap().1;
            serde_json::from_str::<Value>(text.split("</script>").next().unwrap()).unwrap()
        });
        let known: Vec<&Value> = charts(&report)
            .filter(|chart| chart["kind"] == "timeline")
            .collect();
        let data: Vec<Value> = data.collect();
        assert_eq!(data.len(), known.len());
        for (data, known) in data.iter().zip(known) {
            assert_eq!(&data["chart"], known);
            timelines += 1;
        }
        // The picture without the script is the one of the SVG file.
        for chart in svg::charts(&document) {
            assert!(page.contains(&svg::render(chart)), "{}", chart.name);
        }
    }
    assert!(timelines > 20, "only {timelines} timelines");
}

#[test]
fn curves_of_memory_pass_through_their_points() {
    let mut points = 0;
    for (marks, chart) in pictures("levels", &[package("fixtures/traces")], None) {
        let (across, up) = (scale(&marks, "x").unwrap(), scale(&marks, "y").unwrap());
        let curves: Vec<&Mark> = marks
            .iter()
            .filter(|mark| mark.kind == "polyline" && mark.text("stroke-width") == "2")
            .collect();
        let lines = items(&chart, "lines");
        assert_eq!(curves.len(), lines.len());
        for (curve, line) in curves.iter().zip(lines) {
            let corners = curve.points();
            for point in line["points"].as_array().unwrap() {
                let mib = number(&point[1]) / f64::from(1 << 20);
                let place = (across.place(number(&point[0]) * 1e-6), up.place(mib));
                let near =
                    |(x, y): &(f64, f64)| (x - place.0).abs() <= 1.6 && (y - place.1).abs() <= 1.6;
                assert!(corners.iter().any(near), "{place:?} of {line}");
                points += 1;
            }
            let peak = marks.iter().find_map(|mark| {
                let (label, peak) = mark.says.split_once(", peak ")?;
                (line["label"] == label).then(|| peak.trim_end_matches(" MiB"))
            });
            assert!(says(peak.unwrap(), &line["peak_bytes"], Some("MiB")));
        }
    }
    assert!(points > 100, "only {points} points");
}

#[test]
fn changes_stand_at_their_size_with_their_interval() {
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str, pace: u32| {
        let folder = folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let training = Training {
            rank: 0,
            ranks: 1,
            steps: 12,
            kernels: 20,
            pace,
        };
        std::fs::write(folder.join("trace.json"), trace(training)).unwrap();
        folder
    };
    let base = written("base", 100);
    let candidates = [
        written("slower", 140),
        written("faster", 70),
        written("same", 100),
    ];
    let (mut rows, mut intervals) = (0, 0);
    for (marks, chart) in pictures("changes", &candidates, Some(&base)) {
        let scale = scale(&marks, "x").unwrap();
        let x = |ratio: &Value| {
            let percent = number(ratio) * 100.0;
            // Changes beyond the border stand at it.
            scale
                .place(percent.clamp(-300.0, 300.0))
                .clamp(250.0, 720.0)
        };
        for row in items(&chart, "rows") {
            let label = row["label"].as_str().unwrap();
            let mark = marks
                .iter()
                .find(|mark| mark.kind == "rect" && mark.says.starts_with(&format!("{label}: ")));
            let mark = mark.unwrap_or_else(|| panic!("{label} is not drawn"));
            let said = plain(&mark.says[label.len() + 2..]);
            let (change, rest) = said.split_once(" %, ").unwrap();
            assert!(
                says(change.trim_start_matches('+'), &row["change"], Some("%")),
                "{said}"
            );
            assert!(rest.starts_with(row["verdict"].as_str().unwrap()), "{said}");
            let middle = mark.number("x") + mark.number("width") / 2.0;
            assert!(
                (middle - x(&row["change"])).abs() <= 2.0,
                "{middle} for {row}"
            );
            if let Some([low, high]) = row["interval"].as_array().map(Vec::as_slice) {
                let ends = rest.split_once(" (").unwrap().1.trim_end_matches(" %)");
                let (from, to) = ends.split_once(" to ").unwrap();
                for (said, end) in [(from, low), (to, high)] {
                    assert!(
                        says(said.trim_start_matches('+'), end, Some("%")),
                        "{said} for {end}"
                    );
                }
                let y = mark.number("y") + mark.number("height") / 2.0;
                let whisker = marks.iter().any(|mark| {
                    let points = mark.points();
                    let near = |place: &(f64, f64), end| {
                        (place.0 - x(end)).abs() <= 2.0 && (place.1 - y).abs() <= 1.0
                    };
                    matches!(points.as_slice(), [a, b] if near(a, low) && near(b, high))
                });
                assert!(whisker, "no line from {low} to {high}");
                intervals += 1;
            }
            rows += 1;
        }
    }
    assert!(
        rows > 5 && intervals > 0,
        "{rows} rows, {intervals} intervals"
    );
}

#[test]
fn what_is_new_or_gone_or_beyond_the_border_is_drawn_as_such() {
    let sides = ["baseline", "checkpoint"].map(|name| package("fixtures/traces").join(name));
    let states = [("new", 1.0), ("gone", -1.0)];
    for ((state, way), [base, candidate]) in states
        .into_iter()
        .zip([[&sides[0], &sides[1]], [&sides[1], &sides[0]]])
    {
        let found = pictures("changes", std::slice::from_ref(candidate), Some(base));
        let (marks, chart) = &found[0];
        let mut rows = items(chart, "rows").iter();
        let row = rows.find(|row| row["label"] == "recompute (host time, mean)");
        let row = row.unwrap_or_else(|| panic!("recompute is not in {chart}"));
        assert_eq!(row["state"], state);
        assert_eq!(row["change"].is_null(), state == "new");
        let says_so = format!("recompute (host time, mean): {state}: ");
        let mut drawn = marks.iter().filter(|mark| mark.says.starts_with(&says_so));
        let mark = drawn.next().unwrap();
        let time = mark.says[says_so.len()..].split_once(" ms, ").unwrap().0;
        assert!(says(time, &row["time_ns"], Some("ms")), "{time} for {row}");
        // Only what is new is beyond the axis.
        assert_eq!(arrow(marks, mark), (state == "new").then_some(way));
    }
    let folder = tempfile::tempdir().unwrap();
    let [base, slow, slowest] = [100, 250, 900].map(|pace| {
        let path = folder.path().join(format!("{pace}.json"));
        let training = Training {
            rank: 0,
            ranks: 1,
            steps: 12,
            kernels: 20,
            pace,
        };
        std::fs::write(&path, trace(training)).unwrap();
        path
    });
    for (candidate, beyond) in [(slow, None), (slowest, Some(1.0))] {
        let found = pictures("changes", &[candidate], Some(&base));
        let mut marks = found[0].0.iter();
        let label = "forward (device time, mean): +";
        let mark = marks.find(|mark| mark.says.starts_with(label)).unwrap();
        assert_eq!(arrow(&found[0].0, mark), beyond, "{}", mark.says);
    }
}

/// Which way the arrow beside a mark leads, where there is one.
fn arrow(marks: &[Mark], mark: &Mark) -> Option<f64> {
    let middle = mark.number("y") + mark.number("height") / 2.0;
    let arrows = marks.iter().filter(|mark| mark.kind == "polygon");
    let mut tips = arrows.filter_map(|arrow| {
        let points = arrow.points();
        let tip = *points.iter().find(|(_, y)| (y - middle).abs() < 0.5)?;
        Some((tip.0 - mark.number("x") - mark.number("width") / 2.0).signum())
    });
    tips.next_back()
}

#[test]
fn the_largest_part_is_the_one_of_the_verdict() {
    let mut pictures = 0;
    for path in traces() {
        let Some(document) = document(&path, None) else {
            continue;
        };
        let report: Value = serde_json::from_str(&json::render(&document).unwrap()).unwrap();
        let chart = charts(&report).find(|chart| chart["name"] == "phases");
        let Some(chart) = chart else { continue };
        let caption = chart["caption"].as_str().unwrap();
        if !caption.starts_with("Time on the device by phase and step") {
            continue;
        }
        let about = chart["about"].as_str().unwrap();
        let (_, largest) = about.split_once(" is ").unwrap();
        let told = largest.trim_end_matches('.').replace(" with ", " ");
        let verdict = report["verdict"].as_str().unwrap();
        assert!(verdict.contains(&told), "{path:?}: {told} in {verdict}");
        pictures += 1;
    }
    assert!(pictures > 10, "only {pictures} pictures");
}

/// A trace of so many equal steps of operators, without a device.
fn host_steps(steps: u32) -> String {
    let event = |cat: &str, name: &str, at: u32, length: u32| {
        format!(
            r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":1,"tid":1,"ts":{at},"dur":{length}}}"#
        )
    };
    let events: Vec<String> = (0..steps)
        .flat_map(|step| {
            let name = format!("ProfilerStep#{step}");
            [
                event("user_annotation", &name, step * 1_000, 900),
                event("cpu_op", "aten::mm", step * 1_000 + 100, 680),
            ]
        })
        .collect();
    format!(r#"{{"traceEvents":[{}]}}"#, events.join(","))
}

#[test]
fn runs_of_different_lengths_are_compared_by_the_step() {
    let folder = tempfile::tempdir().unwrap();
    for (name, steps) in [("long", 10), ("short", 2)] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        let path = folder.path().join(name).join("trace.json");
        std::fs::write(path, host_steps(steps)).unwrap();
    }
    let document = document(folder.path(), None).unwrap();
    let report: Value = serde_json::from_str(&json::render(&document).unwrap()).unwrap();
    let chart = charts(&report)
        .find(|chart| chart["name"] == "runs")
        .unwrap();
    let totals: Vec<f64> = items(chart, "bars")
        .iter()
        .map(|bar| number(&bar["total"]))
        .collect();
    assert_eq!(totals, [680_000.0, 680_000.0]);
    assert!(
        chart["caption"]
            .as_str()
            .unwrap()
            .contains("divided by its steps")
    );
}
