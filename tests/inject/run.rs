//! Running `tracekit collect` and looking at what it leaves.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::members::members;

/// True when there is a Python to run the program with; says so when there is none.
#[expect(clippy::print_stderr, reason = "says why a test does nothing")]
pub(crate) fn has_python() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let found = *FOUND.get_or_init(|| {
        let version = Command::new("python3").arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    });
    if !found {
        eprintln!("skipped: there is no python3");
    }
    found
}

/// A run to be made.
pub(crate) struct Run {
    pub(crate) folder: tempfile::TempDir,
    options: Vec<String>,
    environment: Vec<(String, String)>,
    command: Vec<String>,
    input: &'static str,
    /// What tracekit itself is run by.
    wrapper: Vec<String>,
    output: PathBuf,
}

/// What a run left.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) traces: Vec<Trace>,
}

impl Run {
    /// A run of the fixture that does `words`.
    pub(crate) fn new(words: &[&str]) -> Self {
        let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/inject/fixture.py");
        let program = ["python3", fixture]
            .into_iter()
            .chain(words.iter().copied());
        Self::of(&program.collect::<Vec<_>>())
    }

    /// A run of any command.
    pub(crate) fn of(command: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            output: folder.path().join("run"),
            folder,
            options: ["--flush-period", "50ms", "--interval", "20ms"]
                .map(str::to_owned)
                .into(),
            environment: Vec::new(),
            command: command.iter().map(|&word| word.to_owned()).collect(),
            input: "",
            wrapper: Vec::new(),
        }
    }

    /// Adds options; one that is there gets another value.
    pub(crate) fn option(mut self, words: &[&str]) -> Self {
        for word in words {
            let known = self.options.iter().position(|known| known == word);
            if let Some(place) = known.filter(|_| word.starts_with("--")) {
                self.options.drain(place..place + 2);
            }
            self.options.push((*word).to_owned());
        }
        self
    }

    /// Leaves out the options that all runs have.
    pub(crate) fn without_defaults(&mut self) {
        self.options.clear();
    }

    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn input(mut self, input: &'static str) -> Self {
        self.input = input;
        self
    }

    /// Runs it on a terminal, where Ctrl-C is typed as soon as `ready` is there.
    pub(crate) fn on_terminal(mut self, ready: &Path) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/inject/terminal.py");
        self.wrapper = ["python3", script, ready.to_str().unwrap()]
            .map(str::to_owned)
            .into();
        self
    }

    /// Runs it by a shell that ignores `signals`.
    pub(crate) fn ignoring(mut self, signals: &str) -> Self {
        let script = format!("trap '' {signals}; exec \"$0\" \"$@\"");
        self.wrapper = vec!["sh".to_owned(), "-c".to_owned(), script];
        self
    }

    /// Where traces go.
    pub(crate) fn output(&self) -> PathBuf {
        self.output.clone()
    }

    /// Has traces go to `folder`.
    pub(crate) fn into_folder(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.output);
        self
    }

    /// A file for the fixture to tell something by.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self) -> Command {
        let members = members();
        let wrapper: Vec<&str> = self.wrapper.iter().map(String::as_str).collect();
        // Tests in the background of a shell are told to ignore interrupts, and would pass that on.
        let words = ["env", "--default-signal"];
        let words = [&words[..], &wrapper, &[env!("CARGO_BIN_EXE_tracekit")]].concat();
        let mut program = Command::new(words[0]);
        program
            .args(&words[1..])
            .args(["collect", "-o"])
            .arg(self.output())
            .args(&self.options);
        if !self.command.is_empty() {
            program.arg("--").args(&self.command);
        }
        for name in ["RANK", "LOCAL_RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES"] {
            program.env_remove(name);
        }
        program
            .env("TRACEKIT_INJECT", &members.inject)
            .env("TRACEKIT_CUPTI", &members.fake_cuda)
            .env("TRACEKIT_NVML", &members.fake_nvml)
            .env("FAKE_CUDA", &members.fake_cuda)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        program
    }

    /// Starts the run.
    pub(crate) fn start(&self) -> Child {
        let mut child = self.program().spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A program that reads nothing is fine.
        let _ = std::io::Write::write_all(&mut stdin, self.input.as_bytes());
        child
    }

    /// What a started run left, once it has ended.
    pub(crate) fn finish(&self, child: Child) -> Done {
        Done::new(child.wait_with_output().unwrap(), &self.output())
    }

    /// Makes the run.
    pub(crate) fn done(&self) -> Done {
        self.finish(self.start())
    }
}

