//! `tracekit report`, and pictures of `tracekit attribute`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::page::read_back;
use crate::rich::rich;
use crate::snapshot::bless_or_compare;
use crate::training::Training;
use crate::{Folder, golden, tracekit};

#[test]
fn a_page_is_written_whole_and_says_the_verdict_first() {
    let folder = Folder::new();
    let page = folder.path().join("report.html");
    let case = golden("checkpoint-non-reentrant");
    let run = tracekit(&format!("report {} -o {}", case.display(), page.display()));
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "", ""));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    let verdict = tracekit(&format!("attribute {}", case.display())).out;
    let lead = verdict.lines().next().unwrap();
    assert!(page.contains(&format!("<h1>{lead}</h1>")), "{lead}");
    let json = tracekit(&format!("report {} --format json", case.display())).json(0);
    assert_eq!(json["schema_version"], "tracekit.report/v1");
    assert_eq!(json["verdict"], lead);
    let hash = json.to_string();
    assert!(hash.contains("SHA-256"), "provenance is there");
}

#[test]
fn pictures_are_files_and_the_same_every_time() {
    let folder = Folder::new();
    let case = golden("checkpoint-non-reentrant");
    let pictures = |name: &str| {
        let into = folder.path().join(name);
        let run = tracekit(&format!(
            "report {} --svg {}",
            case.display(),
            into.display()
        ));
        assert_eq!((run.code, run.out.as_str()), (0, ""), "{}", run.err);
        let mut names: Vec<String> = std::fs::read_dir(&into)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let texts = names
            .iter()
            .map(|name| std::fs::read_to_string(into.join(name)).unwrap());
        let texts: Vec<String> = texts.collect();
        (names, texts)
    };
    let (names, texts) = pictures("one");
    assert_eq!(
        names,
        [
            "phase-class.svg",
            "phases.svg",
            "recompute.svg",
            "timeline.svg"
        ]
    );
    for text in &texts {
        assert!(text.starts_with("<svg ") && text.contains("<title>") && text.contains("<text "));
    }
    assert_eq!(pictures("two").1, texts);
    let run = tracekit(&format!("attribute {} --format svg", case.display()));
    assert_eq!((run.code, &run.out), (0, &texts[1]));
}

#[test]
fn every_number_of_the_program_s_pages_is_that_of_its_json() {
    let results = "fixtures/gate/results";
    let mut pages: Vec<String> = [
        "--base fixtures/traces/baseline --cand fixtures/traces/checkpoint".to_owned(),
        "--base fixtures/traces/checkpoint --cand fixtures/traces/offload".to_owned(),
        "fixtures/golden/skewed-ranks/trace".to_owned(),
        format!("fixtures/traces --decision {results}/76_real_gpu_memory.json"),
        format!("--decision {results}/73_real_gpu_training.json"),
        format!("--decision {results}/75_memory_budget_decision_9600.json"),
    ]
    .into();
    for case in ["two-steps", "checkpoint-non-reentrant", "partial-steps"] {
        pages.push(golden(case).display().to_string());
    }
    let folder = Folder::new();
    for (name, pace) in [("slow", 100), ("slower", 300)] {
        let training = Training {
            rank: 0,
            ranks: 1,
            steps: 12,
            kernels: 20,
            pace,
        };
        folder.write(&format!("{name}/rank0.json"), rich(training));
    }
    pages.push(folder.path().display().to_string());
    let mut numbers = 0;
    let mut titles: BTreeSet<String> = BTreeSet::new();
    for arguments in &pages {
        let report = tracekit(&format!("report {arguments} --format json")).json(0);
        let page = tracekit(&format!("report {arguments}")).out;
        numbers += read_back(&page, &report, arguments);
        let sections = report["sections"].as_array().unwrap().iter();
        titles.extend(sections.filter_map(|it| Some(it["title"].as_str()?.to_owned())));
    }
    assert!(numbers > 3_000, "only {numbers} numbers were compared");
    let told = |title: &str| titles.iter().any(|known| known.contains(title));
    assert!(
        told("Comparison") && told("What limits the run") && told("Training baseline"),
        "{titles:?}"
    );
}

