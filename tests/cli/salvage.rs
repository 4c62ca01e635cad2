//! `attribute --salvage`: what is whole in a damaged file counts, and what is not is told.

use crate::{Folder, attribute, golden};

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
    assert_eq!(input["lost"]["events_estimated"], 1);
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
