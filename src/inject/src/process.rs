//! Facts about this process for the header of its spool.

use tracekit_spool::push_field;

use crate::clock;

/// Variables that tell who a process is in its job, and the names of their fields.
const FROM_ENVIRONMENT: [(&str, &str); 5] = [
    ("RANK", "rank"),
    ("LOCAL_RANK", "local_rank"),
    ("WORLD_SIZE", "world_size"),
    ("CUDA_VISIBLE_DEVICES", "cuda_visible_devices"),
    ("TRACEKIT_INJECT_RUN", "run"),
];

/// A command line that is longer is cut: it is only shown, and stands in every file of a ring.
const LONGEST: usize = 8 << 10;

/// The header of a spool that starts now. `parent` is the process that this one was forked from, when
/// that one was traced.
pub(crate) fn header(parent: Option<u32>) -> Vec<u8> {
    let mut fields = Vec::new();
    let mut number = |name: &str, value: u64| {
        push_field(&mut fields, name, value.to_string().as_bytes());
    };
    number("pid", std::process::id().into());
    number("start_realtime_ns", clock::realtime());
    number("start_monotonic_ns", clock::monotonic());
    if let Some(parent) = parent {
        number("forked_from", parent.into());
    }
    // When it was started, in the kernel's ticks: with the pid, this is who it is.
    if let Ok(stat) = std::fs::read_to_string("/proc/self/stat")
        && let Some((_, rest)) = stat.rsplit_once(')')
        && let Some(ticks) = rest.split_whitespace().nth(19)
    {
        push_field(&mut fields, "start_ticks", ticks.as_bytes());
    }
    let command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    push_field(
        &mut fields,
        "command",
        &command[..command.len().min(LONGEST)],
    );
    for (variable, name) in FROM_ENVIRONMENT {
        if let Some(value) = std::env::var_os(variable) {
            push_field(&mut fields, name, value.as_encoded_bytes());
        }
    }
    fields
}
