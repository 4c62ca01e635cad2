//! Recomputed work, with its evidence.

use super::super::attribution::{label, recompute};
use super::super::document::{Block, Column, Row, Section, Table, Value};
use super::pictures;
use crate::attribute::{Attribution, EvidenceShare};
use crate::units::Ns;

/// How much was recomputed, and how that is known.
pub(super) fn section(attribution: &Attribution) -> Section {
    let mut blocks = Vec::new();
    for run in &attribution.runs {
        blocks.extend(pictures::recompute(attribution, run).map(Block::Chart));
        let mut notes = recompute::notes(run);
        if attribution.runs.len() > 1 {
            let name = label::run(&attribution.runs, run);
            for note in &mut notes {
                note.text = format!("{name}: {}", note.text);
            }
        }
        blocks.push(Block::Notes(notes));
    }
    blocks.extend(evidence(attribution).map(Block::Table));
    Section {
        title: Some("Recompute and its evidence".to_owned()),
        blocks,
    }
}

/// One row a run and kind of evidence.
fn evidence(attribution: &Attribution) -> Option<Table> {
    let several = attribution.runs.len() > 1;
    let mut rows = Vec::new();
    for run in &attribution.runs {
        let recompute = &run.recompute;
        let on_device = run.totals.total.events > 0;
        let time = |time: Ns| {
            if on_device {
                Value::Ns(time)
            } else {
                Value::Missing
            }
        };
        let row = |kind: &str, share: &EvidenceShare, counted: &str| {
            let mut cells = Vec::new();
            cells.extend(several.then(|| Value::text(label::run(&attribution.runs, run))));
            cells.extend([
                Value::text(kind),
                Value::text(counted),
                Value::Count(share.regions),
                Value::Count(share.ops),
                time(share.device_sum_ns),
            ]);
            Row::new(cells)
        };
        for (kind, share) in &recompute.by_evidence {
            rows.push(row(kind, share, "recompute"));
        }
        if recompute.weak.regions > 0 {
            let weak = EvidenceShare {
                regions: recompute.weak.regions,
                ops: recompute.weak.ops,
                device_sum_ns: recompute.weak.device_sum_ns,
            };
            rows.push(row("weak", &weak, "its phase, not recompute"));
        }
    }
    let mut columns = Vec::new();
    columns.extend(several.then(|| Column::text("run")));
    columns.extend([
        Column::text("evidence"),
        Column::text("counted as"),
        Column::number("regions"),
        Column::number("operators"),
        Column::ms("device time"),
    ]);
    (!rows.is_empty()).then(|| Table {
        caption: "Evidence of recompute".to_owned(),
        keys: 1 + usize::from(several),
        columns,
        rows,
    })
}
