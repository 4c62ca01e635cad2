//! `tracekit query`, `export` and `infer` from outside.

use std::path::Path;

use serde_json::json;

use crate::{Folder, Run, command, finish, golden, tracekit};

fn query(path: &Path, sql: &str, arguments: &[&str]) -> Run {
    let mut command = command();
    command.arg("query").arg(path).arg(sql).args(arguments);
    finish(command)
}

fn infer(path: &Path, arguments: &[&str]) -> Run {
    let mut command = command();
    command.arg("infer").arg(path).args(arguments);
    finish(command)
}

fn export(path: &Path, to: &Path, arguments: &[&str]) -> Run {
    let mut command = command();
    command.arg("export").arg(path).arg("-o").arg(to);
    finish({
        command.args(arguments);
        command
    })
}

#[test]
fn a_query_is_answered_in_every_format() {
    let sql = "SELECT rank, SUM(dur_ns) AS ns FROM device_work GROUP BY rank ORDER BY rank";
    let path = golden("two-ranks");
    let json = query(&path, sql, &["--format", "json"]).json(0);
    assert_eq!(
        json,
        json!([{"rank": 0, "ns": 30_000}, {"rank": 1, "ns": 44_000}])
    );
    let csv = query(&path, sql, &["--format", "csv"]);
    assert_eq!(
        (csv.code, csv.out.as_str()),
        (0, "rank,ns\n0,30000\n1,44000\n")
    );
    let text = query(&path, sql, &[]);
    assert!(text.out.contains("44000") && text.code == 0, "{}", text.out);
    let markdown = query(&path, sql, &["--format", "markdown"]);
    assert!(markdown.out.contains("| 44000 |"), "{}", markdown.out);
    let none = query(
        &path,
        "SELECT * FROM events WHERE event < 0",
        &["--format", "json"],
    );
    assert_eq!(none.json(0), json!([]));
}

#[test]
fn what_cannot_be_answered_is_one_line() {
    let path = golden("two-ranks");
    for (sql, reason) in [
        ("SELECT nothing FROM device_work", "nothing"),
        ("SELECT 1 FROM nowhere", "'nowhere' was not found"),
        ("SELEC 1", "SELEC"),
        ("SELECT 1", "names no table"),
        ("", "SQL: the query is empty"),
        (" ", "SQL: the query is empty"),
        (
            "SELECT name, name FROM events",
            "SQL: two columns of the result are called 'name'",
        ),
        (
            "SELECT COUNT(*), COUNT(*) FROM events",
            "rename one with AS",
        ),
        (
            "SELECT nothing FROM events",
            "SQL: no column is called 'nothing'; there are run, rank, file",
        ),
        (
            "SELECT 99999999999999999999 FROM events",
            "the number 99999999999999999999 does not fit",
        ),
        (
            "SELECT SUM(dur_ns FROM events",
            "SQL: expected ), found FROM at line 1, column 19",
        ),
        (
            "SELECT 1 FROM events; SELECT 2 FROM events",
            "one statement",
        ),
        (
            "SELECT event FROM events WHERE event = (SELECT MAX(event) FROM events)",
            "",
        ),
        ("SELECT name + 1 FROM events", "arithmetic"),
        ("DROP TABLE nowhere", "read only"),
        ("SELECT * FROM events GROUP BY 0", ""),
        ("SELECT COLUMNS('(') FROM events", "makes no sense"),
        (
            &format!("SELECT 1{} FROM events", "+1".repeat(3000)),
            "words",
        ),
        ("SELECT 1 FROM events JOIN nowhere USING (event)", "nowhere"),
        ("SELECT SUM(dur_ns FROM device_work", ""),
        ("DELETE FROM events", "read only"),
    ] {
        let run = query(&path, sql, &[]);
        assert!(run.refused().contains(reason), "{sql}: {}", run.err);
        // What Polars had planned is nothing to a user.
        for plan in ["RESOLVING", "PROJECT", ".alias("] {
            assert!(!run.err.contains(plan), "{sql}: {}", run.err);
        }
    }
    let exponents = "SELECT COUNT(*) AS n FROM events WHERE ts_ns < 1e18 AND dur_ns >= -1E-3";
    let run = query(&path, exponents, &["--format", "csv"]);
    assert_eq!(run.code, 0, "{}", run.err);
    // As long as a query may be, and all of it one expression.
    let long = format!("SELECT 1{} AS n FROM events LIMIT 1", "+1".repeat(1900));
    let run = query(&path, &long, &["--format", "csv"]);
    assert_eq!(
        (run.code, run.out.as_str()),
        (0, "n\n1901\n"),
        "{}",
        run.err
    );
    assert!(tracekit("query").refused().contains("PATH"));
    let missing = query(Path::new("nowhere.json"), "SELECT * FROM events", &[]);
    assert!(missing.refused().contains("nowhere.json"));
}

