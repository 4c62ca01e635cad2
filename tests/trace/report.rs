//! The report: every number in every format is that of its JSON, and whatever is in a trace stays text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tracekit::attribute::{AttributeOptions, Request};
use tracekit::compare::{CompareOptions, Comparison, compare_paths};
use tracekit::ingest::IngestOptions;
use tracekit::inspect::{Survey, survey_paths};
use tracekit::report::{
    Document, OverviewParts, attribution_rows, brief_document, csv, html, json, markdown,
    overview_document, svg,
};

use crate::support::page::{json_tables, read_back, says, tables};
use crate::support::rich::rich;
use crate::support::training::{Training, trace};
use crate::support::{folders_in, package};

fn survey(path: &Path) -> Option<Survey> {
    survey_of(&[path.to_owned()])
}

fn survey_of(paths: &[PathBuf]) -> Option<Survey> {
    let options = AttributeOptions::default();
    survey_paths(&request(paths, &options), &|_| {}).ok()
}

/// The first path against the second.
fn compared([base, candidate]: &[PathBuf; 2]) -> Comparison {
    let options = AttributeOptions::default();
    let [base, candidate] = [base, candidate].map(|path| vec![path.clone()]);
    let [base, candidate] = [&base, &candidate].map(|paths| request(paths, &options));
    compare_paths(&base, &candidate, &CompareOptions::default(), &|_| {}).unwrap()
}

fn request<'a>(paths: &'a [PathBuf], options: &'a AttributeOptions) -> Request<'a> {
    Request {
        paths,
        ingest: IngestOptions::default(),
        options,
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: true,
        salvage: None,
    }
}

fn document(survey: &Survey) -> Document {
    overview_document(parts(survey))
}

fn parts(survey: &Survey) -> OverviewParts<'_> {
    OverviewParts {
        survey,
        comparison: None,
        inferences: None,
        decisions: &[],
        verbose: false,
    }
}

/// Every golden trace and the samples.
pub(crate) fn traces() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = folders_in(&package("fixtures/golden"))
        .iter()
        .map(|case| {
            let folder = case.join("trace");
            if folder.is_dir() {
                folder
            } else {
                case.join("trace.json")
            }
        })
        .collect();
    paths.push(package("fixtures/traces"));
    paths
}

fn charts(report: &Value) -> impl Iterator<Item = &Value> {
    let sections = report["sections"].as_array().unwrap().iter();
    let blocks = sections.flat_map(|section| section["blocks"].as_array().unwrap());
    blocks.filter_map(|block| block.get("chart"))
}

#[test]
fn every_number_of_the_page_is_that_of_the_json() {
    let mut numbers = 0;
    for path in traces() {
        let Some(survey) = survey(&path) else {
            continue;
        };
        let document = document(&survey);
        let report: Value = serde_json::from_str(&json::render(&document).unwrap()).unwrap();
        numbers += read_back(
            &html::render(&document),
            &report,
            &path.display().to_string(),
        );
    }
    assert!(numbers > 5_000, "only {numbers} numbers were compared");
}

#[test]
fn moments_are_on_the_axis_of_the_pictures_beside_them() {
    let survey = survey(&package("fixtures/traces")).unwrap();
    let report: Value = serde_json::from_str(&json::render(&document(&survey)).unwrap()).unwrap();
    let curves = charts(&report).filter(|chart| chart["kind"] == "levels");
    let points: Vec<&Value> = curves
        .flat_map(|chart| chart["lines"].as_array().unwrap())
        .flat_map(|line| line["points"].as_array().unwrap())
        .collect();
    let mut peaks = 0;
    for table in json_tables(&report) {
        let columns = table["columns"].as_array().unwrap();
        let place = |name: &str| columns.iter().position(|column| column["name"] == name);
        for row in table["rows"].as_array().unwrap() {
            for (cell, column) in row["cells"].as_array().unwrap().iter().zip(columns) {
                // The clock of these traces starts more than an hour before them.
                let is_time = column["shown_in"] == "ms";
                let long = cell
                    .as_i64()
                    .is_some_and(|time| time.abs() > 60_000_000_000);
                assert!(
                    !(is_time && long),
                    "{cell} in {} of {table}",
                    column["name"]
                );
            }
            let peak = place("peak allocated").zip(place("peak allocated at"));
            if let (Some((bytes, at)), true) = (peak, place("levels").is_some()) {
                let point = serde_json::json!([row["cells"][at], row["cells"][bytes]]);
                assert!(points.contains(&&point), "{point} is in no picture");
                peaks += 1;
            }
        }
    }
    assert!(peaks > 0);
}