impl Done {
    fn new(output: Output, folder: &Path) -> Self {
        Self {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            traces: traces(folder),
        }
    }

    /// The one trace that there is.
    #[track_caller]
    pub(crate) fn only(&self) -> &Trace {
        assert_eq!(self.traces.len(), 1, "{}", self.stderr);
        &self.traces[0]
    }

    #[track_caller]
    pub(crate) fn assert_told(&self, text: &str) {
        assert!(
            self.stderr.contains(text),
            "not told {text:?}:\n{}",
            self.stderr
        );
        for line in self.stderr.lines() {
            assert!(line.starts_with("tracekit: "), "{line}");
        }
    }
}

/// The traces in `folder`, in order of name.
pub(crate) fn traces(folder: &Path) -> Vec<Trace> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "gz"))
        .collect();
    paths.sort();
    paths.into_iter().map(Trace::read).collect()
}

/// One trace, read by the plainest means.
pub(crate) struct Trace {
    pub(crate) path: PathBuf,
    pub(crate) json: Value,
}

impl Trace {
    fn read(path: PathBuf) -> Self {
        let mut text = String::new();
        let file = std::fs::File::open(&path).unwrap();
        flate2::read::GzDecoder::new(file)
            .read_to_string(&mut text)
            .unwrap();
        let json = serde_json::from_str(&text).unwrap();
        Self { path, json }
    }

    pub(crate) fn name(&self) -> &str {
        self.path.file_name().unwrap().to_str().unwrap()
    }

    /// The events of a category that have a length.
    pub(crate) fn events(&self, category: &str) -> Vec<&Value> {
        let all = self.json["traceEvents"].as_array().unwrap();
        let spans = all.iter().filter(|event| event["ph"] == "X");
        spans.filter(|event| event["cat"] == category).collect()
    }

    pub(crate) fn count(&self, category: &str) -> usize {
        self.events(category).len()
    }

    /// Names of the events of a category, in order of time.
    pub(crate) fn names(&self, category: &str) -> Vec<&str> {
        let events = self.events(category);
        events
            .iter()
            .map(|event| event["name"].as_str().unwrap())
            .collect()
    }

    /// The sum of all lengths in a category, in nanoseconds.
    pub(crate) fn sum(&self, category: &str) -> i64 {
        self.events(category)
            .iter()
            .map(|event| nanoseconds(&event["dur"]))
            .sum()
    }

    pub(crate) fn pid(&self) -> u64 {
        self.json["tracekit_collect"]["pid"].as_u64().unwrap()
    }
}

/// A time in microseconds, as nanoseconds.
pub(crate) fn nanoseconds(value: &Value) -> i64 {
    let text = value.to_string();
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let whole: i64 = whole.parse().unwrap();
    let rest = format!("{rest:0<3}");
    assert_eq!(rest.len(), 3, "{text}");
    whole * 1_000 + rest.parse::<i64>().unwrap()
}

/// What `tracekit attribute` says about `path`.
pub(crate) fn attribution(path: &Path) -> Value {
    tracekit(&["attribute", "--format", "json"], path)
}

/// What a subcommand with JSON says about `path`.
pub(crate) fn tracekit(arguments: &[&str], path: &Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_tracekit"))
        .args(arguments)
        .arg(path)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Waits until the fixture has told its process id by the file `path`.
pub(crate) fn told(path: &Path) -> String {
    let until = Instant::now() + Duration::from_mins(1);
    while !path.exists() {
        assert!(
            Instant::now() < until,
            "nothing was told by {}",
            path.display()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::read_to_string(path).unwrap()
}

/// Sends a signal.
pub(crate) fn kill(signal: &str, pid: &str) {
    let status = Command::new("kill").args([signal, pid]).status().unwrap();
    assert!(status.success());
}
