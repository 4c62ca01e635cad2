//! The laws that every attribution obeys, whatever the trace: sums that add up, to the nanosecond.

use serde_json::{Map, Value};

const BUCKETS: [&str; 7] = [
    "forward",
    "backward",
    "recompute",
    "optimizer",
    "other",
    "pre_window",
    "unlinked",
];
/// Columns of a cell that add up over the buckets.
const ADDITIVE: [&str; 6] = [
    "sum_ns",
    "events",
    "compute_ns",
    "communication_ns",
    "memcpy_ns",
    "memset_ns",
];
/// The class columns of a cell.
const CLASSES: [&str; 4] = ["compute_ns", "communication_ns", "memcpy_ns", "memset_ns"];

/// Every broken law in `answer`, by path; none in a correct one.
pub(crate) fn broken(answer: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk("", answer, &mut found);
    levels(answer, &mut found);
    found
}

fn int(value: &Value) -> i64 {
    value
        .as_i64()
        .unwrap_or_else(|| panic!("no integer: {value}"))
}

/// A value of a table; a level without device work has an empty one.
fn int_of(table: &Value, row: &str, column: &str) -> i64 {
    if table.as_object().is_some_and(serde_json::Map::is_empty) {
        return 0;
    }
    int(&table[row][column])
}

fn check(found: &mut Vec<String>, law: impl FnOnce() -> String, left: i64, right: i64) {
    if left != right {
        found.push(format!("{}: {left} is not {right}", law()));
    }
}

fn walk(at: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("pre_window") && fields.contains_key("total") {
                table(at, fields, found);
            }
            if fields.contains_key("window_ns") {
                timeline(at, fields, found);
            }
            for (key, value) in fields {
                walk(&format!("{at}/{key}"), value, found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                walk(&format!("{at}/{index}"), value, found);
            }
        }
        _ => {}
    }
}

fn table(at: &str, table: &Map<String, Value>, found: &mut Vec<String>) {
    let total = &table["total"];
    for column in ADDITIVE {
        let sum = BUCKETS
            .iter()
            .map(|bucket| int(&table[*bucket][column]))
            .sum();
        check(
            found,
            || format!("{at}: buckets of {column} add up"),
            sum,
            int(&total[column]),
        );
    }
    let by = table["other"]["by"].as_object().unwrap();
    for column in ADDITIVE {
        let sum = by.values().map(|cell| int(&cell[column])).sum();
        let other = int(&table["other"][column]);
        check(
            found,
            || format!("{at}: kinds of other add up in {column}"),
            sum,
            other,
        );
    }
    let mut longest = 0;
    for bucket in BUCKETS.iter().copied().chain(["total"]) {
        let cell = &table[bucket];
        let classes = CLASSES.iter().map(|class| int(&cell[*class])).sum();
        check(
            found,
            || format!("{at}/{bucket}: classes add up"),
            classes,
            int(&cell["sum_ns"]),
        );
        let (busy, sum) = (int(&cell["busy_ns"]), int(&cell["sum_ns"]));
        if !(0..=sum).contains(&busy) {
            found.push(format!("{at}/{bucket}: busy {busy} is outside 0..={sum}"));
        }
        if bucket != "total" {
            longest = longest.max(busy);
        } else if busy < longest {
            found.push(format!("{at}: a bucket is busier than the total"));
        }
        if int(&cell["launches"]) > int(&cell["events"]) {
            found.push(format!("{at}/{bucket}: more launches than events"));
        }
    }
}

fn timeline(at: &str, line: &Map<String, Value>, found: &mut Vec<String>) {
    let get = |key: &str| int(&line[key]);
    let window = get("window_ns");
    let parts = get("compute_ns")
        + get("exposed_communication_ns")
        + get("exposed_memcpy_ns")
        + get("exposed_memset_ns")
        + get("idle_ns");
    check(
        found,
        || format!("{at}: classes and idle fill the window"),
        parts,
        window,
    );
    let phases: i64 = line["phases"].as_object().unwrap().values().map(int).sum();
    check(
        found,
        || format!("{at}: phases and idle fill the window"),
        phases + get("idle_ns"),
        window,
    );
    check(
        found,
        || format!("{at}: the window has its ends"),
        get("end_ns") - get("start_ns"),
        window,
    );
    let communication = get("overlap_ns") + get("exposed_communication_ns");
    check(
        found,
        || format!("{at}: communication is under compute or exposed"),
        communication,
        get("communication_ns"),
    );
    for (key, value) in line
        .iter()
        .filter(|(key, _)| *key != "start_ns" && *key != "end_ns")
    {
        if value.as_i64().is_some_and(|ns| ns < 0) {
            found.push(format!("{at}/{key}: negative"));
        }
    }
}

