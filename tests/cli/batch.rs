//! `tracekit batch` from outside.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::{Folder, Run, command, finish, golden};

pub(super) fn batch(arguments: &[&Path], options: &str) -> Run {
    let mut command = command();
    command.arg("batch").args(arguments);
    command.args(options.split_whitespace());
    finish(command)
}

/// `tracekit batch PATH -o OUT` with further `options`.
pub(super) fn made(path: &Path, out: &Path, options: &str) -> Run {
    batch(&[path, Path::new("-o"), out], options)
}

pub(super) fn query(dataset: &Path, sql: &str) -> Value {
    let mut command = command();
    command.arg("query").arg(dataset).arg(sql);
    command.args(["--format", "json"]);
    finish(command).json(0)
}

/// An archive of runs: two strategies of two ranks, a duplicate, broken files and what is no trace.
pub(super) fn runs() -> Folder {
    let folder = Folder::new();
    for run in ["a/baseline", "a/checkpoint"] {
        for rank in 0..2 {
            folder.copy(&format!("{run}/rank{rank}.json"), "two-steps");
        }
    }
    folder.copy("b/job7_rank0.json", "checkpoint-reentrant");
    folder.write("b/job7_rank1.pt.trace.json", "{\"traceEvents\": [{\"ph\":");
    folder.write("b/job8.trace.json", "no JSON");
    folder.write("b/config.json", "{\"lr\": 0.1}");
    folder.write("b/notes.txt", "nothing");
    folder
}

