//! A diagnosis as a document: verdicts first, then what is behind them.

use super::document::{Block, Column, Document, Note, Row, Section, Table, Value};
use super::name::{shortened, visible};
use super::number::{count, counted, ms, percent};
use crate::doctor::{
    Code, Codes, Diagnosis, Facts, FileDiagnosis, Finding, Impact, Judgement, RunDiagnosis, Use,
    Verdict,
};
use crate::health::Severity;
use crate::units::Ns;

/// Columns of the name of the first event of a finding.
const LONGEST_NAME: usize = 80;
/// How many findings the reason of a verdict names.
const REASONS: usize = 3;
/// How many steps of a finding are told.
const STEPS: usize = 8;

/// `diagnosis` as a report. Findings for information, and of several files those that can be trusted,
/// are told about when `verbose`.
pub fn diagnosis_document(diagnosis: &Diagnosis, verbose: bool) -> Document {
    let mut sections = Vec::new();
    let (title, lead) = match diagnosis.files.as_slice() {
        [file] => {
            let of_run = diagnosis.runs.iter().flat_map(|run| &run.findings);
            let findings: Vec<&Finding> = file.findings.iter().chain(of_run).collect();
            sections.push(Section {
                title: None,
                blocks: file_blocks(file, &findings, verbose),
            });
            (
                format!("Diagnosis of {}", file.path),
                format!("{}: {}", file.path, sentence(&file.verdict)),
            )
        }
        files => {
            sections.push(Section {
                title: None,
                blocks: vec![Block::Table(verdicts(files))],
            });
            for run in &diagnosis.runs {
                sections.extend(run_section(run, verbose));
            }
            sections.extend(files.iter().filter_map(|file| file_section(file, verbose)));
            (
                format!("Diagnosis of {} files", files.len()),
                summary(files),
            )
        }
    };
    let skipped = skipped(diagnosis, verbose);
    if !skipped.is_empty() {
        sections.push(Section {
            title: (diagnosis.files.len() > 1).then(|| "no traces".to_owned()),
            blocks: vec![Block::Notes(skipped)],
        });
    }
    Document {
        title,
        lead,
        sections,
    }
}

/// What findings mean.
pub fn codes_document(codes: &Codes) -> Document {
    let (title, lead, notes) = match codes.codes.as_slice() {
        [only] => (
            format!("Finding {}", only.code),
            format!("{}: {}", headed(only), only.meaning),
            vec![
                Note::new("found by", only.detection),
                Note::new("effect", only.effect),
                Note::new("what to do", only.action),
            ],
        ),
        all => (
            "Findings".to_owned(),
            format!(
                "{} findings; --explain CODE tells more about one",
                all.len()
            ),
            all.iter()
                .map(|code| {
                    let severity = code.severity.as_str();
                    Note::new(code.code, format!("{severity}: {}", code.meaning))
                })
                .collect(),
        ),
    };
    Document {
        title,
        lead,
        sections: vec![Section {
            title: None,
            blocks: vec![Block::Notes(notes)],
        }],
    }
}

fn headed(code: &Code) -> String {
    format!("{} ({})", code.code, code.severity.as_str())
}

/// A verdict as a sentence: `not usable for recompute; with care for phases`.
fn sentence(verdict: &Verdict) -> String {
    let care = uses(&verdict.care_for);
    match verdict.judgement {
        Judgement::Trustworthy => "trustworthy".to_owned(),
        Judgement::UsableWithCare => format!("usable with care for {care}"),
        Judgement::NotUsable if verdict.not_usable_for.len() == Use::ALL.len() => {
            "not usable".to_owned()
        }
        Judgement::NotUsable => {
            let not = uses(&verdict.not_usable_for);
            let care = match verdict.care_for.len() {
                0 => String::new(),
                _ => format!("; with care for {care}"),
            };
            format!("not usable for {not}{care}")
        }
    }
}

