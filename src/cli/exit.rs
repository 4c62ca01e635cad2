//! What the program tells its caller by its exit code.

use std::process::ExitCode;

/// How a run of the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: done.
    Done,
    /// 1: done, but `--strict` was given and events or files are missing from the numbers, or
    /// `--fail-on` and that is the verdict.
    Strict,
    /// 1: a gate rejects.
    Rejected,
    /// 3: a gate says `tune`.
    Tune,
    /// 2: wrong usage, failed input or output, or a malformed input; there is no result.
    Failure,
    /// 4: done, but some files of a folder could not be read.
    SomeInputsFailed,
    /// The status of a program that was run: its own, or 128 and the signal that ended it.
    Child(u8),
    /// 1: a regression was found.
    Regressed,
    /// 130: interrupted; what was done until then is kept.
    Interrupted,
}

impl Exit {
    /// The number that the caller sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Strict | Self::Rejected | Self::Regressed => 1,
            Self::Failure => 2,
            Self::Tune => 3,
            Self::SomeInputsFailed => 4,
            Self::Child(status) => status,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
