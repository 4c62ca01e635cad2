//! Signals, status and streams go through untouched.

use std::process::Child;

use crate::run::{Run, has_python, kill, told, traces};

/// A run that waits for a signal, with the process ids of `tracekit` and of the program.
fn waiting(words: &[&str]) -> (Run, Child, String) {
    let words: Vec<&str> = words.iter().copied().chain(["wait-signal"]).collect();
    let run = Run::new(&words);
    let ready = run.file("ready");
    let run = run.set("FIXTURE_READY", ready.to_str().unwrap());
    let child = run.start();
    let program = told(&ready);
    (run, child, program)
}

#[test]
fn streams_pass_through() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["say", "exit:9"])
        .input("from stdin\n")
        .option(&["-q"]);
    let done = run.done();
    assert_eq!(done.code, 9);
    assert_eq!(done.stdout, "to stdout\nfrom stdin\n");
    assert_eq!(done.stderr, "to stderr\n");
}

#[test]
fn a_signal_to_tracekit_ends_the_program_and_its_status_is_told() {
    if !has_python() {
        return;
    }
    for (signal, code) in [("-TERM", 143), ("-HUP", 129), ("-USR1", 138)] {
        let (run, child, _) = waiting(&["steps:2", "flushed"]);
        kill(signal, &child.id().to_string());
        let done = run.finish(child);
        assert_eq!(done.code, code, "{signal}: {}", done.stderr);
        assert_eq!(done.only().count("kernel"), 12, "{signal}");
    }
}

#[test]
fn a_program_that_catches_interrupts_ends_in_order() {
    if !has_python() {
        return;
    }
    let (run, child, _) = waiting(&["catch:2", "steps:2"]);
    kill("-INT", &child.id().to_string());
    let done = run.finish(child);
    assert_eq!(done.code, 42, "{}", done.stderr);
    let trace = done.only();
    assert_eq!(trace.count("kernel"), 12);
    assert_eq!(trace.json["tracekit_collect"]["ended_in_order"], true);
}

#[test]
fn a_signal_to_the_program_alone_is_its_status() {
    if !has_python() {
        return;
    }
    let (run, child, program) = waiting(&["steps:1", "flushed"]);
    kill("-KILL", &program);
    let done = run.finish(child);
    assert_eq!(done.code, 137, "{}", done.stderr);
    assert_eq!(done.only().count("kernel"), 6);
}

#[test]
fn spools_of_a_killed_run_can_be_converted_later() {
    if !has_python() {
        return;
    }
    let (run, mut child, program) = waiting(&["catch:15", "steps:3"]);
    kill("-KILL", &child.id().to_string());
    assert!(!child.wait().unwrap().success());
    // The program goes on, and ends in order.
    kill("-TERM", &program);
    let spools = run.output().join("spool");
    let spool = std::fs::read_dir(&spools)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let alive = format!("/proc/{program}");
    while std::path::Path::new(&alive).exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(traces(&run.output()).is_empty() && spool.exists());
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tracekit"))
        .args(["collect", "--convert"])
        .arg(run.output())
        .output()
        .unwrap();
    assert!(output.status.success());
    let traces = traces(&run.output());
    assert_eq!((traces.len(), traces[0].count("kernel")), (1, 18));
    assert_eq!(traces[0].json["tracekit_collect"]["ended_in_order"], true);
    assert!(!spools.exists());
}

#[test]
fn a_command_that_is_not_there_is_told() {
    let run = Run::of(&["no-such-program-anywhere"]);
    let done = run.done();
    assert_eq!((done.code, done.stdout.as_str()), (127, ""));
    done.assert_told("no-such-program-anywhere: no such file or directory");
    assert!(!run.output().exists());
}

#[test]
fn interrupts_of_a_terminal_come_to_the_program_once() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["steps:2", "count-interrupts"]);
    let ready = run.file("ready");
    let run = run
        .set("FIXTURE_READY", ready.to_str().unwrap())
        .on_terminal(&ready);
    let done = run.done();
    // The terminal sends it to both, and tracekit sends no second one.
    assert_eq!(done.code, 1, "{}", done.stdout);
    assert!(done.stdout.contains("wrote "), "{}", done.stdout);
    let trace = done.only();
    assert_eq!(trace.count("kernel"), 12);
    assert_eq!(trace.json["tracekit_collect"]["ended_in_order"], true);
}

#[test]
fn a_program_that_an_interrupt_ends_keeps_what_was_flushed() {
    if !has_python() {
        return;
    }
    let run = Run::new(&["steps:2", "flushed", "default:2", "wait-signal"]);
    let ready = run.file("ready");
    let run = run
        .set("FIXTURE_READY", ready.to_str().unwrap())
        .on_terminal(&ready);
    let done = run.done();
    assert_eq!(done.code, 130, "{}", done.stdout);
    assert_eq!(done.only().count("kernel"), 12);
}

#[test]
fn signals_that_are_ignored_are_ignored_by_the_program_too() {
    if !has_python() {
        return;
    }
    for (trap, ignored) in [("INT HUP", "SIGINT SIGHUP\n"), ("TERM", "SIGTERM\n")] {
        let run = Run::new(&["ignored"]).ignoring(trap);
        let done = run.done();
        assert_eq!((done.code, done.stdout.as_str()), (0, ignored));
    }
    // As under nohup: the signal ends neither.
    let run = Run::new(&["steps:1", "wait-signal"]).ignoring("HUP");
    let ready = run.file("ready");
    let run = run.set("FIXTURE_READY", ready.to_str().unwrap());
    let child = run.start();
    let program = told(&ready);
    kill("-HUP", &child.id().to_string());
    kill("-HUP", &program);
    kill("-TERM", &child.id().to_string());
    let done = run.finish(child);
    assert_eq!(done.code, 143, "{}", done.stderr);
}
