//! Attributions as JSON values, and comparisons of them.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tracekit::attribute::{AttributeOptions, Attribution, Request, Salvage, attribute_paths};
use tracekit::ingest::IngestOptions;
use tracekit::rewrite::salvage;

/// The attribution of `path` with `options`, read as `ingest` says; inputs are not hashed.
fn ask(
    path: &Path,
    ingest: IngestOptions,
    options: &AttributeOptions,
    salvage: Option<Salvage>,
) -> tracekit::Result<Attribution> {
    let request = Request {
        salvage,
        paths: &[path.to_owned()],
        ingest,
        options,
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: false,
    };
    attribute_paths(&request, &|_| {})
}

/// The attribution of `path`.
pub(crate) fn attribution(
    path: &Path,
    options: &AttributeOptions,
) -> tracekit::Result<Attribution> {
    ask(path, IngestOptions::default(), options, None)
}

/// The attribution of `path`, damaged or not.
pub(crate) fn salvaged(path: &Path) -> tracekit::Result<Attribution> {
    let options = AttributeOptions::default();
    ask(path, IngestOptions::default(), &options, Some(salvage))
}

/// The attribution of `path` read in another way, as JSON.
pub(crate) fn read_as(path: &Path, ingest: IngestOptions) -> Value {
    let answer = ask(path, ingest, &AttributeOptions::default(), None);
    json(&answer.unwrap_or_else(|error| panic!("{error}")))
}

/// The attribution of `path`, as JSON.
pub(crate) fn answer(path: &Path) -> Value {
    read_as(path, IngestOptions::default())
}

/// `attribution` as JSON.
pub(crate) fn json(attribution: &Attribution) -> Value {
    serde_json::to_value(attribution).unwrap()
}

/// What must not depend on how a file is stored or read: everything but where it lies, how large it
/// is, where in it the first finding is, and the options.
pub(crate) fn comparable(mut answer: Value) -> Value {
    let fields = answer.as_object_mut().unwrap();
    fields.remove("options");
    for input in fields["inputs"].as_array_mut().unwrap() {
        for key in ["path", "bytes", "sha256", "compressed"] {
            input.as_object_mut().unwrap().remove(key);
        }
    }
    for finding in fields["health"].as_array_mut().unwrap() {
        finding.as_object_mut().unwrap().remove("first_offset");
    }
    answer
}

/// Takes a further key out of every input and finding.
pub(crate) fn without(mut answer: Value, list: &str, key: &str) -> Value {
    for item in answer[list].as_array_mut().unwrap() {
        item.as_object_mut().unwrap().remove(key);
    }
    answer
}

/// Where `got` differs from `want`: the first few places, by path.
pub(crate) fn differences(want: &Value, got: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", want, got, true, &mut found);
    found
}

/// Where `got` differs from the values that `want` names; `want` may leave out keys, and may use
/// numbers as keys to name elements of a list.
pub(crate) fn unmet(want: &Value, got: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", want, got, false, &mut found);
    found
}

fn compare(at: &str, want: &Value, got: &Value, whole: bool, found: &mut Vec<String>) {
    if found.len() >= 12 {
        return;
    }
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => {
            for (key, value) in want {
                match got.get(key) {
                    Some(other) => compare(&format!("{at}/{key}"), value, other, whole, found),
                    None => found.push(format!("{at}/{key}: want {value}, it is not there")),
                }
            }
            if whole {
                for key in got.keys().filter(|key| !want.contains_key(*key)) {
                    found.push(format!("{at}/{key}: should not be there"));
                }
            }
        }
        (Value::Object(want), Value::Array(got)) if !whole => {
            for (key, value) in want {
                let place = key.parse::<usize>().ok().and_then(|index| got.get(index));
                match place {
                    Some(other) => compare(&format!("{at}/{key}"), value, other, whole, found),
                    None => found.push(format!("{at}/{key}: the list has {} elements", got.len())),
                }
            }
        }
        (Value::Array(want), Value::Array(got)) => {
            if want.len() != got.len() {
                found.push(format!(
                    "{at}: want {} elements, got {}",
                    want.len(),
                    got.len()
                ));
            }
            for (index, (value, other)) in want.iter().zip(got).enumerate() {
                compare(&format!("{at}/{index}"), value, other, whole, found);
            }
        }
        (Value::Number(want), Value::Number(got)) if want.is_f64() || got.is_f64() => {
            let (want, got) = (want.as_f64().unwrap(), got.as_f64().unwrap());
            if (want - got).abs() > 1e-12 {
                found.push(format!("{at}: want {want}, got {got}"));
            }
        }
        _ if want == got => {}
        _ => found.push(format!("{at}: want {want}, got {got}")),
    }
}

/// A folder that holds `content` as the only file of a run, so that the name of the run does not
/// depend on the name of the file.
pub(crate) fn stored(folder: &Path, variant: &str, file: &str, content: &[u8]) -> PathBuf {
    let place = folder.join(variant);
    let run = place.join("run");
    std::fs::create_dir_all(&run).unwrap();
    std::fs::write(run.join(file), content).unwrap();
    place
}
