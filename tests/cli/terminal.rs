//! What changes when standard output is a terminal. Python makes one; where there is none, this is skipped.

use std::process::{Command, Stdio};

/// Runs `tracekit` with `arguments`, split at spaces, on a terminal: its exit code and all that comes on it.
fn on_terminal(arguments: &str) -> Option<(i32, String)> {
    const SPAWN: &str = "import os, pty, sys\n\
                         sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut command = Command::new("python3");
    command
        .args(["-c", SPAWN, env!("CARGO_BIN_EXE_tracekit")])
        .args(arguments.split_whitespace())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("TERM", "xterm")
        .stdin(Stdio::null());
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(variable);
    }
    let Ok(output) = command.output() else {
        // Cargo shows what a test prints only where it fails or is asked to.
        #[expect(clippy::print_stderr, reason = "a skipped test says so")]
        {
            eprintln!("skipped: there is no python3 to make a terminal");
        }
        return None;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    Some((output.status.code().unwrap(), text.replace("\r\n", "\n")))
}

const TRACE: &str = "fixtures/golden/two-steps/trace.json";

#[test]
fn a_page_is_for_no_terminal() {
    for command in ["report", "compare --format html"] {
        let paths = if command.starts_with("compare") {
            format!("--base {TRACE} --cand {TRACE}")
        } else {
            TRACE.to_owned()
        };
        let Some((code, text)) = on_terminal(&format!("{command} {paths}")) else {
            return;
        };
        assert_eq!(code, 2, "{command}: {text}");
        assert_eq!(text.trim_end().lines().count(), 1, "{command}: {text}");
        assert!(text.contains("-o report.html"), "{command}: {text}");
    }
}

#[test]
fn text_on_a_terminal_is_styled_unless_that_is_not_wanted() {
    let Some((code, text)) = on_terminal(&format!("attribute {TRACE}")) else {
        return;
    };
    assert_eq!(code, 0);
    assert!(text.contains("\u{1b}[1m"), "{text:?}");
    let (_, plain) = on_terminal(&format!("attribute {TRACE} --color never")).unwrap();
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
}