/// Sums over the levels: steps, devices, ranks, runs, everything.
fn levels(answer: &Value, found: &mut Vec<String>) {
    let ranks = answer["ranks"].as_array().unwrap();
    for (index, rank) in ranks.iter().enumerate() {
        let devices = rank["devices"].as_array().unwrap();
        let tables: Vec<&Value> = devices.iter().map(|device| &device["totals"]).collect();
        adds_up(&format!("/ranks/{index}"), &tables, &rank["totals"], found);
        for (number, device) in devices.iter().enumerate() {
            let at = format!("/ranks/{index}/devices/{number}");
            let line = &device["timeline"];
            let busy = int(&line["window_ns"]) - int(&line["idle_ns"]);
            check(
                found,
                || format!("{at}: busy is what is not idle"),
                busy,
                int(&device["totals"]["total"]["busy_ns"]),
            );
            for bucket in BUCKETS.iter().copied().chain(["total"]) {
                for column in ADDITIVE {
                    let steps: i64 = device["steps"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|step| int(&step["totals"][bucket][column]))
                        .sum();
                    if steps > int(&device["totals"][bucket][column]) {
                        found.push(format!(
                            "{at}: the steps have more {bucket} {column} than the device"
                        ));
                    }
                }
            }
        }
        for (number, step) in rank["host"]["steps"].as_array().unwrap().iter().enumerate() {
            let phases: i64 = step["phases"]
                .as_object()
                .unwrap()
                .values()
                .map(|phase| int(&phase["wall_ns"]))
                .sum();
            let at = format!("/ranks/{index}/host/steps/{number}");
            let whole = phases + int(&step["unattributed_ns"]);
            check(
                found,
                || format!("{at}: phases fill the step"),
                whole,
                int(&step["wall_ns"]),
            );
        }
        coverage(&format!("/ranks/{index}"), rank, found);
    }
    let runs = answer["runs"].as_array().unwrap();
    for (index, run) in runs.iter().enumerate() {
        let tables: Vec<&Value> = run["ranks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|rank| &ranks[usize::try_from(int(rank)).unwrap()]["totals"])
            .collect();
        adds_up(&format!("/runs/{index}"), &tables, &run["totals"], found);
        coverage(&format!("/runs/{index}"), run, found);
        host_phases(&format!("/runs/{index}"), run, ranks, found);
    }
    let tables: Vec<&Value> = runs.iter().map(|run| &run["totals"]).collect();
    adds_up("", &tables, &answer["totals"], found);
    coverage("", answer, found);
}

fn adds_up(at: &str, parts: &[&Value], whole: &Value, found: &mut Vec<String>) {
    for bucket in BUCKETS.iter().copied().chain(["total"]) {
        for column in ADDITIVE.iter().copied().chain(["busy_ns", "launches"]) {
            let sum = parts.iter().map(|part| int_of(part, bucket, column)).sum();
            check(
                found,
                || format!("{at}: the parts of {bucket} {column} add up"),
                sum,
                int_of(whole, bucket, column),
            );
        }
    }
}

/// Device events are all accounted for, and recompute is what the table says.
fn coverage(at: &str, level: &Value, found: &mut Vec<String>) {
    let (coverage, totals) = (&level["coverage"], &level["totals"]);
    let events = int(&coverage["device_events"]);
    check(
        found,
        || format!("{at}: coverage counts all device events"),
        events,
        int_of(totals, "total", "events"),
    );
    let linked: i64 = coverage["linked_by"]
        .as_object()
        .unwrap()
        .values()
        .map(int)
        .sum();
    let placed = linked + int(&coverage["pre_window"]) + int(&coverage["unlinked"]);
    check(
        found,
        || format!("{at}: every device event is linked or not"),
        placed,
        events,
    );
    for bucket in ["pre_window", "unlinked"] {
        check(
            found,
            || format!("{at}: coverage has the {bucket} events"),
            int(&coverage[bucket]),
            int_of(totals, bucket, "events"),
        );
    }
    let recompute = &level["recompute"];
    check(
        found,
        || format!("{at}: recompute is in the table"),
        int(&recompute["device_sum_ns"]),
        int_of(totals, "recompute", "sum_ns"),
    );
    for column in ["regions", "ops", "device_sum_ns"] {
        let kinds = recompute["by_evidence"].as_object().unwrap();
        let sum = kinds.values().map(|share| int(&share[column])).sum();
        check(
            found,
            || format!("{at}: kinds of evidence add up in {column}"),
            sum,
            int(&recompute[column]),
        );
    }
}

/// A run has the host time of its ranks.
fn host_phases(at: &str, run: &Value, ranks: &[Value], found: &mut Vec<String>) {
    for phase in ["forward", "backward", "recompute", "optimizer", "other"] {
        for column in ["self_ns", "wall_ns"] {
            let ns = |phases: &Value| phases[phase][column].as_i64();
            let parts = run["ranks"].as_array().unwrap().iter();
            let sum: Vec<i64> = parts
                .filter_map(|rank| {
                    ns(&ranks[usize::try_from(int(rank)).unwrap()]["host"]["phases"])
                })
                .collect();
            let whole = ns(&run["host_phases"]);
            let law = || format!("{at}: the ranks' {phase} {column} add up");
            check(found, law, sum.iter().sum(), whole.unwrap_or(0));
            if sum.is_empty() != whole.is_none() {
                found.push(format!(
                    "{at}: {phase} {column} is measured in one level only"
                ));
            }
        }
    }
    for (bucket, kernels) in run["top_kernels"].as_object().unwrap() {
        let sums: Vec<i64> = kernels
            .as_array()
            .unwrap()
            .iter()
            .map(|kernel| int(&kernel["sum_ns"]))
            .collect();
        if sums.iter().sum::<i64>() > int(&run["totals"][bucket]["sum_ns"]) {
            found.push(format!(
                "{at}: the top kernels of {bucket} take more time than it has"
            ));
        }
        if !sums.is_sorted_by(|a, b| a >= b) {
            found.push(format!(
                "{at}: the top kernels of {bucket} are not in order"
            ));
        }
    }
}
