//! What profiles and phase memory say about hypotheses: every finding of every category, and the traces of a CPU.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tracekit::evidence::attribute_strategies;
use tracekit::gate::{Assessment, Json, ProfileReport, infer_bottleneck_assessments};

use super::list;

#[test]
fn every_finding_of_every_category() {
    let mut seen = BTreeSet::new();
    let cases = list("bottleneck.json");
    assert_eq!(cases.len(), 7);
    for case in &cases {
        let about = case.at(&["about"]).as_str().unwrap();
        let profile = ProfileReport::read(case.at(&["profile"])).unwrap();
        let phase = Some(case.at(&["phase"])).filter(|phase| !phase.is_null());
        let phase = phase.map(|phase| (phase, "phase.json"));
        let found = infer_bottleneck_assessments(&profile, "profile.json", phase);
        let wanted = case.at(&["expect"]).items();
        assert_eq!((found.len(), wanted.len()), (5, 5), "{about}");
        for (assessment, wanted) in found.iter().zip(wanted) {
            let record = assessment.to_json();
            for key in ["id", "category", "status", "observations"] {
                assert_eq!(record.at(&[key]), wanted.at(&[key]), "{about}: {key}");
            }
            let kinds: Vec<Json> = record
                .at(&["evidence"])
                .items()
                .iter()
                .map(|one| one.at(&["kind"]).clone())
                .collect();
            assert_eq!(kinds, wanted.at(&["evidence"]).items(), "{about}");
            seen.insert((assessment.category, assessment.finding.as_str()));
        }
    }
    // A computation or a peak is always there to be measured, so only communication can be without meaning.
    let wanted = [
        ("communication", "insufficient_evidence"),
        ("communication", "not_applicable"),
        ("communication", "refuted"),
        ("communication", "supported"),
        ("compute", "insufficient_evidence"),
        ("compute", "refuted"),
        ("compute", "supported"),
        ("memory", "insufficient_evidence"),
        ("memory", "refuted"),
        ("memory", "supported"),
    ];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), wanted);
}

#[test]
fn what_only_a_device_shows_is_not_zero_on_a_cpu() {
    let traces = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces");
    let strategies = ["baseline", "checkpoint"].map(str::to_owned);
    let mut record = Json::object();
    record.set(
        "candidates",
        strategies
            .iter()
            .map(|name| Json::parse(&format!("{{\"name\":\"{name}\"}}")).unwrap())
            .collect::<Vec<_>>(),
    );
    record.set(
        "attribution",
        attribute_strategies(&traces, &strategies).unwrap(),
    );
    let profile = ProfileReport::read(&record).unwrap();
    let found = infer_bottleneck_assessments(&profile, "profile.json", None);
    let of = |id: &str| -> Assessment {
        let one = found.iter().find(|one| one.id == id);
        one.unwrap().clone()
    };
    let recompute = of("recompute_overhead");
    assert_eq!(recompute.finding.as_str(), "supported");
    assert_eq!(recompute.observations.at(&["place"]).as_str(), Some("host"));
    for id in ["launch_or_sync_wait", "communication"] {
        let one = of(id);
        assert_eq!(one.finding.as_str(), "insufficient_evidence", "{id}");
        assert!(one.evidence.is_empty(), "{id}");
        let mut numbers = 0;
        let ratios = one.observations.fields();
        for (key, value) in ratios.filter(|(key, _)| key.ends_with("_ratio")) {
            assert!(value.is_null(), "{key}");
            numbers += 1;
        }
        assert_eq!(numbers, 2);
    }
}
