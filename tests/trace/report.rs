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

use crate::support::drawing::plain;
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
        findings: &[],
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

/// What a cell shows, and its exact value where that is written beside it.
type Shown = (String, Option<String>);

/// The tables of a page, row by row: what each cell shows, and its exact value.
fn tables(page: &str) -> Vec<Vec<Vec<Shown>>> {
    let tables = page.split("<tbody>").skip(1);
    let rows = |table: &str| -> Vec<Vec<Shown>> {
        let body = table.split("</tbody>").next().unwrap();
        body.split("<tr").skip(1).map(cells).collect()
    };
    tables.map(rows).collect()
}

fn cells(row: &str) -> Vec<Shown> {
    let row = row.split_once('>').unwrap().1;
    let starts = row.match_indices("<t").map(|(place, _)| place);
    starts
        .map(|start| {
            let (head, rest) = row[start..].split_once('>').unwrap();
            let text = rest.split("</t").next().unwrap();
            let raw = head
                .split_once("data-v=\"")
                .map(|(_, raw)| raw.split('"').next().unwrap());
            (plain(text), raw.map(str::to_owned))
        })
        .collect()
}

fn json_tables(report: &Value) -> Vec<&Value> {
    let sections = report["sections"].as_array().unwrap().iter();
    let blocks = sections.flat_map(|section| section["blocks"].as_array().unwrap());
    blocks.filter_map(|block| block.get("table")).collect()
}

fn charts(report: &Value) -> impl Iterator<Item = &Value> {
    let sections = report["sections"].as_array().unwrap().iter();
    let blocks = sections.flat_map(|section| section["blocks"].as_array().unwrap());
    blocks.filter_map(|block| block.get("chart"))
}

/// True when `shown`, as a table spells it in `unit`, is what `value` is.
pub(crate) fn says(shown: &str, value: &Value, unit: Option<&str>) -> bool {
    let digits = shown.replace(',', "");
    let scale = match unit {
        Some("ms") => 1e-6,
        Some("%") => 100.0,
        Some("MiB") => 1.0 / f64::from(1 << 20),
        _ => 1.0,
    };
    let Some(value) = value.as_f64() else {
        return value.is_null() && ["—", "n/a", ""].contains(&shown);
    };
    let exact = value * scale;
    if let Some(bound) = digits.strip_prefix(['<', '>']) {
        let bound: f64 = bound.parse().unwrap();
        let is_full = digits.starts_with('>') && bound > 0.0;
        return if is_full {
            exact >= bound
        } else {
            exact.abs() < bound.abs() * 1.001 && exact != 0.0
        };
    }
    let digits_after = digits.split_once('.').map_or(0, |(_, after)| after.len());
    let step = 10_f64.powi(-i32::try_from(digits_after).unwrap_or(0));
    match digits.parse::<f64>() {
        // Exponents are for numbers whose size says more than their digits.
        Ok(shown) if digits.contains('e') => ((shown - exact) / exact).abs() < 1e-3,
        Ok(shown) => (shown - exact).abs() <= step * 0.500_001 + exact.abs() * 1e-9,
        Err(_) => false,
    }
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
        let page = html::render(&document);
        let shown = tables(&page);
        let expected = json_tables(&report);
        assert_eq!(shown.len(), expected.len(), "{}", path.display());
        for (shown, table) in shown.iter().zip(expected) {
            let rows = table["rows"].as_array().unwrap();
            assert_eq!(shown.len(), rows.len(), "{}", table["caption"]);
            for (shown, row) in shown.iter().zip(rows) {
                let values = row["cells"].as_array().unwrap();
                assert_eq!(shown.len(), values.len());
                let columns = table["columns"].as_array().unwrap();
                for (((shown, raw), value), column) in shown.iter().zip(values).zip(columns) {
                    if value.is_string() {
                        continue;
                    }
                    numbers += 1;
                    let unit = column["shown_in"].as_str();
                    assert!(
                        says(shown, value, unit),
                        "{}: {shown} for {value} in {}",
                        path.display(),
                        table["caption"]
                    );
                    // What is exact is exact.
                    if let Some(raw) = raw.as_deref().filter(|raw| !raw.is_empty()) {
                        let (raw, value) = (raw.parse::<f64>().unwrap(), value.as_f64().unwrap());
                        assert!(
                            (raw - value).abs() <= value.abs() * 1e-15,
                            "{raw} for {value}"
                        );
                    }
                }
            }
        }
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