/// `a`, `a and b`, `a, b and c`.
fn uses(uses: &[Use]) -> String {
    let words: Vec<&str> = uses.iter().map(|what| what.as_str()).collect();
    match words.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// How many files have which verdict.
fn summary(files: &[FileDiagnosis]) -> String {
    let of = |judgement| {
        let matching = files
            .iter()
            .filter(|file| file.verdict.judgement == judgement);
        matching.count() as u64
    };
    let parts: Vec<String> = [
        (Judgement::Trustworthy, "trustworthy"),
        (Judgement::UsableWithCare, "usable with care"),
        (Judgement::NotUsable, "not usable for some or all numbers"),
    ]
    .into_iter()
    .filter(|(judgement, _)| of(*judgement) > 0)
    .map(|(judgement, words)| format!("{} {words}", count(of(judgement))))
    .collect();
    format!("{} files: {}", count(files.len() as u64), parts.join(", "))
}

fn verdicts(files: &[FileDiagnosis]) -> Table {
    let folder = common_folder(files);
    let rows = files.iter().map(|file| {
        let findings = file.findings.iter().filter(|finding| is_shown(finding));
        Row::new(vec![
            Value::text(gravest(&file.verdict)),
            Value::Count(findings.count() as u64),
            Value::text(file.path.strip_prefix(folder).unwrap_or(&file.path)),
        ])
    });
    let under = match folder {
        "" => String::new(),
        folder => format!(" on the files under {folder}"),
    };
    Table {
        caption: format!("Verdicts{under}"),
        keys: 1,
        columns: vec![
            Column::text("verdict"),
            Column::number("findings"),
            Column::text("file"),
        ],
        rows: rows.collect(),
    }
}

/// The worst part of a verdict.
fn gravest(verdict: &Verdict) -> String {
    let named = |of: &[Use]| match of {
        [first, second, _, rest @ ..] if !rest.is_empty() => {
            let more = of.len() - 2;
            format!("{}, {} and {more} more", first.as_str(), second.as_str())
        }
        few => uses(few),
    };
    match verdict.judgement {
        Judgement::Trustworthy => "trustworthy".to_owned(),
        Judgement::UsableWithCare => format!("with care for {}", named(&verdict.care_for)),
        Judgement::NotUsable if verdict.not_usable_for.len() == Use::ALL.len() => {
            "not usable".to_owned()
        }
        Judgement::NotUsable => format!("not usable for {}", named(&verdict.not_usable_for)),
    }
}

/// The folder that all files are under, with the slash at its end.
fn common_folder(files: &[FileDiagnosis]) -> &str {
    let first = files.first().map_or("", |file| file.path.as_str());
    let common = files.iter().fold(first.len(), |common, file| {
        let same = file.path.bytes().zip(first.bytes());
        same.take_while(|(a, b)| a == b).count().min(common)
    });
    let folder = first.as_bytes()[..common]
        .iter()
        .rposition(|byte| *byte == b'/');
    folder.map_or("", |slash| &first[..=slash])
}

/// True for findings that are shown without `--verbose`.
fn is_shown(finding: &Finding) -> bool {
    finding.severity > Severity::Info || finding.impact > Impact::None
}

fn run_section(run: &RunDiagnosis, verbose: bool) -> Option<Section> {
    let matters = |finding: &&Finding| {
        verbose || finding.severity > Severity::Notice || finding.impact > Impact::None
    };
    let findings: Vec<&Finding> = run.findings.iter().filter(matters).collect();
    (!findings.is_empty()).then(|| Section {
        title: Some(run.name.clone()),
        blocks: vec![
            Block::Table(table("Findings about the run", &findings)),
            Block::Notes(findings.iter().map(|finding| told(finding)).collect()),
        ],
    })
}

fn file_section(file: &FileDiagnosis, verbose: bool) -> Option<Section> {
    let findings: Vec<&Finding> = file.findings.iter().collect();
    let trusted = file.verdict.judgement == Judgement::Trustworthy;
    (verbose || !trusted).then(|| {
        let mut blocks = vec![Block::Paragraph(sentence(&file.verdict))];
        blocks.extend(file_blocks(file, &findings, verbose));
        Section {
            title: Some(file.path.clone()),
            blocks,
        }
    })
}

fn file_blocks(file: &FileDiagnosis, findings: &[&Finding], verbose: bool) -> Vec<Block> {
    let mut notes = Vec::new();
    if !file.verdict.because.is_empty() {
        notes.push(Note::new("because", reasons(&file.verdict, findings)));
    }
    if let Some(facts) = &file.facts {
        notes.push(Note::new("input", input(file, facts)));
    }
    let shown: Vec<&Finding> = findings
        .iter()
        .copied()
        .filter(|finding| verbose || is_shown(finding))
        .collect();
    let mut blocks = vec![Block::Notes(notes)];
    if shown.is_empty() {
        let text = match findings.len() {
            0 => "nothing unusual".to_owned(),
            hidden => format!("nothing unusual; -v shows {hidden} for information"),
        };
        blocks.push(Block::Notes(vec![Note::new("findings", text)]));
    } else {
        blocks.push(Block::Table(table("Findings", &shown)));
        blocks.push(Block::Notes(
            shown.iter().map(|finding| told(finding)).collect(),
        ));
    }
    blocks
}

/// The findings that decided, with their shares.
fn reasons(verdict: &Verdict, findings: &[&Finding]) -> String {
    let parts: Vec<String> = verdict
        .because
        .iter()
        .take(REASONS)
        .map(|code| {
            let finding = findings.iter().find(|finding| finding.code == *code);
            match finding.and_then(|finding| finding.share.zip(finding.share_of)) {
                Some((share, of)) => format!("{code} ({} % of {})", percent(share), of.as_str()),
                None => (*code).to_owned(),
            }
        })
        .collect();
    let more = match verdict.because.len().saturating_sub(REASONS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", parts.join(", "))
}

/// What is in the file.
fn input(file: &FileDiagnosis, facts: &Facts) -> String {
    let mut parts = vec![counted(facts.events, "event")];
    let inferred = if facts.steps_inferred {
        " (inferred)"
    } else {
        ""
    };
    match facts.steps {
        0 => parts.push("no steps".to_owned()),
        steps => parts.push(format!("{}{inferred}", counted(steps, "step"))),
    }
    match facts.device_time_ns {
        Some(time) => {
            let events = counted(facts.device_events, "device event");
            parts.push(format!("{events} with {} ms", ms(time)));
        }
        None => parts.push("no device work".to_owned()),
    }
    match facts.phases {
        "none" => parts.push("no phases".to_owned()),
        phases => parts.push(format!("phases {phases}")),
    }
    if let Some(rank) = file.rank {
        let world = file.world_size;
        let world = world.map_or_else(String::new, |world| format!(" of {world}"));
        parts.push(format!("rank {rank}{world}"));
    }
    parts.join(", ")
}

fn table(caption: &str, findings: &[&Finding]) -> Table {
    let rows = findings.iter().map(|finding| {
        Row::new(vec![
            Value::text(finding.severity.as_str()),
            Value::text(finding.code),
            Value::Count(finding.count),
            finding.time_ns.map_or(Value::Blank, Value::Ns),
            finding.share.map_or(Value::Blank, Value::Percent),
            finding
                .share_of
                .map_or(Value::Blank, |of| Value::text(of.as_str())),
        ])
    });
    Table {
        caption: caption.to_owned(),
        keys: 2,
        columns: vec![
            Column::text("severity"),
            Column::text("finding"),
            Column::number("count"),
            Column::ms("time"),
            Column::percent("share"),
            Column::text("of"),
        ],
        rows: rows.collect(),
    }
}

/// What a finding means, what to do, and where the first of it is.
fn told(finding: &Finding) -> Note {
    let touched = match finding.affects {
        [] => String::new(),
        all if all.len() == Use::ALL.len() => String::new(),
        some => format!("; concerns {}", uses(some)),
    };
    let first = finding.count > 1;
    let mut places = Vec::new();
    let name = finding.first_name.as_deref().map(visible);
    let name = name.as_deref().map(|name| shortened(name, LONGEST_NAME));
    match (name, finding.first_offset) {
        (Some(name), Some(offset)) if first => {
            places.push(format!("first: {name} at byte {offset}"));
        }
        (Some(name), Some(offset)) => places.push(format!("{name} at byte {offset}")),
        (Some(name), None) => places.push(name.into_owned()),
        (None, Some(offset)) if first => places.push(format!("first at byte {offset}")),
        (None, Some(offset)) => places.push(format!("at byte {offset}")),
        (None, None) => {}
    }
    if let Some(worst) = finding.worst_ns.filter(|worst| *worst > Ns::ZERO) {
        places.push(format!("worst: {} ms", ms(worst)));
    }
    let places = match places.as_slice() {
        [] => String::new(),
        places => format!(" ({})", places.join("; ")),
    };
    let steps = by_step(finding);
    let text = format!(
        "{}{touched}{places}.{steps} {}",
        finding.meaning, finding.action
    );
    Note::new(finding.code, text)
}

/// ` By step: ProfilerStep#3 5, outside of steps 2.`
fn by_step(finding: &Finding) -> String {
    if finding.by_step.keys().all(String::is_empty) {
        return String::new();
    }
    let parts: Vec<String> = finding
        .by_step
        .iter()
        .take(STEPS)
        .map(|(step, number)| {
            let step = if step.is_empty() {
                "outside of steps"
            } else {
                step
            };
            format!("{} {}", visible(step), count(*number))
        })
        .collect();
    let more = if finding.by_step.len() > STEPS {
        ", …"
    } else {
        ""
    };
    format!(" By step: {}{more}.", parts.join(", "))
}

/// Files that were not diagnosed.
fn skipped(diagnosis: &Diagnosis, verbose: bool) -> Vec<Note> {
    let shown = diagnosis
        .skipped
        .iter()
        .filter(|file| verbose || file.failed || file.kind.is_some());
    let mut notes: Vec<Note> = shown
        .map(|file| {
            let label = if file.failed { "failed" } else { "skipped" };
            Note::new(label, format!("{}: {}", file.path, file.reason))
        })
        .collect();
    let hidden = diagnosis.skipped.len() - notes.len();
    if hidden > 0 {
        let files = if hidden == 1 { "file" } else { "files" };
        let text = format!("{} other {files}; -v names them", count(hidden as u64));
        notes.push(Note::new("skipped", text));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(not_usable_for: &[Use], care_for: &[Use]) -> Verdict {
        Verdict {
            judgement: match (not_usable_for.len(), care_for.len()) {
                (0, 0) => Judgement::Trustworthy,
                (0, _) => Judgement::UsableWithCare,
                _ => Judgement::NotUsable,
            },
            not_usable_for: not_usable_for.to_vec(),
            care_for: care_for.to_vec(),
            because: Vec::new(),
        }
    }

    #[test]
    fn verdicts_are_sentences_and_short_in_tables() {
        let [device, host, phases, recompute, ..] = Use::ALL;
        for (verdict, whole, short) in [
            (verdict(&[], &[]), "trustworthy", "trustworthy"),
            (
                verdict(&[], &[device, phases]),
                "usable with care for device time and phases",
                "with care for device time and phases",
            ),
            (
                verdict(&[recompute], &[phases]),
                "not usable for recompute; with care for phases",
                "not usable for recompute",
            ),
            (
                verdict(&[device, host, phases, recompute], &[]),
                "not usable for device time, host time, phases and recompute",
                "not usable for device time, host time and 2 more",
            ),
            (verdict(&Use::ALL, &[]), "not usable", "not usable"),
        ] {
            assert_eq!(sentence(&verdict), whole);
            assert_eq!(gravest(&verdict), short);
        }
    }

    #[test]
    fn files_are_named_below_the_folder_that_they_share() {
        let file = |path: &str| FileDiagnosis {
            path: path.to_owned(),
            run: None,
            rank: None,
            world_size: None,
            verdict: verdict(&[], &[]),
            facts: None,
            findings: Vec::new(),
        };
        let common = |paths: &[&str]| {
            let files: Vec<FileDiagnosis> = paths.iter().map(|path| file(path)).collect();
            common_folder(&files).to_owned()
        };
        assert_eq!(common(&["a/b/r0.json", "a/b/r1.json"]), "a/b/");
        assert_eq!(common(&["a/b/r0.json", "a/bc/r1.json"]), "a/");
        assert_eq!(common(&["r0.json", "r1.json"]), "");
        assert_eq!(common(&["größe/a", "größer/b"]), "");
        assert_eq!(common(&[]), "");
    }
}
