//! Scopes of decisions with their gates: what was measured beside what was asked for.

use super::super::chart::{Chart, Picture};
use super::super::document::{Block, Column, Row, Table, Value};
use super::decision_of;
use super::picture::{DecisionScope, DecisionScopes, GateBar};
use super::table::{cell, word, words};
use crate::gate::Json;

/// Gates that one picture shows.
const MOST_GATES: usize = 60;

/// A metric with its gate: what it is called in records, here, in which unit, and whether the gate is a floor.
type Metric = (&'static str, &'static str, &'static str, &'static str, bool);
const METRICS: [Metric; 3] = [
    (
        "memory_saving_mb",
        "minimum_memory_saving_mb",
        "memory saved",
        "MiB",
        true,
    ),
    (
        "throughput_ratio",
        "minimum_throughput_ratio",
        "throughput kept",
        "× baseline",
        true,
    ),
    (
        "loss_delta",
        "maximum_loss_delta",
        "loss changed",
        "",
        false,
    ),
];

/// Picture and tables of the scopes of a closing record or hand-off, and of the candidates it judged.
pub(super) fn blocks(scopes: &Json, judged: &[&Json]) -> Vec<Block> {
    let full = scopes.at(&["full_training_adoption"]);
    let activation = scopes.at(&["activation_memory_mechanism"]);
    let mut lanes = Vec::new();
    let gates = || {
        judged.iter().flat_map(|record| {
            let name = record.at(&["name"]).as_str().unwrap_or("?");
            bars(record, &format!("{name}: "))
        })
    };
    lanes.extend(lane("full training", full, gates().collect()));
    lanes.extend(lane(
        "activation memory alone",
        activation,
        bars(activation, ""),
    ));
    let mut blocks = Vec::new();
    blocks.extend(picture(lanes).map(Block::Chart));
    let rows: Vec<Row> = [full, activation]
        .into_iter()
        .filter(|scope| scope.is_object())
        .map(|scope| {
            Row::new(vec![
                word(scope.at(&["scope"])),
                word(scope.at(&["decision"])),
                word(scope.at(&["reason"])),
                word(scope.at(&["next_action"])),
                word(scope.at(&["optimizer"])),
                cell(scope.first(&["seq_len", "comparison_seq_len"])),
            ])
        })
        .collect();
    if !rows.is_empty() {
        blocks.push(Block::Table(Table {
            caption: "Decisions by scope; one is never promoted to another".to_owned(),
            keys: 1,
            columns: vec![
                Column::text("scope"),
                Column::text("decision"),
                Column::text("reason"),
                Column::text("next"),
                Column::text("optimizer"),
                Column::number("length"),
            ],
            rows,
        }));
    }
    blocks.extend(candidates(judged).map(Block::Table));
    blocks.extend(gate_table(judged, activation).map(Block::Table));
    blocks
}

/// Picture and table of the candidates of `gate qualify`.
pub(super) fn qualification(result: &Json) -> Vec<Block> {
    let judged: Vec<&Json> = result.at(&["candidate_records"]).items().iter().collect();
    let gates = judged.iter().flat_map(|record| {
        let name = record.at(&["name"]).as_str().unwrap_or("?");
        bars(record, &format!("{name}: "))
    });
    let lane = lane("full training", result.at(&["decision"]), gates.collect());
    let mut blocks = Vec::new();
    blocks.extend(picture(lane.into_iter().collect()).map(Block::Chart));
    blocks.extend(gate_table(&judged, &Json::Null).map(Block::Table));
    blocks
}

/// Picture and table of `gate activation-scope`.
pub(super) fn activation(result: &Json) -> Vec<Block> {
    let lane = lane("activation memory alone", result, bars(result, ""));
    let mut blocks = Vec::new();
    blocks.extend(picture(lane.into_iter().collect()).map(Block::Chart));
    blocks.extend(gate_table(&[], result).map(Block::Table));
    blocks
}

fn lane(label: &str, scope: &Json, gates: Vec<GateBar>) -> Option<DecisionScope> {
    let decision = decision_of(scope.at(&["decision"]))?;
    let text = |key: &str| scope.at(&[key]).as_str().unwrap_or_default().to_owned();
    Some(DecisionScope {
        label: label.to_owned(),
        decision,
        word: text("decision"),
        reason: text("reason"),
        gates,
    })
}

