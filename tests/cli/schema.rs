//! What `generate schema` says holds for every answer.

use serde_json::Value;

use crate::tracekit;

/// What is wrong with `value` by `schema`, a part of `root`: the words of JSON Schema that ours use.
fn faults(root: &Value, schema: &Value, value: &Value, place: &str, faults_of: &mut Vec<String>) {
    let mut fault = |text: String| faults_of.push(format!("{place}: {text}"));
    let is_of = |name: &Value| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    };
    for (word, wanted) in schema.as_object().unwrap() {
        let size = || value.as_object().map_or(0, serde_json::Map::len) as u64;
        match word.as_str() {
            "type" => {
                let types = wanted.as_array().cloned();
                if !types
                    .unwrap_or_else(|| vec![wanted.clone()])
                    .iter()
                    .any(is_of)
                {
                    fault(format!("is not {wanted}"));
                }
            }
            "const" if value != wanted => fault(format!("is not {wanted}")),
            "enum" if !wanted.as_array().unwrap().contains(value) => {
                fault(format!("{value} is none of {wanted}"));
            }
            "minProperties" if size() < wanted.as_u64().unwrap() => fault("is too small".into()),
            "maxProperties" if size() > wanted.as_u64().unwrap() => fault("is too large".into()),
            "required" => {
                let keys = wanted.as_array().unwrap().iter();
                let missing = keys.filter(|key| value.get(key.as_str().unwrap()).is_none());
                missing.for_each(|key| fault(format!("has no {key}")));
            }
            _ => {}
        }
    }
    let mut below = |schema: &Value, value: &Value, key: &str| {
        faults(root, schema, value, &format!("{place}/{key}"), faults_of);
    };
    if let Some(target) = schema.get("$ref") {
        let pointer = target.as_str().unwrap().trim_start_matches('#');
        below(root.pointer(pointer).expect("a definition"), value, "");
    }
    let known = schema.get("properties");
    for (key, value) in value.as_object().into_iter().flatten() {
        let own = known.and_then(|known| known.get(key));
        if let Some(schema) = own.or_else(|| schema.get("additionalProperties")) {
            below(schema, value, key);
        }
    }
    if let Some(items) = schema.get("items") {
        let values = value.as_array().into_iter().flatten();
        values.for_each(|value| below(items, value, "item"));
    }
    if let Some(any) = schema.get("anyOf") {
        let fits = |schema: &Value| {
            let mut found = Vec::new();
            faults(root, schema, value, place, &mut found);
            found.is_empty()
        };
        if !any.as_array().unwrap().iter().any(fits) {
            faults_of.push(format!("{place}: is not {any}"));
        }
    }
}

#[test]
fn every_answer_is_what_its_schema_says() {
    let mut paths = vec!["fixtures/traces".to_owned()];
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for case in std::fs::read_dir(root.join("fixtures/golden")).unwrap() {
        let name = case.unwrap().file_name().into_string().unwrap();
        let folder = format!("fixtures/golden/{name}/trace");
        let is_folder = root.join(&folder).is_dir();
        paths.push(if is_folder {
            folder
        } else {
            format!("{folder}.json")
        });
    }
    let mut answers = 0;
    for (of, command) in [("report", "report"), ("attribution", "attribute")] {
        let schema = tracekit(&format!("generate schema {of}")).json(0);
        let words = schema.to_string();
        for unknown in [
            "allOf",
            "oneOf",
            "pattern",
            "prefixItems",
            "minimum",
            "not\"",
        ] {
            assert!(!words.contains(unknown), "the test does not know {unknown}");
        }
        for path in &paths {
            let run = tracekit(&format!("{command} {path} --format json"));
            if run.code == 2 {
                continue;
            }
            answers += 1;
            let mut found = Vec::new();
            faults(&schema, &schema, &run.json(run.code), "", &mut found);
            assert!(found.is_empty(), "{of} of {path}: {found:#?}");
        }
    }
    assert!(answers > 90, "only {answers}");
}
