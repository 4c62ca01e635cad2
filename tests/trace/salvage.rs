//! Salvage of damaged traces: what is kept, what is said to be lost, and that it ends soon.

use serde_json::Value;

use crate::rewrite::{assert_json, salvaged};
use crate::support::gzip;

#[test]
fn salvage_keeps_whole_events_and_says_what_is_lost() {
    let event = |number: u64| {
        format!(r#"{{"ph":"X","cat":"cpu_op","name":"op {number}","ts":{number},"dur":1}}"#)
    };
    let names = |text: &str| {
        let (done, out) = salvaged(text.as_bytes()).expect(text);
        assert_json(&out);
        let document: Value = serde_json::from_slice(&out).unwrap();
        let events = document.get("traceEvents").unwrap_or(&document);
        let names: Vec<String> = events
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["name"].as_str().unwrap_or("?").replace("op ", ""))
            .collect();
        (names.join(" "), done.lost.ranges, document)
    };
    let (one, two, three) = (event(1), event(2), event(3));
    // A quote that is not escaped.
    let broken = r#"{"ph":"X","name":"the "op"","ts":2,"dur":1}"#;
    let text = format!("{{\"traceEvents\":[{one},\n{broken},\n{three}],\"traceName\":\"x\"}}");
    let (kept, lost, document) = names(&text);
    let start = text.find(broken).unwrap() as u64;
    assert_eq!(kept, "1 3");
    assert_eq!(lost, [(start, text.find(&three).unwrap() as u64)]);
    assert_eq!(document["traceName"], "x");
    let note = &document["tracekit_repair"];
    assert_eq!(note["lost"], serde_json::json!(lost));
    assert_eq!(note["lost_bytes"], lost[0].1 - lost[0].0);

    // A bracket that is missing: the reader swallows the events behind it.
    let torn = r#"{"ph":"X","name":"torn","args":{"Input Dims":[[1,"#;
    let many: Vec<String> = (10..40).map(event).collect();
    let text = format!(
        "{{\"traceEvents\":[{one},{torn}{two},{}],\"traceName\":\"x\"}}",
        many.join(",")
    );
    let (kept, lost, document) = names(&text);
    assert_eq!(kept.split(' ').count(), 31, "{kept}");
    assert_eq!((lost.len(), &document["traceName"]), (1, &"x".into()));

    // The last event, the one before it, none, and what is no array form.
    for (text, want) in [
        (
            format!("{{\"traceEvents\":[{one},{{\"ph\":}}],\"traceName\":\"x\"}}"),
            "1",
        ),
        (format!("{{\"traceEvents\":[{one},{two}{three}]}}"), "1 2 3"),
        (format!("{{\"traceEvents\":[{one},{two}] }} {three}"), "1 2"),
        (format!("{{\"traceEvents\":[{one},{two}"), "1 2"),
        (format!("{{\"traceEvents\":[{one},{}", &two[..20]), "1"),
        (format!("{{\"a\": tru, \"traceEvents\":[{one}]}}"), "1"),
        (
            format!("{{\"traceEvents\":[{one}],\"a\": tru, \"b\": 1}}"),
            "1",
        ),
        (
            format!("{{\"traceEvents\":[{one},{two}]\n{three},\n{one}]}}"),
            "1 2 1",
        ),
        (
            format!(
                "{{\"traceEvents\":[{broken},{{\"a\":[{{\"name\":1}},{{\"name\":2}}]}},{three}]}}"
            ),
            "3",
        ),
        ("{\"traceEvents\":[x".to_owned(), ""),
    ] {
        let (kept, _, _) = names(&text);
        assert_eq!(kept, want, "{text}");
    }
    let (kept, lost, document) = names(&format!("[{one},{broken},{three}]"));
    assert_eq!(kept, "1 3 tracekit_repair");
    assert_eq!(document[2]["args"]["lost"], serde_json::json!(lost));
}

