//! The queries of evidence, asked again.

use std::collections::BTreeSet;

use tracekit::attribute::Request;
use tracekit::frame::{query, read_tables, tables_in};
use tracekit::infer::{Inferences, Number};

/// What each query answers is the number that it is shown with. Numbers of several runs are not those of all.
pub(super) fn check(request: &Request<'_>, inferences: &Inferences) {
    let [run] = inferences.runs.as_slice() else {
        return;
    };
    let evidence = || run.inferences.iter().flat_map(|one| &one.evidence);
    let names: BTreeSet<&str> = evidence().flat_map(|it| tables_in(&it.query)).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let tables = read_tables(request, &names, &|_| {}).unwrap();
    let mut asked = BTreeSet::new();
    for evidence in evidence() {
        let sql = evidence.query.as_str();
        if !asked.insert(sql) {
            continue;
        }
        let answer = query(&tables, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        // Other queries give the rows that the number is computed from.
        let gives_number = ["COUNT(", "SUM(", "COALESCE(", "MAX("]
            .iter()
            .any(|start| sql.strip_prefix("SELECT ").unwrap().starts_with(start));
        if gives_number && (answer.height(), answer.width()) == (1, 1) {
            let found = answer.columns()[0].get(0).unwrap().extract::<i64>();
            assert_eq!(found.map(Number::Int), evidence.value, "{sql}");
        }
    }
}
