//! `tracekit report`: one page that people look at.

use std::fs;
use std::path::{Path, PathBuf};

use super::args::{Format, InputArgs, OutputArgs};
use super::decision::{annotations, decisions};
use super::exit::Exit;
use super::output::{Target, say};
use super::progress::Progress;
use super::reading::ReadingArgs;
use super::remarks::{Remarks, Told};
use super::threads;
use crate::attribute::{Attribution, Request, RunResult};
use crate::compare::{CompareOptions, Comparison, Verdict, compare_paths};
use crate::error::{Error, ErrorKind, Result};
use crate::infer::{Inferences, Plan, Thresholds, inferences};
use crate::inspect::{Survey, survey_and, survey_paths};
use crate::report::{
    self, Document, OverviewParts, Section, brief_document, decision_document, overview_document,
};

const EXAMPLES: &str = "\
Examples:
  tracekit report trace.pt.trace.json.gz -o report.html
      One page with everything: open it in a browser, attach it to a mail.
  tracekit report runs/ -o report.html
      Runs and ranks side by side; two runs are compared, too.
  tracekit report --base before/ --cand after/ -o report.html
      With a verdict on the change.
  tracekit report runs/ --decision verdict.json -o report.html
      With what a gate or a record of the evidence chain decided; also without traces.
  tracekit report trace/ --svg pictures/
      The pictures as files of their own.
  tracekit report trace/ --format markdown
      The verdict and the main table, for the description of a change.

Exit codes:
  0  done
  1  with --strict: events or files are missing from the numbers
  2  wrong usage, or an input that cannot be read; nothing is printed
  4  done, but some files of a folder could not be read";

const FORMATS: [Format; 5] = [
    Format::Html,
    Format::Json,
    Format::Markdown,
    Format::Text,
    Format::Github,
];

/// One page with the verdict, pictures and tables, for browsers; or its pictures
///
/// The page is one file that reaches for nothing outside. It needs no JavaScript; with it, tables can be sorted and
/// searched, and timelines zoomed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, after_help = "--help shows examples and exit codes.")]
#[command(
    override_usage = "tracekit report [OPTIONS] <PATH>... -o report.html\n       \
    tracekit report [OPTIONS] --base <PATH>... --cand <PATH>... -o report.html"
)]
#[command(mut_arg("paths", |paths| paths.required(false)))]
#[command(mut_arg("format", |format| format
    .default_value("html")
    .value_parser(Format::only(&FORMATS))))]
pub(super) struct Args {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    reading: ReadingArgs,

    /// A path of the side to compare with; may be repeated
    #[arg(long = "base", value_name = "PATH", help_heading = "Input")]
    #[arg(requires = "candidates", conflicts_with = "paths")]
    bases: Vec<PathBuf>,

    /// A path of the side that is compared; may be repeated
    #[arg(long = "cand", value_name = "PATH", help_heading = "Input")]
    #[arg(requires = "bases", conflicts_with = "paths")]
    candidates: Vec<PathBuf>,

    /// Also show what this verdict of `tracekit gate`, or record of `tracekit evidence`, decided; may be repeated
    #[arg(long = "decision", value_name = "FILE", help_heading = "Report")]
    decisions: Vec<PathBuf>,

    /// Leave out what `tracekit infer` says
    #[arg(long, help_heading = "Report")]
    no_inferences: bool,

    /// Write the pictures as SVG files into DIR, which is made when it is not there
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    svg: Option<PathBuf>,
}

