//! `tracekit batch --watch`: traces as jobs write them.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::start::{exit, has_to_end};
use crate::batch::{BatchReport, Inputs};
use crate::cli::exit::Exit;
use crate::cli::output::say;
use crate::error::Result;

/// How long it takes at most until an interruption is seen.
const NAP: Duration = Duration::from_millis(100);

/// Looks for inputs every `interval` seconds and analyses those that have not changed since the look before.
pub(super) fn run(
    find: impl Fn() -> Result<Inputs>,
    analyse: impl Fn(&Inputs) -> Result<BatchReport>,
    interrupted: &AtomicBool,
    interval: u32,
    idle_exit: Option<u32>,
) -> Result<Exit> {
    let interval = Duration::from_secs(u64::from(interval));
    // What is not there yet may come, and what cannot be looked at now may be back later.
    let mut troubled = false;
    let mut find = || match find() {
        Ok(inputs) => {
            troubled = false;
            Some(inputs)
        }
        Err(error) => {
            if !troubled {
                say(&format!("{error}; waiting for it"));
            }
            troubled = true;
            None
        }
    };
    let mut before = find().unwrap_or_default();
    let mut last = None;
    let mut active = Instant::now();
    loop {
        let since = Instant::now();
        while since.elapsed() < interval && !has_to_end(interrupted) {
            std::thread::sleep(NAP.min(interval));
        }
        let now = find();
        let settled = now.clone().map(|now| now.settled(&before));
        before = now.unwrap_or(before);
        if let Some(settled) = settled.filter(|_| !has_to_end(interrupted)) {
            let report = analyse(&settled)?;
            if report.analysed > 0 {
                active = Instant::now();
                say(&format!(
                    "{} analysed, {} runs written",
                    report.analysed, report.written
                ));
            }
            last = Some(report);
        }
        let idle = idle_exit.map(|seconds| Duration::from_secs(u64::from(seconds)));
        let is_idle = idle.is_some_and(|idle| active.elapsed() >= idle);
        match &last {
            _ if has_to_end(interrupted) => return Ok(Exit::Interrupted),
            Some(report) if is_idle => return Ok(exit(report)),
            None if is_idle => return Ok(Exit::Done),
            _ => {}
        }
    }
}
