//! Arguments of every subcommand that attributes traces: what counts, and as what.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use regex::Regex;

use super::args::InputArgs;
use crate::attribute::{AttributeOptions, Phase, RecomputeEvidence, Request, Salvage, StepRange};
use crate::ingest::IngestOptions;
use crate::rewrite::salvage;

/// What counts, and as what.
#[derive(Debug, Args)]
pub(super) struct ReadingArgs {
    /// Read what is whole in damaged files; what is skipped is told
    #[arg(long, help_heading = "Input")]
    salvage: bool,

    /// Only steps A to B, as in ProfilerStep#N, both included; also A.., ..B, or one number
    #[arg(long, alias = "step", value_name = "A..B", value_parser = step_range)]
    #[arg(help_heading = "Selection")]
    steps: Option<StepRange>,

    /// Annotations that match REGEX name phase NAME: forward, backward, recompute, optimizer
    /// (or update), other; may be repeated, the first match decides
    #[arg(long = "phase", value_name = "NAME=REGEX", value_parser = phase)]
    #[arg(help_heading = "Attribution")]
    phases: Vec<(Phase, Regex)>,

    /// Kernels that match REGEX are communication; may be repeated
    #[arg(long = "comm", value_name = "REGEX", value_parser = pattern)]
    #[arg(help_heading = "Attribution")]
    communication: Vec<Regex>,

    /// What decides that work is recomputed; auto takes the strongest there is
    #[arg(
        long,
        value_name = "KIND",
        default_value = "auto",
        help_heading = "Attribution"
    )]
    recompute_evidence: Evidence,

    /// Infer phases as if no annotation named them
    #[arg(long, help_heading = "Attribution")]
    ignore_annotations: bool,
}

/// Evidence of recompute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Evidence {
    Auto,
    Annotation,
    Stack,
    Sequence,
}

impl ReadingArgs {
    /// How to attribute.
    pub(super) fn options(&self) -> AttributeOptions {
        let mut options = AttributeOptions::default();
        options.phases.clone_from(&self.phases);
        options.communication.clone_from(&self.communication);
        options.steps = self.steps;
        options.ignore_annotations = self.ignore_annotations;
        options.recompute_evidence = match self.recompute_evidence {
            Evidence::Auto => RecomputeEvidence::Auto,
            Evidence::Annotation => RecomputeEvidence::Annotation,
            Evidence::Stack => RecomputeEvidence::Stack,
            Evidence::Sequence => RecomputeEvidence::Sequence,
        };
        options
    }

    /// What to do with damaged files.
    #[cfg(feature = "batch")]
    pub(super) fn salvage(&self) -> Option<Salvage> {
        self.salvage.then_some(salvage as Salvage)
    }

    /// What to read, of `paths`.
    pub(super) fn request<'a>(
        &self,
        input: &'a InputArgs,
        paths: &'a [PathBuf],
        options: &'a AttributeOptions,
        hash_inputs: bool,
    ) -> Request<'a> {
        Request {
            salvage: self.salvage.then_some(salvage as Salvage),
            paths,
            ingest: IngestOptions {
                mmap: !input.no_mmap,
                ..IngestOptions::default()
            },
            options,
            ranks: input.ranks.clone(),
            expect: input.expect.clone(),
            hash_inputs,
        }
    }
}

pub(super) fn step_range(text: &str) -> std::result::Result<StepRange, String> {
    let number = |text: &str| {
        let wrong = || "use A..B, A.., ..B or one number".to_owned();
        text.parse::<u64>().map_err(|_| wrong())
    };
    let range = match text.split_once("..") {
        None => {
            let only = number(text)?;
            StepRange {
                first: only,
                last: only,
            }
        }
        Some((first, last)) => StepRange {
            first: if first.is_empty() { 0 } else { number(first)? },
            last: if last.is_empty() {
                u64::MAX
            } else {
                number(last)?
            },
        },
    };
    if range.last < range.first {
        return Err("the last step comes before the first".to_owned());
    }
    Ok(range)
}

fn phase(text: &str) -> std::result::Result<(Phase, Regex), String> {
    let Some((name, expression)) = text.split_once('=') else {
        return Err("use NAME=REGEX".to_owned());
    };
    let phase =
        Phase::from_name(name).or_else(|| (name == Phase::Other.as_str()).then_some(Phase::Other));
    let Some(phase) = phase else {
        return Err(format!(
            "no phase is called '{name}': use forward, backward, recompute, optimizer or other"
        ));
    };
    Ok((phase, pattern(expression)?))
}

pub(super) fn pattern(text: &str) -> std::result::Result<Regex, String> {
    Regex::new(text).map_err(|error| {
        // The last line is the reason; those before it draw where it is.
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default();
        format!("no valid pattern: {}", reason.trim_start_matches("error: "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_ranges_include_both_ends_and_may_be_open() {
        let range = |first, last| Ok(StepRange { first, last });
        assert_eq!(step_range("3..5"), range(3, 5));
        assert_eq!(step_range("3.."), range(3, u64::MAX));
        assert_eq!(step_range("..5"), range(0, 5));
        assert_eq!(step_range("4"), range(4, 4));
        assert_eq!(step_range("4..4"), range(4, 4));
        for wrong in [
            "",
            "a",
            "-1",
            "1..x",
            "5..3",
            "1..2..3",
            "1...3",
            "99999999999999999999",
        ] {
            assert!(step_range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn patterns_name_phases() {
        let named = |text| phase(text).map(|(phase, pattern)| (phase, pattern.as_str().to_owned()));
        assert_eq!(named("forward=a=b"), Ok((Phase::Forward, "a=b".to_owned())));
        assert_eq!(named("update=x"), Ok((Phase::Optimizer, "x".to_owned())));
        assert_eq!(named("other=x"), Ok((Phase::Other, "x".to_owned())));
        assert!(named("forward").is_err());
        assert_eq!(
            named("forward=["),
            Err("no valid pattern: unclosed character class".to_owned())
        );
    }
}
