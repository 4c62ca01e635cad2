//! The profiler's own log, which libkineto wrote into traces from 2021 to 2026: arrays of lines, one
//! array a level.
//!
//! ```text
//! WARNING:2024-04-11 13:30:02 9:9 CuptiActivityApi.cpp:125] Exceeded max GPU buffer count (33 >= 33) - …
//! level   date                pid file                    ] message
//! ```

use super::number;
use super::row;
use super::text::Scanner;
use crate::model::Messages;

/// So much of a message is kept, in characters.
const LONGEST: usize = 200;

/// What the log says about records that are not in the trace.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Records outside of the capture.
    pub(super) out_of_range: u64,
    /// Messages that collecting stopped early or that records were dropped.
    pub(super) stops: Messages,
    /// Messages that CUPTI failed.
    pub(super) errors: Messages,
}

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Stop,
    Error,
}

impl Log {
    /// Reads one array. Anything else counts as absent.
    pub(super) fn read(&mut self, text: &[u8]) {
        let mut scanner = Scanner::new(text, 0);
        if scanner.peek() != Some(b'[') {
            return;
        }
        let mut decoded = String::new();
        // Valid, as the walk of the document has found: there is no fault to report.
        let _ = scanner.items(|scanner| {
            let value = scanner.value()?;
            if let Some(line) = row::text_of(value, &mut decoded) {
                self.line(line);
            }
            Ok(())
        });
    }

    fn line(&mut self, line: &str) {
        let counted = numbers_behind(line, "Out-of-range = ");
        self.out_of_range = counted.fold(self.out_of_range, u64::saturating_add);
        let messages = match about(line) {
            Some(About::Stop) => &mut self.stops,
            Some(About::Error) => &mut self.errors,
            None => return,
        };
        messages.count += 1;
        messages.first.get_or_insert_with(|| {
            let message = line.split_once("] ").map_or(line, |(_, message)| message);
            message.chars().take(LONGEST).collect()
        });
    }
}

/// What the texts of all versions of libkineto say about lost records:
///
/// - a summary at the end (`CUPTI stopped early? = 1`, later `GPU`, `MUPTI` in a fork);
/// - why collecting ended (`State: CollectTrace stopped by CUPTI. (Buffer size configured is 128MB)`,
///   `Trace terminated during warmup`);
/// - buffers (`Exceeded max GPU buffer count (33 >= 33) - terminating tracing`, on ROCm `- dropping
///   row`) and records (`Dropped 12 activity records`);
/// - `CUPTI initialization failed - CUDA profiler activities will be missing`;
/// - calls (`function cuptiActivityFlushAll(0) failed with error CUPTI_ERROR_UNKNOWN (999)`). Those
///   that push and pop External ids fail in sound traces, whose work is linked by correlation.
fn about(line: &str) -> Option<About> {
    let is_counted = |label| numbers_behind(line, label).any(|number| number > 0);
    let says = |text| memchr::memmem::find(line.as_bytes(), text).is_some();
    let stopped = is_counted("stopped early? = ")
        || says(b"CollectTrace stopped by ")
        || says(b"Trace terminated during warmup")
        || says(b"Exceeded max GPU buffer count")
        || (is_counted("Dropped ") && says(b" activity records"));
    if stopped {
        return Some(About::Stop);
    }
    let failed = says(b"CUPTI initialization failed")
        || (says(b"failed with error CUPTI_ERROR_") && !says(b"ExternalCorrelationId"));
    failed.then_some(About::Error)
}

/// The numbers that stand directly behind `label`.
fn numbers_behind<'a>(line: &'a str, label: &'a str) -> impl Iterator<Item = u64> + 'a {
    memchr::memmem::find_iter(line.as_bytes(), label.as_bytes()).map(move |at| {
        let behind = &line.as_bytes()[at + label.len()..];
        let digits = behind.iter().take_while(|byte| byte.is_ascii_digit());
        number::bits(&behind[..digits.count().min(19)]).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_all_versions_are_understood() {
        let stops = [
            "INFO:2024-02-08 10:38:45 9:9 CuptiActivityProfiler.cpp:294] Record counts: Out-of-range = 0, CUPTI stopped early? = 1",
            "Record counts: Out-of-range = 3, Unexpected CUDA events = 0, GPU stopped early? = 1",
            "ERROR:2024-05-22 17:15:23 9:9 CuptiActivityProfiler.cpp:1] State: CollectTrace stopped by CUPTI. (Buffer size configured is 128MB)",
            "State: CollectTrace stopped by GPU profiler. (Buffer size configured is 128MB)",
            "Exceeded max GPU buffer count (33 > 33) - terminating tracing",
            "Exceeded max GPU buffer count (1000000 > 1000000) - dropping row id=7, type=2",
            "Trace terminated during warmup",
            "Dropped 12 activity records",
        ];
        let errors = [
            "CUPTI initialization failed - CUDA profiler activities will be missing",
            "function cbapi->getCuptiStatus() failed with error CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)",
            "function status failed with error CUPTI_ERROR_INVALID_KIND (21)",
        ];
        let harmless = [
            "Record counts: Out-of-range = 0, Unexpected CUDA events = 0, CUPTI stopped early? = 0",
            "Processed 131 GPU records (5256 bytes)",
            "Dropped 0 activity records",
            "Dropped 3 packets",
            "If you see CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, refer to the manual",
            "function cuptiActivityPopExternalCorrelationId(KIND, nullptr) failed with error CUPTI_ERROR_QUEUE_EMPTY (24)",
            "gpuGetDeviceCount failed with code 35",
            "",
        ];
        for (lines, want) in [
            (&stops[..], Some(About::Stop)),
            (&errors[..], Some(About::Error)),
            (&harmless[..], None),
        ] {
            for line in lines {
                assert_eq!(about(line), want, "{line}");
            }
        }
    }

    #[test]
    fn lines_are_counted_and_the_first_message_is_kept_without_its_place() {
        let mut log = Log::default();
        log.read(
            br#"["WARNING:2024-04-11 9:9 a.cpp:5] Dropped 3 activity \"records\" Out-of-range = 4",
                 7, ["Dropped 1 activity records"], null, "Dropped 5 activity records",
                 "a.cpp:9] Dropped 2 activity records Out-of-range = 18446744073709551615"]"#,
        );
        log.read(br#""Dropped 5 activity records""#);
        log.read(br#"{"a":"Dropped 5 activity records"}"#);
        assert_eq!(log.stops.count, 2);
        let first = log.stops.first.as_deref();
        assert_eq!(first, Some("Dropped 5 activity records"));
        assert_eq!(log.out_of_range, 4 + 1_844_674_407_370_955_161);
        let long = format!("[\"Trace terminated during warmup {}\"]", "é".repeat(500));
        let mut log = Log::default();
        log.read(long.as_bytes());
        let first = log.stops.first.map(|first| first.chars().count());
        assert_eq!(first, Some(LONGEST));
    }
}