#[test]
fn markdown_is_short_and_github_has_commands() {
    let case = golden("odd-events");
    let markdown = tracekit(&format!("report {} --format markdown", case.display()));
    assert_eq!(markdown.code, 0, "{}", markdown.err);
    assert!(markdown.out.lines().count() < 60, "{}", markdown.out);
    assert!(markdown.out.contains("| phase |"), "{}", markdown.out);
    // A page without a word about lost events would be worse than none.
    for code in ["data\\_loss negative\\_duration", "notice missing\\_ph"] {
        assert!(markdown.out.contains(code), "{code}: {}", markdown.out);
    }
    for command in ["attribute", "report"] {
        let run = tracekit(&format!("{command} {} --format github", case.display()));
        assert!(run.out.starts_with("::notice title="), "{}", run.out);
        assert!(
            run.out.lines().all(|line| line.starts_with("::")),
            "{}",
            run.out
        );
        assert!(run.out.contains("\n::warning ") || run.out.contains("\n::error "));
    }
}

#[test]
fn two_sides_are_compared_on_one_page() {
    let (base, cand) = ("fixtures/traces/baseline", "fixtures/traces/checkpoint");
    let run = tracekit(&format!("report --base {base} --cand {cand}"));
    assert_eq!(run.code, 0, "{}", run.err);
    let compared = tracekit(&format!("compare {base} {cand}")).out;
    let lead = compared.lines().next().unwrap().to_owned();
    assert!(run.out.contains(&format!("<h1>{lead}</h1>")), "{lead}");
    assert!(run.out.contains("id=\"comparison\"") && run.out.contains(">Runs side by side</a>"));

    // Two runs under one path are compared, too.
    let folder = Folder::new();
    for name in ["before", "now"] {
        folder.copy(&format!("{name}/rank0.json"), "two-steps");
    }
    let run = tracekit(&format!("report {}", folder.path().display()));
    assert!(run.out.contains("id=\"comparison\""), "{}", run.err);
}

#[test]
fn files_of_one_folder_are_two_sides_all_the_same() {
    let folder = Folder::new();
    let base = folder.copy("base.json", "two-steps");
    let cand = folder.copy("cand.json", "two-steps");
    let run = tracekit(&format!(
        "report --base {} --cand {}",
        base.display(),
        cand.display()
    ));
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("id=\"comparison\"") && !run.out.contains("Runs side by side"));
}

#[test]
fn another_format_is_printed_beside_the_pictures() {
    let folder = Folder::new();
    let case = golden("two-steps");
    let pictures = folder.path().join("pictures");
    let arguments = format!("report {} --svg {}", case.display(), pictures.display());
    let run = tracekit(&format!("{arguments} --format json"));
    assert_eq!(run.json(0)["schema_version"], "tracekit.report/v1");
    assert!(pictures.join("timeline.svg").exists());
    // Pictures alone are asked for without a format.
    assert_eq!(tracekit(&arguments).out, "");
}

#[test]
fn ranks_without_shared_collectives_say_that_nothing_tells_who_waits() {
    let folder = Folder::new();
    for rank in 0..2 {
        folder.copy(&format!("run/rank{rank}.json"), "two-steps");
    }
    let run = tracekit(&format!("report {} --format json", folder.path().display()));
    let page = run.json(0).to_string();
    assert!(
        page.contains("No collective was matched across ranks"),
        "{page}"
    );
    assert!(!page.contains("Who waits least") && !page.contains("ahead of the median"));
    let run = tracekit("report fixtures/golden/skewed-ranks/trace --format json");
    assert!(run.json(0).to_string().contains("Who waits least"));
}

#[test]
fn a_folder_is_no_trace_to_write_again() {
    let folder = Folder::new();
    let out = folder.path().join("out.json");
    for command in ["annotate", "repair", "slice", "redact"] {
        let steps = if command == "slice" { "--steps 1" } else { "" };
        let run = tracekit(&format!(
            "{command} {} -o {} {steps}",
            folder.path().display(),
            out.display()
        ));
        let said = run.refused();
        assert!(said.contains("is a folder: give a trace file"), "{said}");
        assert!(!out.exists());
    }
}

#[test]
fn wrong_use_is_one_line() {
    tracekit("report").refused();
    tracekit("report missing.json -o x.html").refused();
    let case = golden("two-steps");
    let case = case.display();
    assert_eq!(tracekit(&format!("report {case} --format csv")).code, 2);
    assert_eq!(tracekit(&format!("inspect {case} --format svg")).code, 2);
    tracekit(&format!("report {case} -o {case}")).refused();
    tracekit("report --base fixtures/traces/baseline")
        .code
        .eq(&2)
        .then_some(())
        .unwrap();
}