/// Runs the subcommand.
pub(super) fn run(args: &Args) -> Result<Exit> {
    anstream::ColorChoice::from(args.output.color).write_global();
    let all = paths(args)?;
    let target = target(args)?;
    if let Some(target) = &target {
        target.check_inputs(&all)?;
        target.check_inputs(&args.decisions)?;
    }
    let decided = decisions(&args.decisions)?;
    if all.is_empty() {
        return decisions_alone(args, target.as_ref(), decided);
    }
    threads::start(args.input.threads)?;
    let seen = seen(args, &all)?;
    let survey = &seen.survey;
    let parts = OverviewParts {
        survey,
        comparison: seen.comparison.as_ref(),
        inferences: seen.inferences.as_ref(),
        decisions: &decided,
        verbose: args.output.verbose,
    };
    let result = target.as_ref().map(|target| rendered(args, target, parts));
    let result = result.transpose()?;
    if let Some(folder) = &args.svg {
        write_pictures(folder, &overview_document(parts), args.output.quiet)?;
    }
    if let Some((target, result)) = target.zip(result) {
        target.write(&result)?;
    }
    let remarks = Remarks::from(&survey.attribution);
    if !args.output.quiet {
        // Pages go to files: who waits for one looks here.
        remarks.say(Told::ForPrograms);
    }
    Ok(remarks.exit(args.output.strict))
}

/// Every path that is read.
fn paths(args: &Args) -> Result<Vec<PathBuf>> {
    let mut all = args.input.paths.clone();
    all.extend_from_slice(&args.bases);
    all.extend_from_slice(&args.candidates);
    if all.is_empty() && args.decisions.is_empty() {
        let message = "a report on what? use: tracekit report PATH... -o report.html";
        return Err(Error::new(ErrorKind::Usage, message));
    }
    Ok(all)
}

/// Where the page goes; nowhere when only pictures are wanted. Whoever asks for another format wants that, too.
fn target(args: &Args) -> Result<Option<Target>> {
    let is_page = args.output.format == Format::Html;
    if args.output.output.is_none() && args.svg.is_some() && is_page {
        return Ok(None);
    }
    Target::of_format(args.output.output.as_deref(), args.output.format).map(Some)
}

/// What a report is made from.
struct Seen {
    survey: Survey,
    inferences: Option<Inferences>,
    comparison: Option<Comparison>,
}

/// What is in the traces, and how two sides compare where there are two.
fn seen(args: &Args, all: &[PathBuf]) -> Result<Seen> {
    let attribute = args.reading.options();
    let progress = Progress::new(args.output.progress, args.output.quiet);
    let survey = |paths: &[PathBuf]| {
        let request = args.reading.request(&args.input, paths, &attribute, true);
        surveyed(args, &request, &progress)
    };
    let compare = |base: &[PathBuf], candidate: &[PathBuf]| {
        let request = |paths| args.reading.request(&args.input, paths, &attribute, false);
        let options = CompareOptions::default();
        compare_paths(&request(base), &request(candidate), &options, &|event| {
            progress.observe(event);
        })
    };
    if !args.candidates.is_empty() {
        let comparison = compare(&args.bases, &args.candidates)?;
        // Files of both sides in one folder would be taken for ranks of one run, and a saved attribution has no
        // events: then the details are those of the candidate.
        let both = if are_apart(&args.bases, &args.candidates) {
            survey(all).ok()
        } else {
            None
        };
        let (survey, inferences) = match both {
            Some(both) => both,
            None => survey(&args.candidates)?,
        };
        return Ok(Seen {
            survey,
            inferences,
            comparison: Some(comparison),
        });
    }
    let (survey, inferences) = survey(all)?;
    let comparison = match survey.attribution.runs.as_slice() {
        [base, candidate] => {
            let [base, candidate] = [base, candidate].map(|run| files(&survey.attribution, run));
            let piped = base
                .iter()
                .chain(&candidate)
                .any(|path| path == Path::new("-"));
            (!piped).then(|| compare(&base, &candidate)).transpose()?
        }
        _ => None,
    };
    Ok(Seen {
        survey,
        inferences,
        comparison,
    })
}

