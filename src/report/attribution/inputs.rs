//! What a report is about: the files read, and the options that change the numbers.

use std::borrow::Cow;

use super::super::document::Note;
use super::super::name::shortened;
use super::super::number::{count, counted};
use super::label;
use crate::attribute::Attribution;

/// Columns of the name of a device.
const LONGEST_NAME: usize = 80;

/// What was read, and what the options leave out of it.
pub(in super::super) fn notes(attribution: &Attribution, verbose: bool) -> Vec<Note> {
    let inputs = &attribution.inputs;
    let mut parts = Vec::new();
    match inputs.as_slice() {
        [only] => parts.push(only.path.clone()),
        many if attribution.runs.len() > 1 => {
            parts.push(format!(
                "{} files in {} runs",
                many.len(),
                attribution.runs.len()
            ));
        }
        many => parts.push(format!("{} files", many.len())),
    }
    parts.push(counted(
        inputs.iter().map(|input| input.events).sum(),
        "event",
    ));
    if attribution.runs.len() == 1 {
        let mut ranks: Vec<i64> = inputs.iter().filter_map(|input| input.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        if !ranks.is_empty() {
            let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
            let world = inputs.iter().filter_map(|input| input.world_size).max();
            let world = world.map_or_else(String::new, |world| format!(" of {world}"));
            parts.push(format!("{noun} {}{world}", label::ranges(&ranks)));
        }
    }
    let mut names: Vec<&str> = Vec::new();
    for name in inputs.iter().flat_map(|input| &input.device_names) {
        if !name.is_empty() && !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let names = names.into_iter().map(|name| shortened(name, LONGEST_NAME));
    parts.extend(names.map(Cow::into_owned));
    let mut notes = vec![Note::new("input", parts.join(", "))];
    notes.extend(inputs.iter().filter_map(|input| {
        let lost = input.lost.as_ref()?;
        let ranges = lost
            .ranges
            .iter()
            .take(3)
            .map(|(from, to)| format!("{from}..{to}"));
        let named: Vec<String> = ranges.collect();
        let more = if lost.ranges.len() > 3 { ", …" } else { "" };
        let mut parts = Vec::new();
        if lost.bytes > 0 {
            let about = lost.events_estimated.map_or_else(String::new, |events| {
                format!(", about {}", counted(events, "event"))
            });
            parts.push(format!(
                "{} bytes skipped ({}{more}){about}",
                count(lost.bytes),
                named.join(", "),
            ));
        }
        match lost.events_estimated {
            Some(_) => parts.extend(lost.damage.clone()),
            None => parts.push(format!(
                "{}: how many events came behind is not known",
                lost.damage.as_deref().unwrap_or("its end is missing"),
            )),
        }
        if parts.is_empty() {
            parts.push("no event is missing".to_owned());
        }
        let text = format!("{}: {}", input.path, parts.join("; "));
        Some(Note::new("partial", text))
    }));
    let options = options(attribution);
    if !options.is_empty() {
        notes.push(Note::new("options", options.join(", ")));
    }
    if verbose && inputs.len() > 1 {
        notes.extend(inputs.iter().map(|input| {
            let rank = input
                .rank
                .map_or_else(String::new, |rank| format!(", rank {rank}"));
            let events = counted(input.events, "event");
            Note::new("file", format!("{}: {events}{rank}", input.path))
        }));
    }
    notes
}

/// The options that change the numbers, as on the command line.
fn options(attribution: &Attribution) -> Vec<String> {
    let option = |name: &str| attribution.options.get(name);
    let list = |name: &str| {
        option(name)
            .and_then(|value| value.as_array())
            .into_iter()
            .flatten()
            .map(|value| {
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned)
            })
    };
    let mut parts = Vec::new();
    if let Some([first, last]) = option("steps")
        .and_then(|value| value.as_array())
        .map(Vec::as_slice)
    {
        // A range without an end has `null` there.
        let last = last
            .as_u64()
            .map_or_else(String::new, |last| last.to_string());
        parts.push(format!("--steps {first}..{last}"));
    }
    parts.extend(list("ranks").map(|rank| format!("--rank {rank}")));
    parts.extend(list("phases").map(|pattern| format!("--phase {pattern}")));
    parts.extend(list("communication").map(|pattern| format!("--comm {pattern}")));
    for (name, flag) in [
        ("ignore_annotations", "--ignore-annotations"),
        ("include_partial_steps", "--include-partial-steps"),
    ] {
        if option(name).and_then(serde_json::Value::as_bool) == Some(true) {
            parts.push(flag.to_owned());
        }
    }
    if let Some(evidence) = option("recompute_evidence").and_then(|value| value.as_str())
        && evidence != "auto"
    {
        parts.push(format!("--recompute-evidence {evidence}"));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn options_that_change_numbers_are_told() {
        let mut attribution = sample::one_rank();
        assert_eq!(notes(&attribution, false).len(), 1);
        attribution
            .options
            .insert("steps", serde_json::json!([3, null]));
        attribution.options.insert("ranks", serde_json::json!([0]));
        attribution
            .options
            .insert("phases", serde_json::json!(["forward=^fwd$"]));
        attribution
            .options
            .insert("ignore_annotations", serde_json::json!(true));
        assert_eq!(
            notes(&attribution, false)[1].text,
            "--steps 3.., --rank 0, --phase forward=^fwd$, --ignore-annotations"
        );
    }
}
