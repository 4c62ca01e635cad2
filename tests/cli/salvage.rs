//! `attribute --salvage`: what is whole in a damaged file counts, and what is not is told.

use crate::{Folder, attribute, golden, tracekit};

/// The golden trace `case` as text.
fn text(case: &str) -> String {
    std::fs::read_to_string(golden(case)).unwrap()
}

#[test]
fn a_cut_file_is_refused_by_default_and_read_on_demand() {
    let whole = text("two-steps");
    let cut = whole.rfind("\"kernel\"").unwrap() + 4;
    let folder = Folder::new();
    let path = folder.write("cut.pt.trace.json", &whole.as_bytes()[..cut]);
    let refused = attribute(&path, "--format json");
    assert_eq!((refused.code, refused.out.as_str()), (2, ""));
    assert!(
        refused.err.contains(&format!("at byte {cut}")),
        "{}",
        refused.err
    );

    let answer = attribute(&path, "--salvage --format json").json(0);
    let input = &answer["inputs"][0];
    assert_eq!(input["partial"], true);
    let start = whole[..cut].rfind('{').unwrap() as u64;
    let [from, to] = [0, 1].map(|at| input["lost"]["ranges"][0][at].as_u64().unwrap());
    assert!(from <= start && to == cut as u64, "{from}..{to}");
    assert_eq!(input["lost"]["bytes"], to - from);
    // What came behind the cut was not measured.
    assert_eq!(input["lost"]["events_estimated"], serde_json::Value::Null);
    assert_eq!(input["lost"]["damage"], "its end is missing");
    let health = answer["health"].as_array().unwrap();
    assert!(health.iter().any(|entry| entry["code"] == "salvaged"));

    // One kernel is missing, the last; nothing else is.
    let events = |answer: &serde_json::Value| answer["totals"]["total"]["events"].as_u64().unwrap();
    let complete = attribute(&golden("two-steps"), "--format json").json(0);
    assert_eq!(events(&answer) + 1, events(&complete));
    assert_eq!(attribute(&path, "--salvage --strict").code, 1);
    assert!(attribute(&path, "--salvage").out.contains("partial: "));
}

#[test]
fn reading_goes_on_behind_an_unescaped_quote() {
    let whole = text("two-steps");
    let array = whole.find("\"traceEvents\"").unwrap();
    let place = array + whole[array..].find("\"name\": \"").unwrap() + 9;
    let broken = format!("{}\"{}", &whole[..place], &whole[place..]);
    let folder = Folder::new();
    let path = folder.write("broken.pt.trace.json", broken.as_bytes());
    assert_eq!(attribute(&path, "").code, 2);
    let answer = attribute(&path, "--salvage --format json").json(0);
    let complete = attribute(&golden("two-steps"), "--format json").json(0);
    let events = |answer: &serde_json::Value| answer["inputs"][0]["events"].as_u64().unwrap();
    assert_eq!(events(&answer) + 1, events(&complete));
}

#[test]
fn what_is_behind_the_end_is_not_said_to_be_nothing() {
    let whole = text("two-steps");
    let event = whole.rfind("\"kernel\"").unwrap();
    let start = whole[..event].rfind('{').unwrap();
    let between = whole[..start].rfind(',').unwrap();
    let array = whole.rfind(']').unwrap() + 1;
    let unknown = "its end is missing: how many events came behind is not known";
    let folder = Folder::new();
    for (cut, estimated, told) in [
        (between, None, unknown),
        (event, None, unknown),
        (array, Some(0), "its end is missing"),
    ] {
        let path = folder.write("cut.json", &whole.as_bytes()[..cut]);
        let fixed = folder.path().join("fixed.json");
        let (cut, out) = (path.display(), fixed.display());
        let repaired = tracekit(&format!("repair --salvage {cut} -o {out}"));
        assert_eq!(repaired.err.contains(unknown), told == unknown);
        for (read, path) in [("--salvage", &path), ("", &fixed)] {
            let text = attribute(path, read).out;
            let line = text.lines().find(|line| line.starts_with("partial: "));
            let line = line.unwrap().replace(" was ", " is ");
            assert!(line.ends_with(told) && !line.contains(" 0 bytes"), "{line}");
            let lost = attribute(path, &format!("{read} --format json")).json(0);
            let lost = &lost["inputs"][0]["lost"];
            assert_eq!(lost["events_estimated"].as_u64(), estimated, "{lost}");
        }
    }
}

