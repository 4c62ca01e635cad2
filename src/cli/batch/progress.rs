//! The progress bar of a batch: bytes, their rate, how long the rest takes, and what failed.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::batch::BatchEvent;
use crate::cli::args::When;
use crate::cli::output::say;

/// Stored bytes below which `auto` shows nothing.
const SMALL: u64 = 64 << 20;

/// A bar; gone when dropped.
pub(super) struct Progress {
    bar: ProgressBar,
    when: When,
    verbose: bool,
    failed: AtomicU64,
}

impl Progress {
    /// A bar that is shown on terminals only; every failure is told when `verbose`.
    pub(super) fn new(when: When, quiet: bool, verbose: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        Self {
            bar: ProgressBar::hidden(),
            when: if shown { when } else { When::Never },
            verbose,
            failed: AtomicU64::new(0),
        }
    }

    /// Takes note of how far the work is.
    pub(super) fn observe(&self, event: &BatchEvent) {
        match event {
            BatchEvent::Total { files, bytes } => self.start(*files, *bytes),
            BatchEvent::Done { bytes } => self.bar.inc(*bytes),
            BatchEvent::Failed { input, error } => {
                let failed = self.failed.fetch_add(1, Ordering::Relaxed) + 1;
                self.bar.set_message(format!("{failed} failed"));
                if self.verbose {
                    self.bar.suspend(|| say(&format!("{input}: {error}")));
                }
            }
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
        let template =
            "{spinner} {prefix} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} ETA {eta} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("=> "));
        }
        self.bar.set_prefix(format!("{files} files"));
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
