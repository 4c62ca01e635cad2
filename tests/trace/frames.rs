//! Data frames: they have the columns they promise, say the same as the attribution, and survive files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tracekit::attribute::{AttributeOptions, Attribution, Request};
use tracekit::frame::{
    DataFrame, Dtype, TABLES, query, read_tables, tables_in, write_arrow, write_parquet,
};
use tracekit::ingest::IngestOptions;

use crate::support::{corpus, package};

fn request<'a>(paths: &'a [PathBuf], options: &'a AttributeOptions) -> Request<'a> {
    Request {
        paths,
        ingest: IngestOptions::default(),
        options,
        ranks: Vec::new(),
        expect: Vec::new(),
        hash_inputs: false,
        salvage: None,
    }
}

fn tables(path: &Path, names: &[&str]) -> tracekit::frame::Tables {
    let paths = [path.to_owned()];
    read_tables(
        &request(&paths, &AttributeOptions::default()),
        names,
        &|_| {},
    )
    .unwrap_or_else(|error| panic!("{error}"))
}

fn golden(case: &str) -> PathBuf {
    let folder = package("fixtures/golden").join(case);
    let trace = folder.join("trace");
    if trace.is_dir() {
        trace
    } else {
        folder.join("trace.json")
    }
}

/// The one integer that `sql` gives.
fn number(tables: &tracekit::frame::Tables, sql: &str) -> i64 {
    let frame = query(tables, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!((frame.height(), frame.width()), (1, 1), "{sql}");
    frame.columns()[0]
        .get(0)
        .unwrap()
        .extract::<i64>()
        .unwrap_or(0)
}

/// Every table has exactly the columns of its schema.
fn check_schema(frames: &BTreeMap<&'static str, DataFrame>) {
    for table in TABLES {
        let frame = &frames[table.name];
        let found: Vec<(String, String)> = frame
            .columns()
            .iter()
            .map(|column| (column.name().to_string(), format!("{:?}", column.dtype())))
            .collect();
        let promised: Vec<(String, String)> = table
            .columns
            .iter()
            .map(|column| (column.name.to_owned(), column.dtype.as_str().to_owned()))
            .collect();
        assert_eq!(found, promised, "{}", table.name);
    }
}

/// The numbers of the frames are those of the attribution.
fn check_sums(path: &Path) {
    let tables = tables(path, &["events", "device_work", "attribution", "health"]);
    let attribution: &Attribution = &tables.attribution;
    let events: u64 = attribution.inputs.iter().map(|input| input.events).sum();
    assert_eq!(
        number(&tables, "SELECT COUNT(*) FROM events"),
        i64::try_from(events).unwrap()
    );
    let of_work = "SELECT SUM(dur_ns) FROM device_work";
    assert_eq!(
        number(&tables, of_work),
        attribution.totals.total.sum_ns.0,
        "{}",
        path.display()
    );
    for bucket in tracekit::attribute::Bucket::ALL {
        let name = bucket.as_str();
        let expected = attribution.totals.bucket(bucket).sum_ns.0;
        let work = format!("SELECT SUM(dur_ns) FROM device_work WHERE phase = '{name}'");
        assert_eq!(
            number(&tables, &work),
            expected,
            "{name} {}",
            path.display()
        );
        let rows = format!(
            "SELECT SUM(sum_ns) FROM attribution WHERE step = 'all' AND device IS NOT NULL AND bucket = '{name}'"
        );
        assert_eq!(
            number(&tables, &rows),
            expected,
            "{name} {}",
            path.display()
        );
    }
    let findings = i64::try_from(attribution.health.len()).unwrap();
    assert_eq!(number(&tables, "SELECT COUNT(*) FROM health"), findings);
}

#[test]
fn frames_have_the_columns_they_promise() {
    for case in ["two-ranks", "checkpoint-reentrant", "odd-events"] {
        check_schema(&tables(&golden(case), &[]).frames);
    }
    check_schema(&tables(&package("fixtures/traces"), &[]).frames);
}

#[test]
fn frames_say_what_the_attribution_says() {
    for case in crate::support::folders_in(&package("fixtures/golden")) {
        check_sums(&golden(&case.file_name().unwrap().to_string_lossy()));
    }
    let Some(corpus) = corpus::folder() else {
        return;
    };
    for file in corpus::traces(&corpus) {
        let paths = [file.clone()];
        let options = AttributeOptions::default();
        if tracekit::attribute::attribute_paths(&request(&paths, &options), &|_| {}).is_ok() {
            check_sums(&file);
        }
    }
}

#[test]
fn files_hold_what_the_frames_hold() {
    use polars_io::SerReader as _;
    let tables = tables(&golden("two-ranks"), &[]);
    for (name, frame) in &tables.frames {
        let (mut parquet, mut arrow) = (Vec::new(), Vec::new());
        write_parquet(&mut frame.clone(), &mut parquet).unwrap();
        write_arrow(&mut frame.clone(), &mut arrow).unwrap();
        let read =
            polars_io::parquet::read::ParquetReader::new(std::io::Cursor::new(parquet)).finish();
        assert!(read.unwrap().equals_missing(frame), "{name}");
        let read = polars_io::ipc::IpcReader::new(std::io::Cursor::new(arrow)).finish();
        assert!(read.unwrap().equals_missing(frame), "{name}");
    }
}

#[test]
fn tables_do_not_depend_on_the_order_of_paths() {
    let folder = golden("two-ranks");
    let mut files: Vec<PathBuf> = crate::support::files_under(&folder);
    let options = AttributeOptions::default();
    let one = read_tables(&request(&files, &options), &[], &|_| {}).unwrap();
    files.reverse();
    let other = read_tables(&request(&files, &options), &[], &|_| {}).unwrap();
    for (name, frame) in &one.frames {
        assert!(frame.equals_missing(&other.frames[name]), "{name}");
    }
}

#[test]
fn only_the_tables_that_a_query_names_are_made() {
    assert_eq!(
        tables_in("select * from \"Device_Work\" d join EVENTS"),
        ["events", "device_work"]
    );
    assert_eq!(tables_in("select 'eventsy'"), Vec::<&str>::new());
    let tables = tables(&golden("two-ranks"), &["health"]);
    assert_eq!(
        tables.frames.keys().copied().collect::<Vec<_>>(),
        ["health"]
    );
}

#[test]
fn queries_that_cannot_be_answered_say_why() {
    let tables = tables(&golden("two-ranks"), &["device_work"]);
    for (sql, reason) in [
        ("SELECT nothing FROM device_work", "nothing"),
        ("SELECT * FROM other", "other"),
        ("SELEC * FROM device_work", "SELEC"),
        ("", ""),
        ("SELECT SUM(dur_ns FROM device_work", ""),
    ] {
        let error = query(&tables, sql)
            .map(|frame| frame.height())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(reason) && !error.contains('\n'),
            "{sql}: {error}"
        );
    }
}

#[test]
fn schemas_are_well_formed() {
    for table in TABLES {
        let mut names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        for column in table.columns {
            let is_time = column.name.ends_with("_ns");
            assert!(
                !is_time || column.dtype == Dtype::Int,
                "{}.{}",
                table.name,
                column.name
            );
            assert!(!column.about.is_empty());
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), table.columns.len(), "{}", table.name);
    }
}
