//! The report: every number in every format is that of its JSON, and whatever is in a trace stays text.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tracekit::attribute::{AttributeOptions, Request};
use tracekit::ingest::IngestOptions;
use tracekit::inspect::{Survey, survey_paths};
use tracekit::report::{
    Block, Document, OverviewParts, brief_document, html, json, markdown, overview_document, svg,
};

use crate::support::{folders_in, package};

fn survey(path: &Path) -> Option<Survey> {
    let options = AttributeOptions::default();
    let paths = [path.to_owned()];
    let request = Request {
        paths: &paths,
        ingest: IngestOptions::default(),
        options: &options,
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: true,
        salvage: None,
    };
    survey_paths(&request, &|_| {}).ok()
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
fn traces() -> Vec<PathBuf> {
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

/// `text` with the entities of a page replaced.
fn plain(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
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

/// True when `shown`, as a table spells it in `unit`, is what `value` is.
fn says(shown: &str, value: &Value, unit: Option<&str>) -> bool {
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
fn numbers_of_markdown_and_pictures_are_those_of_the_json() {
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
        let document = document(&survey);
        for chart in svg::charts(&document) {
            let picture = svg::render(chart);
            let chart = serde_json::to_value(Block::Chart(chart.clone())).unwrap();
            let bars = chart["chart"]["bars"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let parts = bars.iter().flat_map(|bar| bar["parts"].as_array().unwrap());
            let known: Vec<&Value> = parts.collect();
            // `step, forward: 1.234 ms (31.2 %)`, for parts that are as wide as a pixel.
            let titles = picture.split("<title>").skip(2);
            for title in titles.filter(|_| !bars.is_empty()) {
                let title = title.split("</title>").next().unwrap();
                let (of, said) = title.rsplit_once(": ").unwrap();
                let (time, share) = said.split_once(" ms (").unwrap();
                let share = share.trim_end_matches(" %)");
                let paint = of.rsplit(", ").next().unwrap();
                numbers += 1;
                let fits = |part: &&&Value| {
                    part["name"] == paint
                        && says(&plain(time), &part["value"], Some("ms"))
                        && says(&plain(share), &part["share"], Some("%"))
                };
                assert!(
                    known.iter().any(|part| fits(&part)),
                    "{title} is not in {chart}"
                );
            }
        }
    }
    assert!(numbers > 500, "only {numbers} numbers were compared");
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