#[test]
fn changes_from_nothing_are_spelled_alike_in_all_tables() {
    let sides = ["baseline", "checkpoint"].map(|name| package("fixtures/traces").join(name));
    let (survey, comparison) = (survey_of(&sides).unwrap(), compared(&sides));
    let document = overview_document(OverviewParts {
        comparison: Some(&comparison),
        ..parts(&survey)
    });
    let report: Value = serde_json::from_str(&json::render(&document).unwrap()).unwrap();
    let shown = tables(&html::render(&document));
    let mut spelled: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (shown, table) in shown.iter().zip(json_tables(&report)) {
        let columns = table["columns"].as_array().unwrap();
        let is_change = |column: &Value| column["name"] == "change" && column["shown_in"] == "%";
        let Some(change) = columns.iter().position(is_change) else {
            continue;
        };
        // Both sides stand before their difference, which is before its size.
        let caption = table["caption"].as_str().unwrap();
        let about_phases = caption.contains("by phase") || caption.starts_with("Runs compared");
        for (shown, row) in shown.iter().zip(table["rows"].as_array().unwrap()) {
            let cells = row["cells"].as_array().unwrap();
            let kind = match (cells[change - 3].as_i64(), cells[change - 2].as_i64()) {
                (Some(0), Some(0)) => "none",
                (Some(0), Some(_)) => "new",
                _ => continue,
            };
            if about_phases {
                spelled.entry(kind).or_default().push(&shown[change].0);
            }
        }
    }
    for (kind, found) in &spelled {
        let text = if *kind == "new" { "n/a" } else { "0" };
        assert!(found.iter().all(|one| *one == text), "{kind}: {found:?}");
    }
    assert!(spelled["new"].len() >= 2, "{spelled:?}");
}

#[test]
fn rows_of_one_run_say_which_where_there_are_several() {
    // Only one of the three runs has memory events.
    let survey = survey(&package("fixtures/traces")).unwrap();
    let report: Value = serde_json::from_str(&json::render(&document(&survey)).unwrap()).unwrap();
    let mut tables = 0;
    for table in json_tables(&report) {
        let about = table["caption"].as_str().unwrap();
        if about.contains("memory of a device") || about.contains("Who holds") {
            assert_eq!(table["columns"][0]["name"], "run", "{about}");
            tables += 1;
        }
    }
    assert!(tables >= 2, "{tables} tables");
}

#[test]
fn numbers_of_markdown_are_those_of_the_json() {
    let mut numbers = 0;
    for path in traces() {
        let Some(survey) = survey(&path) else {
            continue;
        };
        let brief = brief_document(parts(&survey));
        let report: Value = serde_json::from_str(&json::render(&brief).unwrap()).unwrap();
        let text = markdown::render(&brief);
        let mut rows = text
            .lines()
            .filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
        for table in json_tables(&report) {
            rows.next().expect("a header");
            for row in table["rows"].as_array().unwrap() {
                let line = rows.next().unwrap().trim_matches('|');
                let shown: Vec<String> = line
                    .split(" | ")
                    .map(|cell| cell.trim().trim_matches('*').replace('\\', ""))
                    .collect();
                let values = row["cells"].as_array().unwrap();
                let columns = table["columns"].as_array().unwrap();
                for ((shown, value), column) in shown.iter().zip(values).zip(columns) {
                    if !value.is_string() {
                        numbers += 1;
                        assert!(
                            says(shown, value, column["shown_in"].as_str()),
                            "{line}: {value}"
                        );
                    }
                }
            }
        }
    }
    assert!(numbers > 500, "only {numbers} numbers were compared");
}

/// The cells of lines of CSV without quotes.
fn csv_rows(text: &str) -> Vec<Vec<&str>> {
    assert!(!text.contains('"'), "{text}");
    text.lines().map(|line| line.split(',').collect()).collect()
}

