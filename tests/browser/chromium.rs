//! Chromium without a window, driven over a pipe in its own protocol.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A browser with one page.
pub(crate) struct Chromium {
    child: Child,
    to: File,
    from: BufReader<File>,
    session: String,
    next: u64,
    /// What the page complained about since it was opened.
    pub(crate) complaints: Vec<String>,
    _folder: tempfile::TempDir,
}

/// Names that Chromium goes by.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

fn program() -> Option<&'static str> {
    NAMES.into_iter().find(|name| {
        let found = Command::new("sh")
            .args(["-c", &format!("command -v {name}")])
            .stdout(Stdio::null())
            .status();
        found.is_ok_and(|status| status.success())
    })
}

impl Chromium {
    /// `None` where there is no Chromium.
    pub(crate) fn start() -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().unwrap();
        let pipes = ["in", "out"].map(|name| folder.path().join(name));
        for pipe in &pipes {
            assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        }
        let line = format!(
            "exec {program} --headless --no-sandbox --disable-gpu --no-first-run \
             --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage \
             --hide-scrollbars --user-data-dir={} --remote-debugging-pipe about:blank 3<{} 4>{}",
            folder.path().join("user").display(),
            pipes[0].display(),
            pipes[1].display(),
        );
        let child = Command::new("sh")
            .args(["-c", &line])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = OpenOptions::new().write(true).open(&pipes[0]).unwrap();
        let from = BufReader::new(File::open(&pipes[1]).unwrap());
        let mut browser = Self {
            child,
            to,
            from,
            session: String::new(),
            next: 0,
            complaints: Vec::new(),
            _folder: folder,
        };
        let target = browser.send("Target.createTarget", json!({"url": "about:blank"}));
        let target = &target["targetId"];
        let attached = browser.send(
            "Target.attachToTarget",
            json!({"targetId": target, "flatten": true}),
        );
        attached["sessionId"]
            .as_str()
            .unwrap()
            .clone_into(&mut browser.session);
        for domain in ["Page", "Runtime", "Log"] {
            browser.send(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Sends a command and waits for its answer.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to.write_all(message.to_string().as_bytes()).unwrap();
        self.to.write_all(b"\0").unwrap();
        loop {
            let answer = self.receive();
            if answer["id"] == self.next {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    fn receive(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).unwrap();
        assert_eq!(bytes.pop(), Some(0), "the browser went away");
        let message: Value = serde_json::from_slice(&bytes).unwrap();
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                self.complaints.push(params["exceptionDetails"].to_string());
            }
            Some("Runtime.consoleAPICalled") if params["type"] == "error" => {
                self.complaints.push(params["args"].to_string());
            }
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                self.complaints.push(params["entry"].to_string());
            }
            _ => {}
        }
        message
    }

    /// Opens the file `path` and waits until it is whole.
    pub(crate) fn open(&mut self, path: &Path) {
        self.complaints.clear();
        self.send(
            "Page.navigate",
            json!({"url": format!("file://{}", path.display())}),
        );
        for _ in 0..600 {
            if self.evaluate("document.readyState + location.protocol") == "completefile:" {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("{} did not load", path.display());
    }

    /// The value of an expression in the page.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.send("Runtime.evaluate", params);
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// Width and height of the window, in pixels.
    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let params =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.send("Emulation.setDeviceMetricsOverride", params);
    }

    /// The whole page as PNG, in base 64.
    pub(crate) fn screenshot(&mut self) -> String {
        let params = json!({"format": "png", "captureBeyondViewport": true});
        let answer = self.send("Page.captureScreenshot", params);
        answer["data"].as_str().unwrap().to_owned()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