#[test]
fn packagers_get_completions_manuals_and_schemas() {
    let folder = Folder::new();
    let run = tracekit("generate completions bash");
    assert!(
        run.code == 0 && run.out.contains("_tracekit()"),
        "{}",
        run.err
    );
    let man = folder.path().join("man");
    let run = tracekit(&format!("generate man {}", man.display()));
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{}", run.err);
    let page = std::fs::read_to_string(man.join("tracekit-report.1")).unwrap();
    assert!(
        page.contains("tracekit\\-report") && page.contains("svg"),
        "{page}"
    );
    // It is for packagers: the short help does not name it.
    assert!(!tracekit("--help").out.contains("generate"));
    // A page refers to others, which are there.
    for page in std::fs::read_dir(&man).unwrap() {
        let text = std::fs::read_to_string(page.unwrap().path()).unwrap();
        for line in text.lines().filter(|line| line.starts_with("tracekit\\-")) {
            let Some(name) = line.strip_suffix("(1)") else {
                continue;
            };
            let path = man.join(format!("{}.1", name.replace('\\', "")));
            assert!(path.exists(), "{}", path.display());
        }
    }
    assert!(man.join("tracekit-gate-recommend.1").exists());
}

#[test]
fn an_annotated_trace_is_written_compressed() {
    let folder = Folder::new();
    let out = folder.path().join("annotated.json.gz");
    let case = golden("two-steps");
    let run = tracekit(&format!("annotate {} -o {}", case.display(), out.display()));
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("slices added"), "{}", run.err);
    assert!(std::fs::read(&out).unwrap().starts_with(&[0x1f, 0x8b]));
    let run = tracekit(&format!("attribute {} --format json", out.display()));
    let was = tracekit(&format!("attribute {} --format json", case.display())).json(0);
    assert_eq!(run.json(0)["totals"], was["totals"]);
    tracekit(&format!(
        "annotate {0} {0} -o {1}",
        case.display(),
        out.display()
    ))
    .refused();
}

/// The annotated trace of both ranks of a fixture, and what was said.
fn merged(case: &str, flags: &str) -> (Value, String) {
    let folder = Folder::new();
    let out = folder.path().join("both.json");
    let trace = format!("fixtures/golden/{case}/trace/rank");
    let run = tracekit(&format!(
        "annotate {trace}1.json {trace}0.json -o {} {flags}",
        out.display()
    ));
    assert_eq!(run.code, 0, "{}", run.err);
    (
        serde_json::from_str(&std::fs::read_to_string(out).unwrap()).unwrap(),
        run.err,
    )
}

/// By process: when its collectives end, in whole nanoseconds.
fn ends(trace: &Value) -> BTreeMap<String, Vec<i64>> {
    let mut ends: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for event in trace["traceEvents"].as_array().unwrap() {
        if event["cat"] == "kernel" && event["name"].as_str().unwrap().starts_with("nccl") {
            let micros = |key: &str| event[key].as_f64().unwrap();
            #[expect(clippy::cast_possible_truncation, reason = "times of a fixture")]
            let end = ((micros("ts") + micros("dur")) * 1_000.0).round() as i64;
            ends.entry(event["pid"].to_string()).or_default().push(end);
        }
    }
    ends
}

#[test]
fn clocks_of_merged_ranks_are_aligned_and_the_offset_is_said() {
    // By the clock of rank 1, which is 7 s ahead, its collectives end later; by a common one, together.
    let (trace, said) = merged("skewed-ranks", "");
    let ends_of = ends(&trace);
    let both: Vec<&Vec<i64>> = ends_of.values().collect();
    assert!(
        both.len() == 2 && both[0] == both[1] && both[0].len() == 4,
        "{ends_of:?}"
    );
    assert!(
        said.contains("rank 1: clock 3500000.000 ± 0.000 us ahead of the median, aligned"),
        "{said}"
    );
    assert!(
        said.contains("rank 0: clock 3500000.000 ± 0.000 us behind the median, aligned"),
        "{said}"
    );
    let inputs = &trace["tracekit_annotate"]["inputs"];
    assert_eq!(inputs[0]["label"], "rank 1");
    assert_eq!(inputs[0]["clock"]["ahead_ns"], 3_500_000_000_i64);
    assert_eq!(inputs[1]["clock"]["ahead_ns"], -3_500_000_000_i64);

    let (trace, said) = merged("skewed-ranks", "--keep-clocks");
    let ends_of = ends(&trace);
    let both: Vec<&Vec<i64>> = ends_of.values().collect();
    let skews = both[0].iter().zip(both[1]).map(|(a, b)| a - b);
    assert!(
        skews.clone().all(|skew| skew.abs() == 7_000_000_000),
        "{ends_of:?}"
    );
    assert!(said.contains("rank 1: clock as recorded"), "{said}");
}