/// The gates of a record with `metrics` and `gates`.
fn bars(record: &Json, lead: &str) -> Vec<GateBar> {
    let (metrics, gates) = (record.at(&["metrics"]), record.at(&["gates"]));
    METRICS
        .into_iter()
        .filter_map(|(metric, gate, name, unit, at_least)| {
            let limit = gates.at(&[gate]).as_f64()?;
            let value = metrics.at(&[metric]).as_f64();
            let part = value.map_or(0.0, |value| {
                if limit > 0.0 {
                    (value / limit).max(0.0)
                } else {
                    f64::from(u8::from(value > limit))
                }
            });
            Some(GateBar {
                label: format!("{lead}{name}"),
                value: value.map_or(Value::Missing, Value::Number),
                limit: Value::Number(limit),
                unit,
                at_least,
                holds: holds(record, metric, value, limit, at_least),
                part,
            })
        })
        .collect()
}

/// Whether the gate holds: as the record says where it does, for metrics are rounded there and gates see
/// them before that.
fn holds(
    record: &Json,
    metric: &str,
    value: Option<f64>,
    limit: f64,
    at_least: bool,
) -> Option<bool> {
    let value = value?;
    let code = metric.trim_end_matches("_mb");
    match record.get("failed_gates") {
        Some(Json::List(failed)) => Some(!failed.iter().any(|gate| gate.as_str() == Some(code))),
        _ if at_least => Some(value >= limit),
        _ => Some(value <= limit),
    }
}

fn picture(scopes: Vec<DecisionScope>) -> Option<Chart> {
    let gates: usize = scopes.iter().map(|scope| scope.gates.len()).sum();
    if scopes.is_empty() || gates > MOST_GATES {
        return None;
    }
    let told: Vec<String> = scopes
        .iter()
        .map(|scope| format!("{}: {}, {}", scope.label, scope.word, scope.reason))
        .collect();
    Some(Chart {
        name: "decision-scopes".to_owned(),
        caption: "Decisions by scope, and what was measured beside its gates".to_owned(),
        about: format!("{}.", told.join("; ")),
        picture: Picture::Scopes(DecisionScopes { scopes }),
    })
}

fn candidates(judged: &[&Json]) -> Option<Table> {
    let rows = judged.iter().map(|record| {
        Row::new(vec![
            word(record.at(&["name"])),
            word(record.at(&["decision"])),
            Value::text(words(record.at(&["failed_gates"]))),
            Value::text(words(record.at(&["missing_evidence"]))),
        ])
    });
    (!judged.is_empty()).then(|| Table {
        caption: "Profiled candidates, judged by what they measured without the profiler"
            .to_owned(),
        keys: 1,
        columns: ["candidate", "decision", "failed gates", "missing evidence"]
            .map(Column::text)
            .to_vec(),
        rows: rows.collect(),
    })
}

fn gate_table(judged: &[&Json], activation: &Json) -> Option<Table> {
    let full = judged.iter().flat_map(|record| {
        let name = record.at(&["name"]).as_str().unwrap_or("?");
        bars(record, &format!("{name}: "))
    });
    let full = full.map(|bar| ("full training", bar));
    let alone = bars(activation, "").into_iter();
    let alone = alone.map(|bar| ("activation memory alone", bar));
    let rows: Vec<Row> = full
        .chain(alone)
        .map(|(scope, bar)| {
            Row::new(vec![
                Value::text(scope),
                Value::text(bar.label),
                bar.value,
                Value::text(if bar.at_least { "at least" } else { "at most" }),
                bar.limit,
                Value::text(bar.unit),
                Value::text(match bar.holds {
                    Some(true) => "holds",
                    Some(false) => "fails",
                    None => "not measured",
                }),
            ])
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        caption: "Gates".to_owned(),
        keys: 2,
        columns: vec![
            Column::text("scope"),
            Column::text("metric"),
            Column::number("measured"),
            Column::text("wanted"),
            Column::number("limit"),
            Column::text("unit"),
            Column::text("gate"),
        ],
        rows,
    })
}