/// What is in the traces, and what limits their runs.
fn surveyed(
    args: &Args,
    request: &Request<'_>,
    progress: &Progress,
) -> Result<(Survey, Option<Inferences>)> {
    if args.no_inferences {
        let survey = survey_paths(request, &|event| progress.observe(event))?;
        return Ok((survey, None));
    }
    // One reading for both.
    let thresholds = Thresholds::default();
    let plan = Plan::new(&thresholds);
    let (survey, taken) = survey_and(request, &|event| progress.observe(event), |view| {
        plan.take(view)
    })?;
    let runs = plan.infer(&survey.attribution, taken)?;
    let inferences = inferences(&survey.attribution, runs, &thresholds);
    Ok((survey, Some(inferences)))
}

/// The files of a run.
fn files(attribution: &Attribution, run: &RunResult) -> Vec<PathBuf> {
    let ranks = run.ranks.iter().map(|rank| &attribution.ranks[*rank]);
    ranks
        .map(|file| PathBuf::from(&attribution.inputs[file.input].path))
        .collect()
}

/// True when no folder has files of both sides.
fn are_apart(bases: &[PathBuf], candidates: &[PathBuf]) -> bool {
    let folder = |path: &PathBuf| {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        match path.parent() {
            Some(parent) if !path.is_dir() => parent.to_owned(),
            _ => path,
        }
    };
    let bases: Vec<PathBuf> = bases.iter().map(folder).collect();
    !candidates
        .iter()
        .map(folder)
        .any(|folder| bases.contains(&folder))
}

/// A report on decisions, without traces.
fn decisions_alone(args: &Args, target: Option<&Target>, decided: Vec<Section>) -> Result<Exit> {
    let result = match args.output.format {
        Format::Github => Ok(annotations(&decided)),
        format => {
            let document = decision_document(decided);
            if let Some(folder) = &args.svg {
                write_pictures(folder, &document, args.output.quiet)?;
            }
            match target {
                Some(target) => laid_out(format, target, &document),
                None => return Ok(Exit::Done),
            }
        }
    };
    if let Some(target) = target {
        target.write(&result?)?;
    }
    Ok(Exit::Done)
}

/// `document` in a format that shows all of it.
fn laid_out(format: Format, target: &Target, document: &Document) -> Result<String> {
    Ok(match format {
        Format::Html => report::html::render(document),
        Format::Json => report::json::render(document)
            .map_err(|error| Error::new(ErrorKind::Io, format!("no JSON for this: {error}")))?,
        Format::Markdown => report::markdown::render(document),
        Format::Text => {
            let width = target.width();
            let styled = target.is_styled();
            let options = report::text::TextOptions { width, styled };
            report::text::render(document, options)
        }
        Format::Github | Format::Csv | Format::Svg => return format.refused(),
    })
}

fn rendered(args: &Args, target: &Target, parts: OverviewParts<'_>) -> Result<String> {
    Ok(match args.output.format {
        Format::Markdown => report::markdown::render(&brief_document(parts)),
        Format::Github => {
            let document = brief_document(parts);
            let slower = parts
                .comparison
                .is_some_and(|comparison| comparison.step.judgement.verdict == Verdict::Slower);
            let level = if slower {
                report::github::Level::Warning
            } else {
                report::github::Level::Notice
            };
            let health = &parts.survey.attribution.health;
            let told = report::github::render(&document.title, &document.lead, level, health);
            told + &annotations(parts.decisions)
        }
        format => laid_out(format, target, &overview_document(parts))?,
    })
}

/// Writes every picture of the report into `folder`.
fn write_pictures(folder: &Path, document: &Document, quiet: bool) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
    let mut written = 0_u64;
    for chart in report::svg::charts(document) {
        let path = folder.join(format!("{}.svg", chart.name));
        Target::new(Some(&path))?.write(&report::svg::render(chart))?;
        written += 1;
    }
    if written == 0 && !quiet {
        say("there is nothing to draw: no device work, no host operators, no memory");
    }
    Ok(())
}
