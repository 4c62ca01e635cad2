//! The progress bar on standard error.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::args::When;
use crate::attribute::ProgressEvent;

/// Stored bytes below which `auto` shows nothing: they take less than a second.
const SMALL: u64 = 64 << 20;

/// A bar that shows how many bytes are done; gone when dropped.
pub(super) struct Progress {
    bar: ProgressBar,
    when: When,
}

impl Progress {
    /// A bar that is shown on terminals only.
    pub(super) fn new(when: When, quiet: bool) -> Self {
        let when = if quiet || !std::io::stderr().is_terminal() {
            When::Never
        } else {
            when
        };
        Self {
            bar: ProgressBar::hidden(),
            when,
        }
    }

    /// Takes note of how far the work is.
    pub(super) fn observe(&self, event: ProgressEvent) {
        match event {
            ProgressEvent::Total { files, bytes } => self.start(files, bytes),
            ProgressEvent::FileDone { bytes } => self.bar.inc(bytes),
        }
    }

    fn start(&self, files: usize, bytes: u64) {
        let wanted = match self.when {
            When::Auto => bytes >= SMALL,
            When::Always => true,
            When::Never => false,
        };
        if !wanted {
            return;
        }
        let template = "{spinner} {msg} [{bar:30}] {bytes}/{total_bytes} {elapsed}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("=> "));
        }
        self.bar.set_message(if files == 1 {
            "1 file".to_owned()
        } else {
            format!("{files} files")
        });
        self.bar.set_length(bytes);
        self.bar.set_position(0);
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.enable_steady_tick(Duration::from_millis(100));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