#[test]
fn every_number_of_the_csv_is_that_of_the_json() {
    let mut numbers = 0;
    for path in traces() {
        let Some(survey) = survey(&path) else {
            continue;
        };
        let attribution = &survey.attribution;
        let answer: Value = serde_json::from_str(&json::render(attribution).unwrap()).unwrap();
        let text = csv::render(&attribution_rows(attribution));
        let rows = csv_rows(&text);
        let (names, rows) = rows.split_first().unwrap();
        // Steps of one name follow each other as they do in the JSON.
        let mut earlier: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
        for row in rows {
            let cell = |name: &str| row[names.iter().position(|known| *known == name).unwrap()];
            let ranks = answer["ranks"].as_array().unwrap();
            let inputs = answer["inputs"].as_array().unwrap();
            let file = ranks.iter().find(|file| {
                let input = usize::try_from(file["input"].as_u64().unwrap()).unwrap();
                inputs[input]["path"] == cell("input")
            });
            let file = file.unwrap_or_else(|| panic!("no file for {row:?}"));
            let place = if cell("device").is_empty() {
                &file["host"]
            } else {
                let devices = file["devices"].as_array().unwrap().iter();
                let number = cell("device").parse::<i64>().unwrap();
                let mut same = devices.filter(|it| it["device"] == number);
                same.next().unwrap()
            };
            let place = if cell("step") == "all" {
                place
            } else {
                let count = earlier.entry(row[..8].to_vec()).or_default();
                *count += 1;
                let steps = place["steps"].as_array().unwrap().iter();
                let mut same = steps.filter(|it| it["name"] == cell("step"));
                same.nth(*count - 1).unwrap()
            };
            let bucket = cell("bucket");
            for (name, shown) in names.iter().zip(row).skip(8) {
                let value = match *name {
                    "timeline_ns" if bucket == "idle" => &place["timeline"]["idle_ns"],
                    "timeline_ns" => &place["timeline"]["phases"][bucket],
                    "host_wall_ns" if bucket == "unattributed" => &place["unattributed_ns"],
                    "host_wall_ns" => &place["phases"][bucket]["wall_ns"],
                    "host_self_ns" => &place["phases"][bucket]["self_ns"],
                    _ => &place["totals"][bucket][*name],
                };
                let value = if value.is_null() {
                    String::new()
                } else {
                    value.to_string()
                };
                // A phase that the host was never in is not in the JSON, which has zero where no operators were
                // recorded.
                let none = *name == "host_self_ns"
                    && matches!((*shown, value.as_str()), ("0", "") | ("", "0"));
                assert!(none || *shown == value, "{name} {value} of {row:?}");
                numbers += usize::from(!value.is_empty());
            }
        }
    }
    assert!(numbers > 2_000, "only {numbers} numbers were compared");
}

#[test]
fn the_timeline_of_the_page_adds_up_to_that_of_the_attribution() {
    let mut devices = 0;
    for path in traces() {
        let Some(survey) = survey(&path) else {
            continue;
        };
        for (file, seen) in survey.attribution.ranks.iter().zip(&survey.files) {
            for (device, line) in file.devices.iter().zip(&seen.devices) {
                let sum = |of: &dyn Fn(&tracekit::inspect::Bin) -> i64| -> i64 {
                    line.bins.iter().map(of).sum()
                };
                let own = &device.timeline;
                assert_eq!(line.device, device.device);
                assert_eq!(sum(&|bin| bin.classes[0].0), own.compute_ns.0);
                assert_eq!(sum(&|bin| bin.classes[1].0), own.exposed_communication_ns.0);
                assert_eq!(sum(&|bin| bin.classes[2].0), own.exposed_memcpy_ns.0);
                for (number, phase) in own.phases.iter().enumerate() {
                    assert_eq!(sum(&|bin| bin.buckets[number].0), phase.0);
                }
                devices += 1;
            }
        }
    }
    assert!(devices > 20, "only {devices} devices");
}

#[test]
fn a_page_of_many_ranks_and_steps_is_small() {
    let folder = tempfile::tempdir().unwrap();
    for rank in 0..8 {
        let training = Training {
            rank,
            ranks: 8,
            steps: 100,
            kernels: 40,
            pace: 100,
        };
        let path = folder.path().join(format!("rank{rank}.json"));
        std::fs::write(path, trace(training)).unwrap();
    }
    let survey = survey(folder.path()).unwrap();
    let kernels: u64 = survey.attribution.totals.total.events;
    assert_eq!(kernels, 8 * 100 * 40);
    let document = document(&survey);
    let page = html::render(&document);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    // The picture over time holds all of it in few pieces.
    let report: Value = serde_json::from_str(&json::render(&document).unwrap()).unwrap();
    let sections = report["sections"].as_array().unwrap().iter();
    let mut blocks = sections.flat_map(|section| section["blocks"].as_array().unwrap());
    let timeline = blocks
        .find(|block| block["chart"]["kind"] == "timeline")
        .unwrap();
    let lanes = timeline["chart"]["lanes"].as_array().unwrap();
    let bins: usize = lanes
        .iter()
        .map(|lane| lane["bins"].as_array().unwrap().len())
        .sum();
    assert!(
        lanes.len() == 8 && (8 * 100..=8_000).contains(&bins),
        "{bins} pieces"
    );
    assert!(
        lanes
            .iter()
            .all(|lane| lane["steps"].as_array().unwrap().len() == 100)
    );
    for line in survey.files.iter().flat_map(|file| &file.devices) {
        let busy: i64 = line
            .bins
            .iter()
            .flat_map(|bin| bin.classes)
            .map(|time| time.0)
            .sum();
        let device = &survey.attribution.ranks[usize::try_from(line.device).unwrap()].devices[0];
        assert_eq!(
            busy,
            device.timeline.window_ns.0 - device.timeline.idle_ns.0
        );
    }
}