#[test]
fn identifiers_of_merged_ranks_are_apart() {
    let (trace, _) = merged("skewed-ranks", "");
    let mut of_process: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut processes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for event in trace["traceEvents"].as_array().unwrap() {
        let correlation = &event["args"]["correlation"];
        if correlation.is_null() {
            continue;
        }
        // The number of the input is in the number of the process.
        let rank = event["pid"].as_i64().unwrap() / 100_000;
        of_process
            .entry(rank.to_string())
            .or_default()
            .insert(correlation.to_string());
        processes
            .entry(rank.to_string())
            .or_default()
            .insert(event["pid"].to_string());
    }
    let [one, other] = of_process.values().collect::<Vec<_>>()[..] else {
        panic!("{of_process:?}");
    };
    assert!(
        one.len() == 4 && other.len() == 4 && one.is_disjoint(other),
        "{of_process:?}"
    );
    assert!(
        processes.values().all(|own| own.len() == 2),
        "{processes:?}"
    );
}

#[test]
fn the_sample_reports_are_fresh() {
    let sample = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/sample");
    std::fs::create_dir_all(&sample).unwrap();
    let case = "fixtures/golden/checkpoint-non-reentrant/trace.json";
    let reports = [
        ("report.html", "html"),
        ("report.md", "markdown"),
        ("report.json", "json"),
    ];
    for (name, format) in reports {
        let run = tracekit(&format!("report {case} --format {format}"));
        assert_eq!(run.code, 0, "{}", run.err);
        bless_or_compare(&sample.join(name), &run.out);
    }
    let folder = Folder::new();
    tracekit(&format!("report {case} --svg {}", folder.path().display()));
    let mut pictures = 0;
    for picture in std::fs::read_dir(folder.path()).unwrap() {
        let path = picture.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        bless_or_compare(&sample.join(path.file_name().unwrap()), &text);
        pictures += 1;
    }
    assert_eq!(pictures, 4);
}

/// A trace of one step whose kernels run from `start` to `end`, in µs, without a pause.
fn step(length: u64, start: u64, end: u64) -> String {
    let kernels = (start..end).step_by(100).enumerate().map(|(number, at)| {
        let launch = at.saturating_sub(200);
        format!(
            r#",{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{launch},"dur":1,"args":{{"correlation":{number}}}}},
            {{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":{at},"dur":100,"args":{{"device":0,"stream":7,"correlation":{number}}}}}"#,
            number = number + 1,
        )
    });
    let kernels: String = kernels.collect();
    format!(
        r#"{{"traceEvents":[{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":{length}}}{kernels}]}}"#
    )
}

/// The first note of the verdict on a trace.
fn bottleneck(trace: &str) -> String {
    let folder = Folder::new();
    let path = folder.write("a.pt.trace.json", trace.as_bytes());
    let run = tracekit(&format!("report {} --format markdown", path.display()));
    let line = run.out.lines().find(|line| line.contains("**bottleneck**"));
    line.unwrap_or_else(|| panic!("{}", run.out)).to_owned()
}

#[test]
fn the_bottleneck_is_what_takes_the_step_and_its_cause_is_that_of_the_step() {
    // Before the first kernel no capture has begun, but the step has.
    let waiting = bottleneck(&step(10_000, 8_000, 9_900));
    assert!(
        waiting.contains("idle (mostly lead in) takes 8.100 ms = 81.0 %"),
        "{waiting}"
    );
    let halves = bottleneck(&step(10_000, 3_000, 7_000));
    assert!(
        halves.contains("idle (50.0 % lead in, 50.0 % tail)"),
        "{halves}"
    );
    let computing = bottleneck(&step(10_000, 200, 9_500));
    assert!(
        computing.contains("compute: kernels hold the device 93.0 % of the step; next is idle")
            && computing.contains("with 7.0 %"),
        "{computing}"
    );
}
