//! A run of the program.

use std::path::Path;
use std::process::{Command, Stdio};

use tracekit::gate::Json;

/// What a run of the program left behind.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// The JSON on standard output of a run that ended in `code`.
    pub(crate) fn json(&self, code: i32) -> Json {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        Json::parse(&self.out).unwrap_or_else(|error| panic!("{error} in {}", self.out))
    }

    /// The one line on standard error of a run that was refused and printed nothing.
    pub(crate) fn refused(&self) -> &str {
        assert_eq!(self.code, 2, "{}{}", self.out, self.err);
        assert_eq!(self.out, "", "{}", self.err);
        assert_eq!(self.err.trim_end().lines().count(), 1, "{}", self.err);
        self.err.trim_end().strip_prefix("tracekit: ").unwrap()
    }
}

/// Runs the program in `folder`.
pub(crate) fn run_in(folder: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracekit"));
    command.current_dir(folder).args(arguments);
    command.stdin(Stdio::null()).env_remove("COLUMNS");
    let output = command.output().unwrap();
    Run {
        code: output.status.code().expect("the program was not killed"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs the program in the folder of the package.
pub(crate) fn run(arguments: &[&str]) -> Run {
    run_in(Path::new(env!("CARGO_MANIFEST_DIR")), arguments)
}
