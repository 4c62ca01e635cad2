//! Running the command, as if it were run alone.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use signal_hook::low_level::siginfo::{Cause, Origin};

/// Signals that are the command's to deal with.
const SIGNALS: [i32; 6] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2];

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this status.
    Status(u8),
    /// By this signal.
    Signal(u8),
    /// It is not there.
    NotFound,
    /// It cannot be run.
    NotRun,
}

impl Ended {
    fn of(status: ExitStatus) -> Self {
        let small = |number: i32| u8::try_from(number & 0xff).unwrap_or(u8::MAX);
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Status(small(code)),
            (None, Some(signal)) => Self::Signal(small(signal)),
            (None, None) => Self::NotRun,
        }
    }

    /// The status that a shell would give: 128 and the signal, 126 and 127 for what cannot be run.
    pub fn code(self) -> u8 {
        match self {
            Self::Status(code) => code,
            Self::Signal(signal) => signal.saturating_add(128),
            Self::NotRun => 126,
            Self::NotFound => 127,
        }
    }
}

/// Passes on the signals that processes send to this one, and lets none end it. What a terminal sends
/// goes to the command anyway.
pub(super) struct Signals {
    handle: Handle,
    to: Arc<Mutex<Option<Pid>>>,
}

impl Signals {
    /// Starts to wait for signals.
    pub(super) fn watch() -> io::Result<Self> {
        let mut signals = SignalsInfo::<WithOrigin>::new(SIGNALS)?;
        let handle = signals.handle();
        let to = Arc::new(Mutex::new(None));
        let child = Arc::clone(&to);
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for origin in signals.forever() {
                    pass_on(&origin, &child);
                }
            })?;
        Ok(Self { handle, to })
    }

    fn set(&self, child: Option<&Child>) {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        *to = child.map(Pid::from_child);
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
    }
}

fn pass_on(origin: &Origin, child: &Mutex<Option<Pid>>) {
    if !matches!(origin.cause, Cause::Sent(_)) {
        return;
    }
    // The lock is held until the signal is sent: the command is not waited for in between.
    let child = child.lock().unwrap_or_else(PoisonError::into_inner);
    if let (Some(child), Some(signal)) = (*child, Signal::from_named_raw(origin.signal)) {
        // A command that has just ended needs no signal.
        let _ = kill_process(child, signal);
    }
}

/// Runs `command` with `environment` set and `removed` unset, and waits for it.
pub(super) fn run(
    command: &[OsString],
    environment: &[(String, OsString)],
    removed: &[&str],
    signals: Option<&Signals>,
) -> Result<Ended, (Ended, String)> {
    let (program, arguments) = command
        .split_first()
        .ok_or((Ended::NotFound, "there is no command".to_owned()))?;
    let mut process = Command::new(program);
    process.args(arguments);
    process.envs(environment.iter().map(|(name, value)| (name, value)));
    for name in removed {
        process.env_remove(name);
    }
    let mut child = process.spawn().map_err(|error| {
        let ended = match error.kind() {
            io::ErrorKind::NotFound => Ended::NotFound,
            _ => Ended::NotRun,
        };
        let program = OsStr::new(program).display();
        (
            ended,
            format!("{program}: {}", error.to_string().to_lowercase()),
        )
    })?;
    if let Some(signals) = signals {
        signals.set(Some(&child));
    }
    // It is waited for without being reaped, so that no signal goes to another process of its id.
    let pid = Pid::from_child(&child);
    let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) =
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), options)
    {}
    if let Some(signals) = signals {
        signals.set(None);
    }
    let status = child.wait();
    status
        .map(Ended::of)
        .map_err(|error| (Ended::NotRun, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(command: &[&str]) -> Result<Ended, (Ended, String)> {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        run(&command, &[("A".to_owned(), "3".into())], &["B"], None)
    }

    #[test]
    fn the_status_of_the_command_is_ours() {
        assert_eq!(ended(&["sh", "-c", "exit $A"]), Ok(Ended::Status(3)));
        let killed = ended(&["sh", "-c", "kill -9 $$"]).unwrap();
        assert_eq!((killed, killed.code()), (Ended::Signal(9), 137));
        let (missing, why) = ended(&["no-such-program-anywhere"]).unwrap_err();
        assert_eq!((missing, missing.code()), (Ended::NotFound, 127));
        assert!(
            why.contains("no-such-program-anywhere: no such file"),
            "{why}"
        );
        let (folder, _) = ended(&["/"]).unwrap_err();
        assert_eq!(folder.code(), 126);
    }
}
