//! Decisions by scope: the word of each, and its gates as bars against the line of their limits.

use super::super::chart::{Chart, Paint};
use super::super::colour::{self, EMPTY, FAINT, INK};
use super::super::decision::{DecisionScopes, GateBar};
use super::super::number;
use super::WIDTH;
use super::canvas::{Anchor, TEXT, fitted, picture, rounded, text_width};
use crate::gate::Decision;

const NAMES: i32 = 210;
const WORDS: i32 = 330;
const ROW: i32 = 26;
const HEAD: i32 = 56;
const TOP: i32 = 34;
/// Where limits stand on the bars: half as much again fits behind.
const LIMIT: f64 = 2.0 / 3.0;

pub(super) fn draw(chart: &Chart, scopes: &DecisionScopes) -> String {
    let gates: usize = scopes.scopes.iter().map(|scope| scope.gates.len()).sum();
    let gates = i32::try_from(gates).unwrap_or(1);
    let heads = i32::try_from(scopes.scopes.len()).unwrap_or(1);
    let height = TOP + heads * HEAD + gates * ROW + TEXT;
    picture(WIDTH, height, &chart.caption, &chart.about, |canvas| {
        canvas.bold(&fitted(&chart.caption, WIDTH), (0, 12), Anchor::Left, INK);
        let mut top = TOP;
        for scope in &scopes.scopes {
            let shade = colour::of(Paint::Decision(scope.decision));
            let word = fitted(&scope.word, 400);
            let end = text_width(&word) + 20;
            let about = format!("{}: {}, {}", scope.label, scope.word, scope.reason);
            canvas.rect([0, top, end, top + 22], shade, Some(about));
            let middle = (end / 2, top + 11);
            canvas.bold(&word, middle, Anchor::Middle, colour::ink_on(shade));
            let label = fitted(&scope.label, WIDTH - end - 12);
            canvas.bold(&label, (end + 12, top + 11), Anchor::Left, INK);
            let reason = fitted(&scope.reason, WIDTH);
            canvas.text(&reason, (0, top + 36), Anchor::Left, FAINT);
            top += HEAD - 6;
            for gate in &scope.gates {
                bar(canvas, gate, top);
                top += ROW;
            }
            top += 6;
        }
    })
}

fn bar(canvas: &mut super::canvas::Canvas<'_, '_>, gate: &GateBar, top: i32) {
    let middle = top + ROW / 2;
    let label = fitted(&gate.label, NAMES - 14);
    canvas.text(&label, (NAMES - 12, middle), Anchor::Right, INK);
    let room = f64::from(WIDTH - NAMES - WORDS);
    let right = NAMES + rounded(room);
    canvas.rect([NAMES, top + 4, right, top + ROW - 4], EMPTY, None);
    let word = match gate.holds {
        Some(true) => "holds",
        Some(false) => "fails",
        None => "not measured",
    };
    let side = if gate.at_least { "at least" } else { "at most" };
    let told = format!(
        "{word}: {} of {side} {} {}",
        number::spelled(&gate.value),
        number::spelled(&gate.limit),
        gate.unit
    );
    let told = told.trim_end();
    if let Some(holds) = gate.holds {
        let decision = if holds {
            Decision::Accept
        } else {
            Decision::Reject
        };
        let end = NAMES + rounded(room * (gate.part * LIMIT).clamp(0.0, 1.0));
        let shade = colour::of(Paint::Decision(decision));
        let title = format!("{}: {told}", gate.label);
        canvas.rect(
            [NAMES, top + 6, end.max(NAMES + 2), top + ROW - 6],
            shade,
            Some(title),
        );
    }
    let limit = NAMES + rounded(room * LIMIT);
    canvas.line(vec![(limit, top + 1), (limit, top + ROW - 1)], INK, 2);
    let words = fitted(told, WORDS - 16);
    canvas.text(&words, (right + 12, middle), Anchor::Left, INK);
}