#[test]
fn a_page_of_many_names_and_memory_events_is_small() {
    let folder = tempfile::tempdir().unwrap();
    for rank in 0..8 {
        let training = Training {
            rank,
            ranks: 8,
            steps: 100,
            kernels: 150,
            pace: 100,
        };
        let path = folder.path().join(format!("rank{rank}.json"));
        std::fs::write(path, rich(training)).unwrap();
    }
    let survey = survey(folder.path()).unwrap();
    let document = document(&survey);
    let page = html::render(&document);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    // All ranks are there, with their curves and their steps.
    let report: Value = serde_json::from_str(&json::render(&document).unwrap()).unwrap();
    let curves: Vec<&Value> = charts(&report)
        .filter(|chart| chart["kind"] == "levels")
        .collect();
    assert_eq!(curves.len(), 8);
    for line in curves.iter().flat_map(|it| it["lines"].as_array().unwrap()) {
        let points = line["points"].as_array().unwrap();
        assert!((50..=400).contains(&points.len()), "{}", points.len());
        assert!(points.iter().any(|point| point[1] == line["peak_bytes"]));
    }
    let steps = json_tables(&report).into_iter().find(|table| {
        let caption = table["caption"].as_str().unwrap();
        caption.starts_with("The memory of a device over a step")
    });
    let rows = steps.unwrap()["rows"].as_array().unwrap();
    for rank in 0..8 {
        let of_rank = rows.iter().filter(|row| row["cells"][0] == rank);
        assert_eq!(of_rank.count(), 40);
    }
}

#[test]
fn thousands_of_steps_are_put_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let training = Training {
        rank: 0,
        ranks: 1,
        steps: 3_000,
        kernels: 5,
        pace: 100,
    };
    std::fs::write(&path, trace(training)).unwrap();
    let document = document(&survey(&path).unwrap());
    let report: Value = serde_json::from_str(&json::render(&document).unwrap()).unwrap();
    let sections = report["sections"].as_array().unwrap().iter();
    let blocks = sections.flat_map(|section| section["blocks"].as_array().unwrap());
    let charts: Vec<&Value> = blocks.filter_map(|block| block.get("chart")).collect();
    let chart = |name: &str| *charts.iter().find(|chart| chart["name"] == name).unwrap();
    let bars = chart("phases")["bars"].as_array().unwrap();
    assert_eq!(bars.len(), 100);
    assert_eq!(bars[0]["label"], "ProfilerStep#3 to 32, mean");
    // Steps to go to are from all over the capture.
    let steps = chart("timeline")["lanes"][0]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 500);
    assert_eq!(steps[499][0], "ProfilerStep#2997");
    assert!(html::render(&document).len() < 2_000_000);
}

/// A trace whose names are all `name`.
fn named(name: &str) -> String {
    let name = serde_json::to_string(name).unwrap();
    format!(
        r#"{{"traceEvents":[
        {{"ph":"X","cat":"user_annotation","name":{name},"pid":1,"tid":1,"ts":0,"dur":100}},
        {{"ph":"X","cat":"cpu_op","name":{name},"pid":1,"tid":1,"ts":1,"dur":50}},
        {{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":2,"dur":5,"args":{{"correlation":7}}}},
        {{"ph":"X","cat":"kernel","name":{name},"pid":0,"tid":7,"ts":20,"dur":30,"args":{{"correlation":7,"device":0,"stream":7}}}}]}}"#
    )
}

#[test]
fn hostile_names_stay_text_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let long = "k".repeat(10_000);
    for name in [
        "<script>document.title='run'</script>",
        "</script><img src=x onerror=alert(1)>",
        "\"'`&amp;<!-- -->{{body}}",
        "\u{202e}evil\u{2066}\u{0}\u{1b}[31m\r\n",
        &long,
    ] {
        let path = folder.path().join("trace.json");
        std::fs::write(&path, named(name)).unwrap();
        let survey = survey(&path).unwrap();
        let document = document(&survey);
        let page = html::render(&document);
        assert_eq!(page.matches("<script").count(), 2, "{name}");
        assert!(!page.contains("<img") && !page.contains("<!--"), "{name}");
        let hidden = |character: char| character.is_control() && character != '\n';
        assert!(
            !page.contains(hidden) && !page.contains('\u{202e}'),
            "{name}"
        );
        assert!(page.len() < 400_000, "{} bytes for {name}", page.len());
        for chart in svg::charts(&document) {
            let picture = svg::render(chart);
            assert!(!picture.contains("<script") && !picture.contains("<img"));
            assert!(!picture.contains(hidden) && picture.len() < 100_000);
        }
    }
}
