//! Gates and evidence: every vector of the contract, and the chain as a user runs it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bottleneck;
mod budget;
mod chain;
mod closure;
mod commands;
mod decision;
mod hostile;
mod measured;
mod program;
mod records;
mod rules;
mod statistics;
mod vectors;

use std::path::PathBuf;

use tracekit::gate::Json;

/// The folder of the fixtures.
fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/gate")
}

/// A fixture that is an object.
fn fixture(name: &str) -> Json {
    Json::read_object(&fixtures().join(name)).unwrap()
}

/// A fixture that may be a list.
fn list(name: &str) -> Vec<Json> {
    let text = std::fs::read_to_string(fixtures().join(name)).unwrap();
    Json::parse(&text).unwrap().items().to_vec()
}