#[test]
fn salvage_of_hostile_text_takes_linear_time() {
    // Each would take hours, were every place tried to the end of the file.
    let opening = "},{\"ph\":".repeat(200_000);
    let quotes = "},{\"ph\":\"".repeat(200_000);
    let brackets = "},{\"ph\":[".repeat(200_000);
    let deep = format!("{}{}", "[".repeat(100_000), "},{\"ph\":[[".repeat(100_000));
    // What looks like the end of the array, with and without what makes it one; arrays one behind the
    // other, with no event behind the first; lists inside of lists; and members inside of members.
    let keys = "}],\"traceName\"".repeat(200_000);
    let ends = "}],\"traceName\":".repeat(200_000);
    let arrays = "}],\"traceName\":1,\"traceEvents\":[{\"ph\":\"X\"},x".repeat(50_000);
    let nested = "},{\"a\":[{\"b\":1},{\"ph\":\"X\"},".repeat(50_000);
    let lists = "},{\"ph\":\"X\"}],[1".repeat(100_000);
    let members = format!(
        "}}],{}",
        "\"traceEvents\":[],\"traceEvents\":1,\"k\":{".repeat(50_000)
    );
    for body in [
        opening, quotes, brackets, deep, keys, ends, arrays, nested, lists, members,
    ] {
        let text = format!("{{\"traceEvents\":[{{\"ph\":x{body}");
        let compressed = salvaged(&gzip(text.as_bytes()));
        match salvaged(text.as_bytes()) {
            Ok((done, out)) => {
                assert_json(&out);
                let (same, compressed) = compressed.expect("the same");
                assert_eq!((done.lost, out), (same.lost, compressed));
            }
            Err(error) => assert_eq!(error.reason(), compressed.unwrap_err().reason()),
        }
    }
}

#[test]
fn salvage_invents_no_event_out_of_a_list_inside_a_broken_one() {
    let event = |number: u64| {
        format!(r#"{{"ph":"X","cat":"kernel","name":"op {number}","ts":{number},"dur":1}}"#)
    };
    let (one, two, three) = (event(1), event(2), event(3));
    let kept = |text: &str| {
        let (_, out) = salvaged(text.as_bytes()).expect(text);
        let document: Value = serde_json::from_slice(&out).unwrap();
        let events = document.get("traceEvents").unwrap_or(&document);
        let names = events.as_array().unwrap().iter();
        let names: Vec<String> = names
            .map(|event| event["name"].as_str().unwrap_or("?").replace("op ", ""))
            .filter(|name| name != "tracekit_repair")
            .collect();
        names.join(" ")
    };
    let inner = r#"{"ph":"X","cat":"kernel","name":"inner","ts":5,"dur":1000}"#;
    let in_array = |events: &str| format!("[{events}]");
    let in_object = |events: &str| format!("{{\"traceEvents\":[{events}],\"traceName\":\"x\"}}");
    for list in [
        format!(r#"[{{"a":1}},{inner}]"#),
        format!(r#"[{{"a":1}},{inner},{inner},{{"b":[1]}},5]"#),
        format!(r#"[[{{"a":1}},{inner}],[{inner}]]"#),
        format!(r#"[{{"a":1}},{inner}],"traceName":"y""#),
        format!(r#"[{{"a":1}},{inner}],"other":{{"b":[1,2]}}"#),
    ] {
        let broken = format!(r#"{{"ph":"X","name":"the "op"","args":{{"list":{list}}},"x":1}}"#);
        for whole in [in_array as fn(&str) -> String, in_object] {
            for (events, want) in [
                (format!("{one},{broken},{two},{three}"), "1 2 3"),
                (format!("{one},{two},{broken}"), "1 2"),
                (format!("{broken},\n{broken} , {three}"), "3"),
            ] {
                let text = whole(&events);
                assert_eq!(kept(&text), want, "{text}");
            }
        }
    }
    // Behind damage, what ends the array in an odd way or not at all loses no whole event.
    let broken = r#"{"ph":"X","name":"the "op""}"#;
    for end in [
        "",
        ",",
        "]",
        "],",
        "],\"trac",
        "],\"traceName\"",
        "],\"traceName\":",
        "],\"own\":\"x\"}",
        "],\"own\":\"x",
        "]}",
        "]}\0\0",
        "]}{\"traceEvents\":[]}",
        "]]}",
        "] nothing",
    ] {
        let text = format!("{{\"traceEvents\":[{one},{broken},{two},{three}{end}");
        assert_eq!(kept(&text), "1 2 3", "{text}");
    }
    for end in ["", ",", "]", "]]", "]\0", "],[]", "]}", "]\n\n"] {
        let text = format!("[{one},{broken},{two},{three}{end}");
        assert_eq!(kept(&text), "1 2 3", "{text}");
    }
}
