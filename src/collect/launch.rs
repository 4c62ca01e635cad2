//! Running the command, as if it were run alone.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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

/// Where signals go.
enum Goal {
    /// To the command once it runs; these came before.
    Later(Vec<Signal>),
    Command(Pid),
    /// The command ended then: there is nobody to send them to.
    Nobody(Instant),
}

/// So long after the command has ended, an interrupt is no longer the one that ended it.
const ANOTHER: Duration = Duration::from_secs(1);

/// Passes on the signals that processes send to this one, and lets none end it. What a terminal sends
/// goes to the command anyway; once that has ended, it is for this process.
pub(super) struct Signals {
    handle: Handle,
    goal: Arc<Mutex<Goal>>,
}

/// Those of `signals` that this process was not started to ignore, as it is by `nohup`: what it ignores, the
/// command is to ignore, too.
pub(super) fn not_ignored(signals: &[i32]) -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let set = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    let is_ignored = |signal: i32| set.unwrap_or(0) >> (signal - 1) & 1 == 1;
    let signals = signals.iter().copied();
    signals.filter(|signal| !is_ignored(*signal)).collect()
}

impl Signals {
    /// Starts to wait for signals.
    pub(super) fn watch() -> io::Result<Self> {
        let mut signals = SignalsInfo::<WithOrigin>::new(not_ignored(&SIGNALS))?;
        let handle = signals.handle();
        let goal = Arc::new(Mutex::new(Goal::Later(Vec::new())));
        let to = Arc::clone(&goal);
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for origin in signals.forever() {
                    pass_on(&origin, &to);
                }
            })?;
        Ok(Self { handle, goal })
    }

    fn set(&self, new: Goal) {
        let mut goal = self.goal.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *goal, new);
        if let (Goal::Later(signals), Goal::Command(command)) = (before, &*goal) {
            for signal in signals {
                // As below.
                let _ = kill_process(*command, signal);
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
    }
}

fn pass_on(origin: &Origin, goal: &Mutex<Goal>) {
    let is_sent = matches!(origin.cause, Cause::Sent(_));
    let Some(signal) = Signal::from_named_raw(origin.signal) else {
        return;
    };
    // The lock is held until the signal is sent: the command is not waited for in between.
    let mut goal = goal.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *goal {
        Goal::Later(signals) if is_sent => signals.push(signal),
        Goal::Command(command) if is_sent => {
            // A command that has just ended needs no signal.
            let _ = kill_process(*command, signal);
        }
        // Whoever sits at the terminal does not want to wait for the traces. The spools stay.
        Goal::Nobody(since) if !is_sent && since.elapsed() > ANOTHER => {
            let _ = signal_hook::low_level::emulate_default_handler(origin.signal);
        }
        Goal::Later(_) | Goal::Command(_) | Goal::Nobody(_) => {}
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
        signals.set(Goal::Command(Pid::from_child(&child)));
    }
    // It is waited for without being reaped, so that no signal goes to another process of its id.
    let pid = Pid::from_child(&child);
    let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) =
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), options)
    {}
    if let Some(signals) = signals {
        signals.set(Goal::Nobody(Instant::now()));
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

    #[test]
    fn a_signal_that_comes_before_the_command_is_not_lost() {
        let signals = Signals::watch().unwrap();
        let own = rustix::process::getpid();
        kill_process(own, Signal::USR1).unwrap();
        let command = ["sleep", "60"].map(OsString::from);
        assert_eq!(
            run(&command, &[], &[], Some(&signals)),
            Ok(Ended::Signal(10))
        );
    }
}
