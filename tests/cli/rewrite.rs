//! `repair`, `slice` and `redact` from outside: files, standard input and output, messages, refusals.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::{Folder, Run, attribute, command, finish, golden, tracekit};

/// Runs `tracekit NAME INPUT -o OUTPUT` with further `arguments`, split at spaces.
fn run(name: &str, input: &Path, output: &Path, arguments: &str) -> Run {
    let mut command = command();
    command.arg(name).arg(input).arg("-o").arg(output);
    command.args(arguments.split_whitespace());
    finish(command)
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn totals(path: &Path, arguments: &str) -> Value {
    attribute(path, &format!("--format json {arguments}")).json(0)["totals"].clone()
}

const BROKEN: &str = "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1},\n{\"ph\":\"X\",\"name\":\"the \"b\"\"},\n\
     {\"ph\":\"X\",\"name\":\"c\",\"ts\":3,\"dur\":1}]";

#[test]
fn repair_says_what_it_did() {
    let folder = Folder::new();
    let out = folder.path().join("out.json");
    let odd = folder.write(
        "odd.json",
        "[{\"ph\":\"X\",\"name\":\"a\tb\\c\",\"ts\":NaN},]",
    );
    let done = run("repair", &odd, &out, "");
    assert_eq!((done.code, done.out.as_str()), (0, ""));
    let said = "1 events, repaired: trailing_comma 1, control_characters 1, invalid_escape 1, nonfinite_number 1";
    assert_eq!(done.err, format!("tracekit: {}: {said}\n", odd.display()));
    assert_eq!(read(&out)[0]["name"], "a\tb\\c");

    let again = folder.path().join("again.json");
    let done = run("repair", &out, &again, "");
    assert_eq!(
        done.err,
        format!("tracekit: {}: nothing to repair\n", out.display())
    );
    assert_eq!(std::fs::read(&out).unwrap(), std::fs::read(&again).unwrap());
    assert_eq!(run("repair", &odd, &again, "--quiet").err, "");
}

#[test]
fn what_cannot_be_read_is_refused_unless_salvaged() {
    let folder = Folder::new();
    let input = folder.write("broken.json", BROKEN);
    let out = folder.write("out.json", "the old result");
    let error = run("repair", &input, &out, "").refused().to_owned();
    let (reason, advice) = error.rsplit_once(" (").unwrap();
    assert!(
        reason.ends_with("broken.json: expected `,` or `}` at byte 62"),
        "{error}"
    );
    assert_eq!(advice, "--salvage keeps what is whole)");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "the old result");
    for other in ["redact", "slice --time .."] {
        let (name, arguments) = other.split_once(' ').unwrap_or((other, ""));
        let other = run(name, &input, &out, arguments);
        let expected = format!("{reason} (tracekit repair {advice}");
        assert_eq!(other.refused(), expected);
    }

    let done = run("repair", &input, &out, "--salvage");
    let lines: Vec<&str> = done.err.lines().collect();
    assert_eq!(done.code, 0);
    assert!(
        lines[0].ends_with("broken.json: 2 events kept"),
        "{}",
        done.err
    );
    assert!(
        lines[1].ends_with("broken.json: lost 29 bytes: 39 to 68"),
        "{}",
        done.err
    );
    let events = read(&out);
    assert_eq!(events.as_array().unwrap().len(), 3);
    assert_eq!(events[2]["args"]["lost"], serde_json::json!([[39, 68]]));
}

#[test]
fn clip_keeps_the_numbers_and_the_length_as_written() {
    let folder = Folder::new();
    let input = golden("lane-overlap-repaired");
    let out = folder.path().join("out.json");
    let done = run("repair", &input, &out, "--clip");
    assert!(done.err.contains("events clipped by"), "{}", done.err);
    assert_eq!(totals(&input, ""), totals(&out, ""));
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(
        text.contains("\"tracekit raw dur\": ") && text.contains("\"clipped_events\":"),
        "{text}"
    );
    let health = attribute(&out, "--format json").json(0)["health"].to_string();
    assert!(!health.contains("lane_overlap_repaired"), "{health}");
}

