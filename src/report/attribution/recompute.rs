//! What is known about recomputed work, in words.

use super::super::document::Note;
use super::super::number::{counted, ms, percent};
use crate::attribute::{Phase, Recompute, RunResult};
use crate::units::Ns;

/// Recompute of `run`, and what was not counted as such.
pub(in super::super) fn notes(run: &RunResult) -> Vec<Note> {
    let recompute = &run.recompute;
    let mut notes = vec![Note::new("recompute", described(run))];
    let weak = &recompute.weak;
    if weak.regions > 0 {
        let time = if run.totals.total.events > 0 {
            format!("{} ms of device time", ms(weak.device_sum_ns))
        } else {
            format!("{} ms of host self time", ms(weak.host_self_ns))
        };
        let text = format!(
            "not counted as recompute: {} in {} of grad-enabled work in backward, {time}, that no \
             forward work confirms",
            counted(weak.ops, "op"),
            counted(weak.regions, "region"),
        );
        notes.push(Note::new("weak", text));
    }
    if recompute.disagreement_ns > Ns::ZERO {
        let text = format!(
            "two kinds of recompute evidence disagree about {} ms of device time",
            ms(recompute.disagreement_ns)
        );
        notes.push(Note::new("disagreement", text));
    }
    notes
}

fn described(run: &RunResult) -> String {
    let recompute = &run.recompute;
    let hidden = match recompute.observable {
        "yes" => None,
        "no" => {
            Some("not observable: nothing to tell it by (sequence numbers, annotations, frames)")
        }
        _ => Some("a lower bound: compiled regions and graph launches hide some"),
    };
    let mut parts = Vec::new();
    if recompute.regions == 0 && recompute.device_sum_ns == Ns::ZERO {
        parts.push(
            if hidden.is_none() {
                "none"
            } else {
                "none seen"
            }
            .to_owned(),
        );
    } else {
        let on_device = run.totals.total.events > 0;
        if on_device {
            parts.push(format!(
                "{}, {} ms{}",
                counted(run.totals.phase(Phase::Recompute).events, "device event"),
                ms(recompute.device_sum_ns),
                of_forward(recompute.share_of_forward)
            ));
        }
        let forward = run
            .host_phases
            .get(&Phase::Forward)
            .map(|time| time.self_ns);
        let share = forward
            .filter(|_| !on_device)
            .and_then(|time| recompute.host_self_ns.ratio(time));
        parts.push(format!(
            "{} in {}, {} ms host self{} (evidence: {})",
            counted(recompute.ops, "op"),
            counted(recompute.regions, "region"),
            ms(recompute.host_self_ns),
            of_forward(share),
            evidence(recompute)
        ));
    }
    parts.extend(hidden.map(str::to_owned));
    parts.join("; ")
}

fn of_forward(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| {
        format!(" = {} % of forward", percent(share))
    })
}

fn evidence(recompute: &Recompute) -> String {
    if recompute.by_evidence.len() < 2 {
        return recompute.evidence.to_owned();
    }
    let kinds: Vec<String> = recompute
        .by_evidence
        .iter()
        .map(|(kind, share)| format!("{kind} for {}", counted(share.regions, "region")))
        .collect();
    kinds.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn recompute_names_its_evidence() {
        let attribution = sample::one_rank();
        assert_eq!(
            described(&attribution.runs[0]),
            "4 device events, 2.000 ms = 33.3 % of forward; 24 ops in 2 regions, 1.000 ms host \
             self (evidence: sequence)"
        );
    }

    #[test]
    fn hidden_recompute_is_not_none() {
        let mut run = sample::host_only().runs.remove(0);
        assert_eq!(described(&run), "none");
        run.recompute.observable = "no";
        assert_eq!(
            described(&run),
            "none seen; not observable: nothing to tell it by (sequence numbers, annotations, frames)"
        );
    }
}