#[test]
fn what_a_repair_noted_before_is_still_told_when_its_result_is_damaged() {
    let folder = Folder::new();
    let note = r#"[{"ph":"M","name":"tracekit_repair","args":{"tool":"tracekit 1","lost":[[3,9]],"lost_bytes":6,"lost_events_estimated":2,"trailing_comma":5}},
        {"ph":"X","ts":1,"dur":1},{"ph":"X","name":"a "b"","ts":1},{"ph":"X","ts":2,"dur":1}]"#;
    let path = folder.write("again.json", note);
    let answer = attribute(&path, "--salvage --format json").json(0);
    let lost = &answer["inputs"][0]["lost"];
    assert_eq!(lost["ranges"].as_array().unwrap().len(), 2, "{lost}");
    assert_eq!(lost["events_estimated"], 3, "{lost}");
    let health = answer["health"].as_array().unwrap();
    let count = |code: &str| {
        let found = health.iter().find(|entry| entry["code"] == code);
        found.map(|entry| entry["count"].clone())
    };
    assert_eq!(
        (count("salvaged"), count("repaired")),
        (Some(1.into()), Some(5.into()))
    );
}

#[test]
fn a_whole_file_is_read_as_without_the_flag() {
    let with = attribute(&golden("two-steps"), "--salvage --format json").out;
    assert_eq!(with, attribute(&golden("two-steps"), "--format json").out);
}

/// Whoever reads a result learns that a part of the trace is missing, in it or beside it.
#[test]
fn every_command_tells_that_a_trace_was_salvaged() {
    let whole = text("two-steps");
    let cut = whole.rfind("\"kernel\"").unwrap() + 4;
    let folder = Folder::new();
    let path = folder.write("cut.pt.trace.json", &whole.as_bytes()[..cut]);
    let path = path.display();
    let mut commands = vec![
        format!("compare {path} {path}"),
        format!("compare {path} {path} --format markdown"),
        format!("compare {path} {path} --format csv"),
        format!("compare {path} {path} --format json"),
        format!("report {path}"),
        format!("report {path} --format github"),
        format!("report {path} --format markdown"),
        format!("infer {path}"),
        format!("infer {path} --format markdown"),
        format!("infer {path} --format json"),
    ];
    for format in ["text", "markdown", "csv", "json", "svg", "github"] {
        commands.push(format!("attribute {path} --format {format}"));
    }
    for format in ["text", "markdown", "csv", "json"] {
        commands.push(format!("inspect kernels {path} --format {format}"));
        #[cfg(feature = "frames")]
        commands.push(format!(
            "query {path} SELECT/**/name/**/FROM/**/device_work --format {format}"
        ));
    }
    for command in commands {
        let run = crate::tracekit(&format!("{command} --salvage"));
        assert_eq!(run.code, 0, "{command}: {}", run.err);
        let told = run.out.contains("salvaged") || run.err.contains("data_loss salvaged");
        assert!(told, "{command}: {}{}", run.out, run.err);
        let quiet = crate::tracekit(&format!("{command} --salvage --quiet"));
        assert_eq!((quiet.out, quiet.err.as_str()), (run.out, ""), "{command}");
    }
    let compared = crate::tracekit(&format!("compare {path} {path} --salvage --format json"));
    assert_eq!(compared.json(0)["base"]["partial"], true);
}