#[test]
fn slices_are_by_step_time_and_category() {
    let folder = Folder::new();
    let out = folder.path().join("out.json");
    let input = golden("two-steps");
    let done = run("slice", &input, &out, "--steps 4..4");
    assert!(
        done.err.contains(" device work; steps 4 to 4"),
        "{}",
        done.err
    );
    assert_eq!(totals(&out, "--steps 4..4"), totals(&input, "--steps 4..4"));
    let note = &read(&out)["tracekit_slice"];
    assert_eq!(note["steps"], serde_json::json!([4, 4]));

    assert_eq!(run("slice", &input, &out, "--time ..").code, 0);
    assert_eq!(totals(&out, ""), totals(&input, ""));
    assert_eq!(run("slice", &input, &out, "--cat kernel").code, 0);
    let events = read(&out);
    let categories = events["traceEvents"].as_array().unwrap();
    assert!(
        categories
            .iter()
            .all(|event| event["ph"] == "M" || event["cat"] == "kernel")
    );

    for (wrong, reason) in [
        (
            "--steps 70..",
            "no such step; the trace has ProfilerStep#4 to ProfilerStep#5",
        ),
        ("--cat nothing", "no event is of category 'nothing'"),
        ("--time 1000s..", "no event is in that part"),
        ("--time 1..2", "'1' has no unit: s, ms, us or ns"),
    ] {
        let error = run("slice", &input, &out, wrong).refused().to_owned();
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(run("slice", &input, &out, "").code, 2);
    assert_eq!(run("slice", &input, &out, "--steps 4 --time 1s..").code, 2);
}

#[test]
fn redaction_is_alike_across_files_with_a_map() {
    let folder = Folder::new();
    let trace = |name: &str| {
        format!(
            "{{\"username\":\"alice\",\"traceEvents\":[{{\"ph\":\"X\",\"name\":\"{name}\",\"ts\":1,\"dur\":1}}]}}"
        )
    };
    let one = folder.write("one.json", trace("/home/alice/a.py(1): f"));
    let two = folder.write(
        "two.json",
        trace("/home/alice/b.py(1): f;/home/alice/a.py(1): f"),
    );
    let out = folder.path().join("out.json");
    let map = folder.path().join("map.json");
    let arguments = format!("--map {}", map.display());
    let done = run("redact", &one, &out, &arguments);
    assert!(
        done.err
            .ends_with("1 events, replaced user in 1 strings, path in 1 strings\n"),
        "{}",
        done.err
    );
    assert_eq!(read(&out)["traceEvents"][0]["name"], "[path-1].py(1): f");
    run("redact", &two, &out, &arguments);
    assert_eq!(
        read(&out)["traceEvents"][0]["name"],
        "[path-2].py(1): f;[path-1].py(1): f"
    );
    assert_eq!(read(&out)["username"], "[user-1]");
    assert_eq!(read(&map)["user"]["alice"], 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&map).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(run("redact", &one, &out, "").err.contains("1 events"));
    run("redact", &one, &out, "--keep-names");
    assert_eq!(
        read(&out)["traceEvents"][0]["name"],
        "/home/alice/a.py(1): f"
    );
    assert_eq!(read(&out)["username"], "[user-1]");

    let broken = folder.write("broken.json", "{}");
    let error = run("redact", &one, &out, &format!("--map {}", broken.display()));
    assert!(error.refused().contains("broken.json: no map of tracekit"));
    let error = run("redact", &one, &out, &format!("--map {}", one.display()));
    assert!(
        error
            .refused()
            .ends_with("one.json: is the input or the output, not a map")
    );
}

#[test]
fn a_redacted_file_says_what_was_wrong_with_the_original() {
    let folder = Folder::new();
    let (out, fixed) = (
        folder.path().join("out.json"),
        folder.path().join("fixed.json"),
    );
    let odd = folder.write(
        "odd.json",
        b"{\"x\":\"\xff\",\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\tb\\c\",\"ts\":NaN},],\"x\":1}",
    );
    let cut = folder.write(
        "cut.json",
        "{\"traceEvents\":[{\"ph\":\"X\",\"ts\":1,\"dur\":1}",
    );
    for input in [golden("replaced-events"), odd, cut] {
        let done = run("redact", &input, &out, "");
        let repaired = run("repair", &input, &fixed, "");
        let (_, repairs) = repaired.err.split_once("repaired: ").unwrap();
        let repairs = repairs.lines().next().unwrap();
        assert!(
            done.err.ends_with(&format!("; repaired: {repairs}\n")),
            "{}",
            done.err
        );
        let (note, want) = (read(&out), read(&fixed));
        assert!(want["tracekit_repair"].is_object(), "{want}");
        assert_eq!(note["tracekit_repair"], want["tracekit_repair"]);
        let [got, want] = [&out, &fixed].map(|file| {
            let done = tracekit(&format!(
                "attribute --strict --format json {}",
                file.display()
            ));
            (done.code, done.json(done.code)["health"].clone())
        });
        assert_eq!(got, want);
        // What is noted stays noted, once.
        let again = folder.path().join("again.json");
        assert!(
            run("redact", &out, &again, "")
                .err
                .ends_with("nothing to replace\n")
        );
        assert_eq!(std::fs::read(&out).unwrap(), std::fs::read(&again).unwrap());
    }
    let done = run("redact", &golden("replaced-events"), &out, "");
    assert_eq!(done.code, 0);
    let strict = tracekit(&format!("attribute --strict {}", out.display()));
    assert_eq!(strict.code, 1);
    // A clean file gets no note.
    run("redact", &golden("two-steps"), &out, "");
    assert_eq!(read(&out)["tracekit_repair"], Value::Null);
}

#[test]
fn a_slice_says_what_was_wrong_with_the_whole() {
    let folder = Folder::new();
    let (out, fixed) = (
        folder.path().join("out.json"),
        folder.path().join("fixed.json"),
    );
    let odd = folder.write(
        "odd.json",
        b"\xef\xbb\xbf{\"x\":\"\xff\",\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\tb\\c\",\"ts\":1,\"dur\":1,\"a\":NaN},],\"x\":1}",
    );
    let noted = folder.path().join("noted.json");
    run("repair", &odd, &noted, "");
    let again = folder.write(
        "again.json",
        std::fs::read_to_string(&noted)
            .unwrap()
            .replace("a\\tb", "a\tb"),
    );
    for input in [golden("replaced-events"), odd.clone(), again] {
        let done = run("slice", &input, &out, "--time ..");
        let repaired = run("repair", &input, &fixed, "");
        let (_, repairs) = repaired.err.split_once("repaired: ").unwrap();
        assert!(
            done.err.ends_with(&format!("; repaired: {repairs}")),
            "{}",
            done.err
        );
        let (got, want) = (read(&out), read(&fixed));
        for key in ["tracekit_repair", "tracekit_repair_2"] {
            assert_eq!(got[key], want[key]);
        }
        assert!(got["tracekit_repair"].is_object() && got["tracekit_slice"].is_object());
    }
    // What is in no number of the whole is in none of its part, and that stays to be told.
    run("slice", &golden("replaced-events"), &out, "--time ..");
    let strict = |path: &Path| tracekit(&format!("attribute --strict {}", path.display())).code;
    assert_eq!((strict(&golden("replaced-events")), strict(&out)), (1, 1));
    let part = folder.path().join("part.json");
    run("slice", &out, &part, "--time ..");
    assert_eq!(strict(&part), 1);
    // A whole file gets no note, nor does the array form for what has lost nothing.
    run("slice", &golden("two-steps"), &out, "--time ..");
    assert_eq!(read(&out)["tracekit_repair"], Value::Null);
    let array = folder.write("array.json", "[{\"ph\":\"X\",\"ts\":1,\"dur\":1},]");
    let done = run("slice", &array, &out, "--time ..");
    assert!(done.err.ends_with("; repaired: trailing_comma 1\n"));
    assert_eq!(read(&out).as_array().unwrap().len(), 2);
}

#[cfg(unix)]
#[test]
fn a_map_behind_a_link_is_replaced_and_the_link_stays() {
    let folder = Folder::new();
    let one = folder.write("one.json", "{\"username\":\"alice\",\"traceEvents\":[]}");
    let two = folder.write("two.json", "{\"username\":\"bob\",\"traceEvents\":[]}");
    let out = folder.path().join("out.json");
    std::fs::create_dir(folder.path().join("shared")).unwrap();
    let shared = folder.path().join("shared/map.json");
    let link = folder.path().join("map.json");
    let run_with =
        |input: &Path, map: &Path| run("redact", input, &out, &format!("--map {}", map.display()));
    assert_eq!(run_with(&one, &shared).code, 0);
    std::os::unix::fs::symlink("shared/map.json", &link).unwrap();
    assert_eq!(run_with(&two, &link).code, 0);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    let users = serde_json::json!({"alice": 1, "bob": 2});
    assert_eq!(read(&shared)["user"], users);
    for (wrong, reason) in [("-", "is no file"), ("/dev/null", "is no file")] {
        let error = run_with(&one, Path::new(wrong)).refused().to_owned();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn outputs_are_compressed_by_their_name_and_never_inputs() {
    let folder = Folder::new();
    let input = folder.copy("trace.json", "two-steps");
    let want = totals(&input, "");
    for (name, magic) in [
        ("out.json.gz", &[0x1f, 0x8b][..]),
        ("out.json.zst", &[0x28, 0xb5]),
    ] {
        let out = folder.path().join(name);
        for (command, arguments) in [("repair", ""), ("redact", ""), ("slice", "--time ..")] {
            assert_eq!(run(command, &input, &out, arguments).code, 0);
            assert!(std::fs::read(&out).unwrap().starts_with(magic));
            assert_eq!(totals(&out, ""), want);
            // And back.
            let plain = folder.path().join("plain.json");
            assert_eq!(run(command, &out, &plain, arguments).code, 0);
            assert_eq!(totals(&plain, ""), want);
        }
    }
    for (command, arguments) in [("repair", ""), ("redact", ""), ("slice", "--time ..")] {
        let error = run(command, &input, &input, arguments).refused().to_owned();
        assert!(
            error.ends_with("trace.json: is an input and is not overwritten"),
            "{error}"
        );
    }
    assert_eq!(totals(&input, ""), want);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 4, "{left:?}");
}

#[test]
fn standard_input_and_output_are_a_minus() {
    let bytes = std::fs::read(golden("two-steps")).unwrap();
    for arguments in [
        "repair - -o -",
        "slice - --time .. -o -",
        "redact - -o - --no-mmap",
    ] {
        let mut command = command();
        command.args(arguments.split(' '));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(document["traceEvents"].is_array());
        assert!(output.stderr.starts_with(b"tracekit: -: "));
    }
    // Nothing of a broken trace is printed.
    let folder = Folder::new();
    let input = folder.write("broken.json", BROKEN);
    run("repair", &input, Path::new("-"), "").refused();
}

#[cfg(unix)]
#[test]
fn a_reader_that_went_away_is_no_failure() {
    let mut command = command();
    command.args([
        "repair",
        "fixtures/traces/baseline/rank0.1795966447664774158.pt.trace.json.gz",
    ]);
    command
        .args(["-o", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Whatever ends the process leaves the old result and nothing else.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_process_that_is_killed_leaves_no_file_behind() {
    use std::os::unix::fs::OpenOptionsExt as _;
    const O_TMPFILE: i32 = 0o20_200_000;
    let folder = Folder::new();
    let mut nameless = std::fs::OpenOptions::new();
    nameless.write(true).custom_flags(O_TMPFILE);
    // Not every file system has files without names.
    let has_nameless = nameless.open(folder.path()).is_ok();
    let event = r#"{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":1},"#;
    let input = folder.write("in.json", format!("[{}]", event.repeat(400_000)));
    let out = folder.write("out.json.gz", "the old result");
    let entries = || -> Vec<String> {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    let mut command = command();
    command.arg("repair").arg(&input).arg("-o").arg(&out);
    let mut child = command.spawn().unwrap();
    let is_writing = || {
        let files = std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
        let mut files = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
        files.any(|file| file.starts_with(folder.path()) && file != input)
    };
    while !is_writing() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
    if has_nameless {
        assert_eq!(entries(), ["in.json", "out.json.gz"]);
    }
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "the old result");
}

#[test]
fn wrong_files_and_options_are_refused() {
    let folder = Folder::new();
    let out = folder.path().join("out.json");
    for name in ["repair", "redact", "slice --time .."] {
        let (name, arguments) = name.split_once(' ').unwrap_or((name, ""));
        let missing = run(name, Path::new("no/such.json"), &out, arguments);
        assert!(missing.refused().starts_with("tracekit: no/such.json: "));
        let folder_as_input = run(name, folder.path(), &out, arguments);
        folder_as_input.refused();
        let nowhere = run(
            name,
            &golden("two-steps"),
            Path::new("no/such/out.json"),
            arguments,
        );
        assert!(nowhere.refused().contains("no/such/out.json"));
        assert_eq!(
            tracekit(&format!("{name} fixtures/golden/two-steps/trace.json")).code,
            2
        );
        assert!(
            tracekit(&format!("{name} --help"))
                .out
                .contains("Examples:")
        );
    }
    assert!(!out.exists());
}
