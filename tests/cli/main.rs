//! The program from outside: exit codes, what goes to standard output and what to standard error, and
//! every flag.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(feature = "batch")]
mod archives;
#[cfg(feature = "batch")]
mod batch;
mod compare;
mod corpus;
mod doctor;
mod exit;
mod flags;
#[cfg(feature = "frames")]
mod frames;
mod inspect;
#[cfg(not(feature = "collect"))]
mod no_collect;
mod output;
#[path = "../support/page.rs"]
mod page;
mod report;
mod rewrite;
#[path = "../support/rich.rs"]
mod rich;
mod salvage;
mod schema;
#[path = "../support/snapshot.rs"]
mod snapshot;
mod terminal;
#[path = "../support/training.rs"]
mod training;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a run of the program left behind.
struct Run {
    code: i32,
    out: String,
    err: String,
}

impl Run {
    /// The JSON on standard output of a run that ended in `code`.
    fn json(&self, code: i32) -> Value {
        assert_eq!(self.code, code, "{}", self.err);
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {}", self.out))
    }

    /// Checks that the run was refused with one line on standard error and nothing on standard output.
    fn refused(&self) -> &str {
        assert_eq!(self.code, 2, "{}{}", self.out, self.err);
        assert_eq!(self.out, "", "{}", self.err);
        assert!(self.err.starts_with("tracekit: "), "{}", self.err);
        assert_eq!(self.err.trim_end().lines().count(), 1, "{}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self.err.trim_end()
    }
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracekit"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null());
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(variable);
    }
    command
}

fn finish(mut command: Command) -> Run {
    let output = command.output().unwrap();
    Run {
        code: output.status.code().expect("the program was not killed"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs `tracekit` with `arguments`, split at spaces.
fn tracekit(arguments: &str) -> Run {
    let mut command = command();
    command.args(arguments.split_whitespace());
    finish(command)
}

/// Runs `tracekit attribute PATH` with further `arguments`, split at spaces.
fn attribute(path: &Path, arguments: &str) -> Run {
    let mut command = command();
    command
        .arg("attribute")
        .arg(path)
        .args(arguments.split_whitespace());
    finish(command)
}

/// A golden trace.
fn golden(case: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/golden")
        .join(case);
    let trace = folder.join("trace");
    if trace.is_dir() {
        trace
    } else {
        folder.join("trace.json")
    }
}

/// A folder that takes copies of golden traces.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::TempDir::new().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    fn copy(&self, name: &str, case: &str) -> PathBuf {
        self.write(name, std::fs::read(golden(case)).unwrap())
    }
}

fn finding<'a>(answer: &'a Value, code: &str) -> Option<&'a Value> {
    answer["health"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["code"] == code)
}