#[test]
fn all_tables_are_listed_without_a_path() {
    let run = tracekit("query --tables");
    assert_eq!(run.code, 0, "{}", run.err);
    for table in tracekit::frame::TABLES {
        assert!(run.out.contains(table.name), "{}", table.name);
        assert!(
            table
                .columns
                .iter()
                .all(|column| run.out.contains(column.name))
        );
    }
}

#[test]
fn tables_are_exported_as_files() {
    let folder = Folder::new();
    for (format, magic) in [
        ("parquet", &b"PAR1"[..]),
        ("arrow", b"ARROW1"),
        ("csv", b"run,"),
    ] {
        let to = folder.path().join(format);
        let run = export(&golden("two-ranks"), &to, &["--format", format]);
        assert_eq!((run.code, run.out.as_str()), (0, ""), "{}", run.err);
        let files: Vec<_> = std::fs::read_dir(&to).unwrap().collect();
        assert_eq!(files.len(), tracekit::frame::TABLES.len());
        let work = std::fs::read(to.join(format!("device_work.{format}"))).unwrap();
        assert!(work.starts_with(magic), "{format}");
    }
    let to = folder.path().join("one");
    let run = export(&golden("two-ranks"), &to, &["--table", "steps"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(to.join("steps.parquet").is_file());
    assert_eq!(std::fs::read_dir(&to).unwrap().count(), 1);
}

#[test]
fn an_export_that_fails_leaves_nothing() {
    let folder = Folder::new();
    let to = folder.path().join("tables");
    let run = export(&golden("two-ranks"), &to, &["--table", "nothing"]);
    assert!(run.refused().contains("device_work"), "{}", run.err);
    assert!(!to.exists());
    let file = folder.write("file", "");
    assert!(
        export(&golden("two-ranks"), &file, &[])
            .refused()
            .contains("no folder")
    );
}

#[test]
fn cells_that_a_spreadsheet_would_compute_are_text() {
    let folder = Folder::new();
    let event =
        r#"{"ph":"X","cat":"cpu_op","name":"=HYPERLINK(1)","pid":1,"tid":1,"ts":1,"dur":1}"#;
    let path = folder.write("trace.json", format!(r#"{{"traceEvents":[{event}]}}"#));
    let to = folder.path().join("tables");
    assert_eq!(export(&path, &to, &["--format", "csv"]).code, 0);
    let events = std::fs::read_to_string(to.join("events.csv")).unwrap();
    assert!(events.contains("'=HYPERLINK(1)"), "{events}");
    let csv = query(&path, "SELECT name FROM events", &["--format", "csv"]);
    assert_eq!(csv.out, "name\n'=HYPERLINK(1)\n");
}

#[test]
fn characters_that_cannot_be_seen_are_escaped_in_every_format() {
    let folder = Folder::new();
    let name = "a\u{202e}b\u{2066}\u{200b}c";
    let event =
        json!({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 1, "dur": 1});
    let path = folder.write("trace.json", json!({"traceEvents": [event]}).to_string());
    let sql = "SELECT name AS \"\u{202e}n\" FROM events";
    for format in ["text", "json", "csv", "markdown"] {
        let run = query(&path, sql, &["--format", format]);
        assert_eq!(run.code, 0, "{}", run.err);
        for hidden in ['\u{202e}', '\u{2066}', '\u{200b}'] {
            assert!(!run.out.contains(hidden), "{format}: {}", run.out);
        }
    }
    // To a program it is the name that it was.
    let found = query(&path, sql, &["--format", "json"]).json(0);
    assert_eq!(found, json!([{"\u{202e}n": name}]));
}

#[test]
fn traces_without_devices_have_empty_tables() {
    let folder = Folder::new();
    let event = r#"{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":1}"#;
    let path = folder.write("trace.json", format!(r#"{{"traceEvents":[{event}]}}"#));
    let count = query(
        &path,
        "SELECT COUNT(*) AS n FROM device_work",
        &["--format", "json"],
    );
    assert_eq!(count.json(0), json!([{"n": 0}]));
    let to = folder.path().join("tables");
    assert_eq!(export(&path, &to, &[]).code, 0);
    let run = infer(&path, &["--format", "json"]).json(0);
    let all = run["runs"][0]["inferences"].as_array().unwrap();
    assert!(
        all.iter()
            .all(|inference| inference["verdict"] != "supported")
    );
    assert_eq!(run["runs"][0]["compute_ratio"], "not_applicable");
}

#[test]
fn files_of_a_folder_that_are_no_traces_are_told() {
    let folder = Folder::new();
    folder.copy("rank0.pt.trace.json", "two-steps");
    folder.write("rank1.pt.trace.json", "{\"traceEvents\": [");
    let run = query(
        folder.path(),
        "SELECT COUNT(*) AS n FROM files",
        &["--format", "json"],
    );
    assert_eq!(run.json(4), json!([{"n": 1}]));
    assert!(run.err.contains("skipped"), "{}", run.err);
    assert_eq!(infer(folder.path(), &[]).code, 4);
}

#[test]
fn inferences_say_what_to_do() {
    let path = golden("checkpoint-reentrant");
    let text = infer(&path, &[]);
    assert_eq!(text.code, 0, "{}", text.err);
    assert!(text.out.contains("recompute_overhead"), "{}", text.out);
    assert!(text.out.contains("next: "), "{}", text.out);
    let json = infer(&path, &["--format", "json"]).json(0);
    assert_eq!(json["schema_version"], "tracekit.inference/v1");
    let first = &json["runs"][0]["inferences"][0];
    assert_eq!(first["verdict"], "supported");
    assert!(
        text.out.contains(
            first["summary"]
                .as_str()
                .unwrap()
                .split(' ')
                .next()
                .unwrap()
        )
    );
    let markdown = infer(&path, &["--format", "markdown"]).out;
    assert!(markdown.contains(r"| recompute\_overhead |"), "{markdown}");
}

#[test]
fn rules_are_explained() {
    let all = tracekit("infer --explain");
    assert_eq!(all.code, 0, "{}", all.err);
    for rule in tracekit::infer::explanations(None).unwrap() {
        assert!(all.out.contains(rule.code));
        let one = tracekit(&format!("infer --explain {} --format json", rule.code)).json(0);
        assert_eq!(one["rules"][0]["question"], rule.question);
    }
    assert!(
        tracekit("infer --explain nothing")
            .refused()
            .contains("nothing")
    );
    assert_eq!(tracekit("infer").code, 2);
}

#[test]
fn thresholds_come_from_a_file() {
    let folder = Folder::new();
    let path = golden("checkpoint-reentrant");
    let limits = folder.write(
        "limits.toml",
        "[recompute_overhead]\nrecompute_share = 1.0\n",
    );
    let arguments = ["--format", "json", "--thresholds", limits.to_str().unwrap()];
    let json = infer(&path, &arguments).json(0);
    let all = json["runs"][0]["inferences"].as_array().unwrap();
    let found = all
        .iter()
        .find(|one| one["code"] == "recompute_overhead")
        .unwrap();
    assert_eq!(found["verdict"], "refuted");
    for wrong in [
        "[recompute_overhead]\nshare = 1.0\n",
        "[[rule]]\nname = \"a\"\nsql = \"SELECT a FROM events\"\nop = \">\"\nthreshold = 1\nmessage = \"\"\nnext_action = \"\"\n",
    ] {
        let limits = folder.write("wrong.toml", wrong);
        infer(&path, &["--thresholds", limits.to_str().unwrap()]).refused();
    }
    infer(&path, &["--thresholds", "nowhere.toml"]).refused();
}