/// Every file of a dataset that readers see, by its place.
pub(super) fn files(dataset: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![dataset.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name == ".tracekit" {
                continue;
            }
            assert!(!name.starts_with('.'), "{} is left over", path.display());
            if path.is_dir() {
                open.push(path);
            } else {
                let below = path.strip_prefix(dataset).unwrap().to_owned();
                files.insert(below, std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// The same tables; the manifest may name another shard.
pub(super) fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (files(one), files(other));
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&one), names(&other));
    for (name, bytes) in &one {
        assert!(*bytes == other[name], "{} differs", name.display());
    }
}

#[test]
fn an_archive_becomes_a_dataset_that_is_not_made_twice() {
    let (archive, out) = (runs(), Folder::new());
    let dataset = out.path().join("dataset");
    let run = made(archive.path(), &dataset, "--format json");
    let report = run.json(4);
    // Four equal traces are analysed once or, when two are read at a time, twice.
    let analysed = report["analysed"].as_u64().unwrap();
    assert!((5..=8).contains(&analysed), "{report}");
    assert_eq!(report["done"], 5);
    assert_eq!(report["failed"], 2);
    assert_eq!(report["runs"], 4);
    let rows = query(
        &dataset,
        "SELECT run, strategy, status, ranks, steps, failed_inputs FROM runs ORDER BY run, status",
    );
    let expected = json!([
        {"run": "a/baseline", "strategy": "baseline", "status": "done", "ranks": 2, "steps": 4, "failed_inputs": 0},
        {"run": "a/checkpoint", "strategy": "checkpoint", "status": "done", "ranks": 2, "steps": 4, "failed_inputs": 0},
        {"run": "b/job7", "strategy": "job7", "status": "done", "ranks": 1, "steps": rows[2]["steps"], "failed_inputs": 1},
        {"run": "b/job7", "strategy": "job7", "status": "failed", "ranks": null, "steps": null, "failed_inputs": null},
        {"run": "b/job8", "strategy": "job8", "status": "failed", "ranks": null, "steps": null, "failed_inputs": null},
    ]);
    assert_eq!(rows, expected);
    let errors = query(&dataset, "SELECT error FROM runs WHERE status = 'failed'");
    assert!(errors.to_string().contains("at byte"), "{errors}");
    let before = files(&dataset);
    let again = made(archive.path(), &dataset, "--format json").json(4);
    assert_eq!(
        (&again["analysed"], &again["written"]),
        (&json!(0), &json!(0))
    );
    assert!(before == files(&dataset));

    // One more, and one that changed.
    archive.copy("a/checkpoint/rank2.json", "two-steps");
    archive.copy("b/job8.trace.json", "host-only");
    let more = made(archive.path(), &dataset, "--format json").json(4);
    assert_eq!((&more["done"], &more["failed"]), (&json!(7), &json!(1)));
    assert_eq!(more["written"], 2);
    let pruned = made(&archive.path().join("a"), &dataset, "--prune --format json");
    assert_eq!(pruned.json(0)["done"], 5);
    assert_eq!(
        query(&dataset, "SELECT COUNT(*) AS n FROM runs"),
        json!([{"n": 2}])
    );
}

#[test]
fn numbers_are_those_of_the_attribution() {
    let out = Folder::new();
    let dataset = out.path().join("dataset");
    let case = golden("checkpoint-reentrant");
    assert_eq!(made(&case, &dataset, "--infer").code, 0);
    let answer = crate::attribute(&case, "--format json").json(0);
    let totals = &answer["totals"];
    let ranks = query(&dataset, "SELECT * FROM ranks");
    for phase in ["forward", "backward", "recompute", "optimizer", "other"] {
        assert_eq!(
            ranks[0][format!("{phase}_ns")],
            totals[phase]["sum_ns"],
            "{phase}"
        );
    }
    assert_eq!(ranks[0]["device_sum_ns"], totals["total"]["sum_ns"]);
    let timeline = &answer["ranks"][0]["devices"][0]["timeline"];
    assert_eq!(ranks[0]["idle_ns"], timeline["idle_ns"]);
    let held = query(
        &dataset,
        "SELECT SUM(timeline_ns) AS ns FROM phases WHERE device IS NOT NULL",
    );
    assert_eq!(held[0]["ns"], timeline["window_ns"]);
    let codes = query(&dataset, "SELECT code FROM health");
    assert_eq!(
        codes.as_array().unwrap().len(),
        answer["health"].as_array().unwrap().len()
    );
    let inferred = query(
        &dataset,
        "SELECT verdict FROM inferences WHERE code = 'recompute_overhead'",
    );
    assert_eq!(inferred, json!([{"verdict": "supported"}]));
    let operators = query(&dataset, "SELECT SUM(host_self_ns) AS ns FROM operators");
    let phases = &answer["ranks"][0]["host"]["phases"];
    let own: i64 = phases
        .as_object()
        .unwrap()
        .values()
        .map(|phase| phase["self_ns"].as_i64().unwrap())
        .sum();
    assert_eq!(operators[0]["ns"], own);
}

/// The files of `folder` in archives of every kind beside one another.
fn packed(folder: &Path, to: &Path) {
    let tar = |name: &str, compress: &str| {
        let status = Command::new("tar")
            .arg("-C")
            .arg(folder)
            .arg(compress)
            .arg("-cf")
            .arg(to.join(name))
            .arg(".")
            .stdin(Stdio::null())
            .status();
        assert!(status.unwrap().success(), "{name}");
    };
    tar("plain.tar", "--format=gnu");
    tar("packed.tar.gz", "-z");
}

#[test]
fn archives_say_what_their_files_say() {
    let (archive, place, out) = (runs(), Folder::new(), Folder::new());
    packed(archive.path(), place.path());
    let rows = |dataset: &Path| {
        query(
            dataset,
            "SELECT run, strategy, status, ranks, steps, device_sum_ns, error FROM runs ORDER BY run, status",
        )
    };
    let plain = out.path().join("folder");
    made(archive.path(), &plain, "");
    for name in ["plain.tar", "packed.tar.gz"] {
        let dataset = out.path().join(name);
        let run = made(&place.path().join(name), &dataset, "--format json");
        assert_eq!(run.json(4)["done"], 5, "{name}");
        assert_eq!(rows(&dataset), rows(&plain), "{name}");
        let again = made(&place.path().join(name), &dataset, "--format json");
        assert_eq!(again.json(4)["analysed"], 0, "{name}");
    }
}

#[test]
fn parts_together_are_one_run() {
    let (archive, out) = (runs(), Folder::new());
    packed(&golden("two-ranks"), archive.path());
    let whole = out.path().join("whole");
    assert_eq!(made(archive.path(), &whole, "").code, 4);
    let parts: Vec<PathBuf> = (1..=7)
        .map(|part| out.path().join(format!("part{part}")))
        .collect();
    for (part, dataset) in (1..).zip(&parts) {
        let run = made(archive.path(), dataset, &format!("--shard {part}/7"));
        assert!(run.code == 0 || run.code == 4, "{}", run.err);
    }
    let merge = |parts: &[PathBuf], to: &str| {
        let mut command = command();
        command.arg("batch").arg("merge").args(parts);
        command.arg("-o").arg(out.path().join(to));
        finish(command)
    };
    let merged = merge(&parts, "merged");
    assert_eq!(merged.code, 4, "{}", merged.err);
    assert_same(&whole, &out.path().join("merged"));
    // In another order, onto itself.
    let reversed: Vec<PathBuf> = parts.iter().rev().cloned().collect();
    assert_eq!(merge(&reversed, "merged").code, 4);
    assert_same(&whole, &out.path().join("merged"));
    assert!(
        merge(&parts[1..], "less")
            .refused()
            .contains("missing parts of 7: 1")
    );
    let twice = [&parts[..], &parts[..1]].concat();
    assert!(merge(&twice, "twice").refused().contains("is part 1 as"));
    assert!(merge(&[whole], "none").refused().contains("--shard"));
}

#[test]
fn killed_at_any_moment_it_goes_on_to_the_same_dataset() {
    let (archive, out) = (runs(), Folder::new());
    for number in 0..10 {
        archive.copy(&format!("c/job{number}_rank0.json"), "two-steps");
        let unique = std::fs::read_to_string(golden("two-steps")).unwrap();
        archive.write(
            &format!("d/run{number}/rank0.json"),
            format!("{unique}{}", " ".repeat(number)),
        );
    }
    packed(&archive.path().join("a"), archive.path());
    let whole = out.path().join("whole");
    let start = std::time::Instant::now();
    assert_eq!(made(archive.path(), &whole, "-j 2").code, 4);
    let full = start.elapsed();
    let dataset = out.path().join("killed");
    let mut random = 7_u32;
    // More on request.
    let times = std::env::var("TRACEKIT_KILLS").ok();
    let times: u32 = times.and_then(|times| times.parse().ok()).unwrap_or(10);
    let (mut killed, mut longest) = (0, full);
    while killed < times {
        let mut command = command();
        command
            .arg("batch")
            .arg(archive.path())
            .arg("-o")
            .arg(&dataset);
        command.args(["-j", "2", "-q"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        random = random.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        std::thread::sleep(longest.mul_f64(f64::from(random >> 16 & 0xff) / 300.0));
        let done = child.try_wait().unwrap().is_some();
        if !done {
            child.kill().unwrap();
            killed += 1;
        }
        child.wait().unwrap();
        // What is there is whole: no table has a part of a row or file.
        if dataset.join("manifest.json").is_file() {
            query(&dataset, "SELECT COUNT(*) AS n FROM runs");
        }
        // There is something to do again, and less time for it.
        if done {
            std::fs::remove_dir_all(&dataset).unwrap();
            longest = longest.mul_f64(0.9);
        }
    }
    assert_eq!(made(archive.path(), &dataset, "-j 2").code, 4);
    assert_same(&whole, &dataset);
}

#[cfg(unix)]
#[test]
fn interrupted_it_keeps_what_is_done() {
    let (archive, out) = (Folder::new(), Folder::new());
    archive.copy("a/rank0.json", "two-steps");
    let dataset = out.path().join("dataset");
    let mut command = command();
    command
        .arg("batch")
        .arg(archive.path())
        .arg("-o")
        .arg(&dataset);
    command.args(["--watch", "--interval", "1"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let manifest = dataset.join("manifest.json");
    for _ in 0..600 {
        if manifest.is_file() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    // Another one waits its turn only while this one writes; a lock of our own shows that.
    let lock = std::fs::File::open(dataset.join(".tracekit/lock")).unwrap();
    let id = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(
        query(&dataset, "SELECT COUNT(*) AS n FROM ranks"),
        json!([{"n": 1}])
    );
    lock.try_lock().unwrap();
    let run = made(archive.path(), &dataset, "");
    assert!(run.refused().contains("another batch"), "{}", run.err);
}

#[test]
fn names_are_recognised_by_patterns_and_from_lists() {
    let (archive, out) = (Folder::new(), Folder::new());
    for (name, case) in [
        ("x7/ddp/r3.json", "two-steps"),
        ("x8/ddp/r4.json", "host-only"),
    ] {
        archive.copy(name, case);
    }
    let list = archive.write(
        "list",
        format!("{}\n\n", archive.path().join("*/ddp/*.json").display()),
    );
    let dataset = out.path().join("dataset");
    let run = batch(
        &[Path::new("--list"), &list, Path::new("-o"), &dataset],
        "--pattern {run}/{strategy}/r{rank}",
    );
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("2 by pattern"), "{}", run.out);
    assert_eq!(
        query(
            &dataset,
            "SELECT run, strategy, rank FROM ranks ORDER BY rank"
        ),
        json!([
            {"run": "x7/ddp", "strategy": "ddp", "rank": 3},
            {"run": "x8/ddp", "strategy": "ddp", "rank": 4},
        ])
    );
    let mut from_stdin = command();
    from_stdin.args(["batch", "--list", "-", "-o"]);
    from_stdin.arg(out.path().join("other"));
    from_stdin.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = from_stdin.spawn().unwrap();
    let line = format!("{}\n", archive.path().join("x7").display());
    child
        .stdin
        .take()
        .unwrap()
        .write_all(line.as_bytes())
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn mistakes_are_one_line_and_change_nothing() {
    let (archive, out) = (runs(), Folder::new());
    let foreign = out.write("mine/file", "precious");
    let refused = |run: Run, reason: &str| {
        assert!(run.refused().contains(reason), "{}", run.err);
    };
    refused(
        made(archive.path(), foreign.parent().unwrap(), ""),
        "other files",
    );
    refused(
        made(Path::new("nowhere"), &out.path().join("d"), ""),
        "nowhere",
    );
    refused(
        made(archive.path(), &out.path().join("d"), "--resume"),
        "no dataset",
    );
    assert!(!out.path().join("d").exists());
    let wrong = made(archive.path(), &out.path().join("d"), "--shard 8/7");
    assert_eq!(wrong.code, 2);
    let wrong = made(archive.path(), &out.path().join("d"), "--pattern {x}");
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    assert_eq!(std::fs::read(&foreign).unwrap(), b"precious");
}

/// Two folders, each with the runs `baseline` and `NAME`, of different content.
fn versions() -> Folder {
    let folder = Folder::new();
    for (version, case, own) in [("1.0", "two-steps", "old"), ("2.0", "host-only", "new")] {
        folder.copy(&format!("{version}/baseline/rank0.json"), case);
        folder.copy(&format!("{version}/{own}/rank0.json"), case);
    }
    folder
}

#[test]
fn runs_of_one_name_in_two_folders_are_not_put_together_in_silence() {
    let (archive, out) = (versions(), Folder::new());
    let at = |name: &str| archive.path().join(name);
    let dataset = out.path().join("dataset");
    assert_eq!(made(&at("1.0"), &dataset, "").code, 0);
    let before = files(&dataset);
    let refused = made(&at("2.0"), &dataset, "");
    for part in [
        "'baseline'",
        "1.0/baseline",
        "2.0/baseline",
        "--pattern",
        "-o",
    ] {
        assert!(refused.refused().contains(part), "{part}: {}", refused.err);
    }
    // The folder of the run itself, and a file of it, are no other way around it.
    let run = made(&at("2.0/baseline"), &dataset, "");
    assert!(run.refused().contains("'baseline'"), "{}", run.err);
    let part = made(&at("2.0"), &out.path().join("part"), "--shard 1/1");
    assert_eq!(part.code, 0, "{}", part.err);
    assert!(before == files(&dataset));

    // Another run beside it, and more of the run that is there, are welcome.
    assert_eq!(made(&at("2.0/new"), &dataset, "").code, 0);
    archive.copy("1.0/baseline/rank1/trace.json", "host-only");
    for given in [
        "1.0",
        "1.0/baseline",
        "1.0/baseline/rank1/trace.json",
        "1.0",
    ] {
        let run = made(&at(given), &dataset, "");
        assert_eq!(run.code, 0, "{given}: {}", run.err);
        assert!(!run.err.contains("warning"), "{given}: {}", run.err);
    }
    // The ways out: the parent, a pattern, and only what is given now.
    let names = |dataset: &Path| {
        query(
            dataset,
            "SELECT run, SUM(ranks) AS ranks FROM runs GROUP BY run ORDER BY run",
        )
    };
    let meant = out.path().join("meant");
    assert_eq!(made(&at("1.0"), &meant, "").code, 0);
    assert_eq!(made(&at("2.0"), &meant, "--prune").code, 0);
    assert_eq!(
        names(&meant),
        json!([{"run": "baseline", "ranks": 1}, {"run": "new", "ranks": 1}])
    );
    let pattern = "--pattern {run}/rank{rank}";
    let run = made(&at("1.0"), &meant, pattern);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(!run.err.contains("warning"), "{}", run.err);
    assert_eq!(names(&meant).as_array().unwrap().len(), 3);
    assert_eq!(made(archive.path(), &dataset, "").code, 0);
    assert_eq!(
        names(&dataset),
        json!([
            {"run": "1.0/baseline", "ranks": 2},
            {"run": "1.0/old", "ranks": 1},
            {"run": "2.0/baseline", "ranks": 1},
            {"run": "2.0/new", "ranks": 1},
        ])
    );
}

#[test]
fn archives_that_add_to_a_run_of_another_are_told() {
    let (versions, place, out) = (versions(), Folder::new(), Folder::new());
    for version in ["1.0", "2.0"] {
        std::fs::create_dir(place.path().join(version)).unwrap();
        packed(&versions.path().join(version), &place.path().join(version));
    }
    let dataset = out.path().join("dataset");
    let add = |name: &str| made(&place.path().join(name), &dataset, "--format json");
    let first = add("1.0/plain.tar");
    assert_eq!(first.json(0)["pooled"], json!([]));
    let second = add("2.0/plain.tar");
    assert_eq!(second.json(0)["pooled"].as_array().unwrap().len(), 1);
    let warned = second.err.lines().filter(|line| line.contains("warning"));
    let warned: Vec<&str> = warned.collect();
    assert!(
        warned.len() == 1 && warned[0].contains("'baseline'") && warned[0].contains("1.0/plain"),
        "{}",
        second.err
    );
    // It is told when it happens.
    assert_eq!(add("2.0/plain.tar").json(0)["pooled"], json!([]));
}

#[test]
fn a_pattern_that_matches_nothing_is_told() {
    let (archive, out) = (versions(), Folder::new());
    let dataset = out.path().join("dataset");
    let run = |pattern: &str| made(archive.path(), &dataset, &format!("--pattern {pattern}"));
    let idle = run("{run}/worker{rank}");
    assert_eq!(idle.code, 0, "{}", idle.err);
    assert!(
        idle.err
            .contains("warning: --pattern '{run}/worker{rank}' matches no input"),
        "{}",
        idle.err
    );
    for pattern in ["{run}/new/rank{rank}", "rank{rank}"] {
        let some = run(pattern);
        assert_eq!(some.code, 0, "{}", some.err);
        assert!(!some.err.contains("warning"), "{}", some.err);
    }
}

#[test]
fn a_list_without_paths_is_refused() {
    let (archive, out) = (versions(), Folder::new());
    let dataset = out.path().join("dataset");
    for text in ["", "\n", " \n\t\r\n\n"] {
        let list = archive.write("list", text);
        let run = batch(&[Path::new("--list"), &list, Path::new("-o"), &dataset], "");
        assert!(run.refused().contains("no inputs"), "{}", run.err);
    }
    // Standard input is empty, too.
    let run = batch(&[Path::new("-o"), &dataset], "--list -");
    assert!(run.refused().contains("no inputs"), "{}", run.err);
    assert!(!dataset.exists());
    let line = archive.path().join("1.0");
    let list = archive.write("list", format!("  \n\n{}\n \n", line.display()));
    let run = batch(&[Path::new("--list"), &list, Path::new("-o"), &dataset], "");
    assert_eq!(run.code, 0, "{}", run.err);
}

#[test]
fn memory_is_bounded() {
    let (archive, out) = (Folder::new(), Folder::new());
    archive.copy("a/rank0.json", "two-steps");
    let event = |number: u32| {
        let ts = 2 * number;
        format!(r#"{{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":{ts},"dur":1}}"#)
    };
    let events: Vec<String> = (0..100_000).map(event).collect();
    archive.write("a/rank1.json", format!("[{}]", events.join(",")));
    let dataset = out.path().join("dataset");
    let run = made(archive.path(), &dataset, "--memory-limit 64M");
    assert_eq!(run.code, 4, "{}", run.err);
    let errors = query(
        &dataset,
        "SELECT error_kind, error FROM runs WHERE status = 'failed'",
    );
    assert_eq!(errors[0]["error_kind"], "memory", "{errors}");
    // With more memory it is tried again.
    assert_eq!(made(archive.path(), &dataset, "--memory-limit 1G").code, 0);
}

#[test]
fn slower_runs_are_found() {
    let (archive, out) = (Folder::new(), Folder::new());
    let trace = |step: u64, base: u64| {
        let steps: Vec<String> = (0..12)
            .map(|number| {
                let length = step + number % 3;
                format!(
                    r#"{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{number}","pid":1,"tid":1,"ts":{},"dur":{length}}}"#,
                    number * 10_000
                )
            })
            .collect();
        format!(
            r#"{{"baseTimeNanoseconds":{base},"traceEvents":[{}]}}"#,
            steps.join(",")
        )
    };
    for (day, step) in [1_000, 1_002, 1_001, 1_300].into_iter().enumerate() {
        let base = 1_700_000_000_000_000_000 + day as u64 * 86_400_000_000_000;
        archive.write(&format!("ddp/repeat{day}/rank0.json"), trace(step, base));
    }
    let dataset = out.path().join("dataset");
    assert_eq!(made(archive.path(), &dataset, "").code, 0);
    let days = query(&dataset, "SELECT DISTINCT date FROM runs ORDER BY date");
    assert_eq!(days[0]["date"], "2023-11-14");
    assert_eq!(days.as_array().unwrap().len(), 4);
    let check = |options: &str| {
        let mut command = command();
        command.arg("batch").arg("check").arg(&dataset);
        finish({
            command.args(options.split_whitespace());
            command
        })
    };
    let found = check("--baseline median:3 --format json").json(1);
    assert_eq!(found["runs"][0]["run"], "ddp/repeat3");
    assert_eq!(found["runs"][0]["times"][0]["verdict"], "more");
    let junit = check("--baseline ddp/repeat0 --format junit");
    assert_eq!(junit.code, 1);
    assert!(
        junit.out.contains("tests=\"3\" failures=\"1\""),
        "{}",
        junit.out
    );
    assert_eq!(check("--baseline ddp/repeat0 --run ddp/repeat1").code, 0);
    assert!(check("--baseline nobody").refused().contains("nobody"));
    let page = std::fs::read_to_string(dataset.join("summary.html")).unwrap();
    for part in [
        "Trends",
        "Outliers",
        "Times a step that grew beyond noise",
        "Health",
        "Failed inputs",
        "ddp/repeat3",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn too_few_steps_are_no_verdict() {
    let out = Folder::new();
    let dataset = out.path().join("dataset");
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces");
    assert_eq!(made(&traces, &dataset, "").code, 0);
    let check = |format: &str| {
        let mut command = command();
        command.arg("batch").arg("check").arg(&dataset);
        command.args(["--baseline", "baseline", "--format", format]);
        let run = finish(command);
        assert_eq!(run.code, 0, "{}", run.err);
        run.out
    };
    for format in ["text", "markdown"] {
        let told = check(format);
        assert!(told.contains("; 2 inconclusive"), "{told}");
        assert!(told.contains("checkpoint: so few"), "{told}");
    }
    let junit = check("junit");
    assert!(junit.contains("failures=\"0\" skipped=\"2\""), "{junit}");
    assert!(junit.contains("message=\"inconclusive: "), "{junit}");
}

#[test]
fn a_dataset_tells_its_tables() {
    let out = Folder::new();
    let dataset = out.path().join("dataset");
    let archive = runs();
    assert_eq!(made(archive.path(), &dataset, "").code, 4);
    let ask = |words: &[&str]| {
        let mut command = command();
        command.arg("query").arg(&dataset).args(words);
        finish(command)
    };
    let tables = ask(&["--tables"]);
    assert_eq!(tables.code, 0);
    for part in ["7 tables", "inferences", "step_median_ns"] {
        assert!(tables.out.contains(part), "{part}: {}", tables.out);
    }
    let refused = ask(&["SELEC 1"]).refused().to_owned();
    assert!(refused.contains("SELEC"), "{refused}");
    let refused = ask(&[""]).refused().to_owned();
    assert!(refused.contains("the query is empty"), "{refused}");
    let refused = ask(&["SELECT * FROM kernels"]).refused().to_owned();
    assert!(refused.contains("there are runs, ranks"), "{refused}");
    let mut command = command();
    command.arg("query").arg(out.path().join("nothing"));
    let refused = finish({
        command.arg("SELECT run FROM runs");
        command
    });
    assert!(refused.refused().contains("nothing"), "{}", refused.err);
    assert!(!refused.err.contains("SQL"), "{}", refused.err);
}
