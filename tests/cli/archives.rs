//! Archives and datasets that are damaged, or made to do harm: `tracekit batch` from outside.

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::Path;

use serde_json::{Value, json};

use crate::batch::{assert_same, batch, files, made, query, runs};
use crate::{Folder, command, finish, golden};

/// `printf '[…]' | xz` of a trace of one operator.
const XZ: &str = "fd377a585a000004e6d6b4460200210116000000742fe5a3e0004400395d002d9ec047037bc634f2410b4077\
     a4911242dd4de0b2323445c75c2022f250f5cdf09daa55f0d53171312b6bbc4f8e480d7b5cbf6acf12bcf400\
     00000000f935ea83493091020001554525a9fce11fb6f37d010000000004595a";

/// A tar with that trace as r/rank0.json, through xz -9.
const TAR_XZ: &str = "fd377a585a000004e6d6b446020021011c00000010cf58cce007ff00795d00390bca46543feb4cb8e1ec7dab\
     b06d29a09cc8f1b8e64d9a28fba0867dff40a26b377c8869f99143c0219bddc5a003f9f364e9b6a9ebb7a164\
     c0340f108ed0bb82f4dbad2cffdd1620a348e56dc02ec8b112caa0acf4a09d7959d5fcc7d8f7b507f868bda7\
     597ea99dca10fd8b5c672d4cf9a3cbc452027600000000002c5302418a547ad20001950180100000d66fe142\
     b1c467fb020000000004595a";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).unwrap());
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

fn tar_of(members: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, content) in members {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        if !kind.is_file() {
            header.set_link_name("/etc/passwd").unwrap();
        }
        // Set raw: the builder refuses the tricks that are tried here.
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn zip_of(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated);
    for (name, content) in members {
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// What `runs` says about inputs that failed: name behind the archive, and reason.
fn failures(dataset: &Path) -> Vec<(String, String)> {
    let rows = query(
        dataset,
        "SELECT input, error FROM runs WHERE status = 'failed' ORDER BY input",
    );
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| {
        let input = text(row, "input");
        let name = input
            .rsplit_once("!/")
            .map_or(input.as_str(), |parts| parts.1);
        (name.to_owned(), text(row, "error"))
    })
    .collect()
}

#[test]
fn tricks_in_archives_are_rows_and_lead_nowhere() {
    let trace = fs::read(golden("two-steps")).unwrap();
    let file = tar::EntryType::Regular;
    let nested = zip_of(&[("x.json", &trace)]);
    let tar = tar_of(&[
        ("../up.json", file, &trace),
        ("/tmp/abs.json", file, &trace),
        ("a/../../out.json", file, &trace),
        ("link.json", tar::EntryType::Symlink, b""),
        ("hard.json", tar::EntryType::Link, b""),
        ("inner.zip", file, &nested),
        ("good/rank0.json", file, &trace),
    ]);
    let zip = zip_of(&[("../up.json", &trace), ("good/rank0.json", &trace)]);
    for (name, content, refused) in [
        ("t.tar", tar.clone(), 6),
        ("t.tar.gz", gzip(&tar), 6),
        ("t.tar.zst", zstd::encode_all(tar.as_slice(), 1).unwrap(), 6),
        ("t.zip", zip, 1),
    ] {
        let place = Folder::new();
        let archive = place.write(&format!("in/{name}"), content);
        let dataset = place.path().join("dataset");
        let report = made(&archive, &dataset, "--format json").json(4);
        assert_eq!(report["done"], 1, "{name}");
        let failed = failures(&dataset);
        assert_eq!(failed.len(), refused, "{name}: {failed:?}");
        for (member, reason) in &failed {
            assert!(reason.ends_with("refused"), "{name}: {member}: {reason}");
        }
        // Nothing but the dataset came to be, and the same again does nothing.
        let entries = fs::read_dir(place.path()).unwrap().count();
        assert_eq!(entries, 2, "{name}");
        let again = made(&archive, &dataset, "--format json").json(4);
        assert_eq!(
            (&again["analysed"], &again["failed"]),
            (&json!(0), &json!(refused))
        );
    }
}

#[test]
fn bombs_are_refused_and_stop_no_other() {
    let place = Folder::new();
    let trace = fs::read(golden("two-steps")).unwrap();
    let spaces = vec![b' '; 96 << 20];
    let file = tar::EntryType::Regular;
    place.write(
        "in/bomb.zip",
        zip_of(&[("b.json", &spaces), ("c.json", &trace)]),
    );
    let tar = tar_of(&[("a.json", file, &trace), ("b.json", file, &spaces)]);
    place.write(
        "in/bomb.tar.zst",
        zstd::encode_all(tar.as_slice(), 3).unwrap(),
    );
    place.write("in/bomb.json.gz", gzip(&spaces));
    place.write("in/good/rank0.json", &trace);
    let dataset = place.path().join("dataset");
    let run = made(&place.path().join("in"), &dataset, "--memory-limit 256M");
    assert_eq!(run.code, 4, "{}", run.err);
    let done = query(&dataset, "SELECT COUNT(*) AS n FROM ranks");
    assert_eq!(done, json!([{"n": 3}]));
    let failed = failures(&dataset);
    for (name, reason) in &failed {
        let is_told = reason.contains("bomb") || reason.contains("memory-limit");
        assert!(is_told, "{name}: {reason}");
    }
    assert_eq!(failed.len(), 4, "{failed:?}");
}

#[test]
fn xz_is_read_alone_in_parts_and_around_a_tar() {
    let place = Folder::new();
    place.write("in/a/rank0.json.xz", bytes(XZ));
    place.write("in/b/rank0.json.xz", [bytes(XZ), bytes(XZ)].concat());
    place.write("in/c.tar.xz", bytes(TAR_XZ));
    place.write("in/cut.json.xz", &bytes(XZ)[..60]);
    let dataset = place.path().join("dataset");
    let report = made(&place.path().join("in"), &dataset, "--format json").json(4);
    // Two documents behind one another are no trace.
    assert_eq!((&report["done"], &report["failed"]), (&json!(2), &json!(2)));
    let runs = query(&dataset, "SELECT run, rank FROM ranks ORDER BY run");
    assert_eq!(
        runs,
        json!([{"run": "a", "rank": 0}, {"run": "c/r", "rank": 0}])
    );
}

/// What is done to a dataset, in words and in deed.
type Damage<'a> = (&'a str, Box<dyn Fn() + 'a>);

#[test]
fn what_a_dataset_has_lost_is_made_again() {
    let (archive, out) = (runs(), Folder::new());
    let (whole, dataset) = (out.path().join("whole"), out.path().join("dataset"));
    for place in [&whole, &dataset] {
        assert_eq!(made(archive.path(), place, "").code, 4);
    }
    let first = |table: &str| {
        let all = files(&dataset).into_keys();
        let mut of_table = all.filter(|path| path.starts_with(table));
        dataset.join(of_table.next().unwrap())
    };
    let inside = |name: &str| dataset.join(".tracekit").join(name);
    let damages: [Damage<'_>; 7] = [
        (
            "a file is cut",
            Box::new(|| fs::write(first("operators"), b"PAR1").unwrap()),
        ),
        (
            "a file is gone",
            Box::new(|| fs::remove_file(first("steps")).unwrap()),
        ),
        (
            "a table is gone",
            Box::new(|| fs::remove_dir_all(dataset.join("ranks")).unwrap()),
        ),
        (
            "the manifest is cut",
            Box::new(|| fs::write(dataset.join("manifest.json"), "{").unwrap()),
        ),
        (
            "the page is gone",
            Box::new(|| fs::remove_file(dataset.join("summary.html")).unwrap()),
        ),
        (
            "the journal is garbage",
            Box::new(|| fs::write(inside("journal"), [7; 999]).unwrap()),
        ),
        (
            "a record is damaged, and a table that was made of it",
            Box::new(|| {
                let mut records = fs::read(inside("records")).unwrap();
                let end = records.len();
                records[end / 2..].fill(0);
                fs::write(inside("records"), records).unwrap();
                fs::remove_dir_all(dataset.join("phases")).unwrap();
            }),
        ),
    ];
    for (what, damage) in &damages {
        damage();
        let run = made(archive.path(), &dataset, "");
        assert_eq!(run.code, 4, "{what}: {}", run.err);
        assert_same(&whole, &dataset);
    }
    // Nothing is said about what is not whole.
    fs::remove_dir_all(dataset.join("steps")).unwrap();
    let mut asked = command();
    asked
        .arg("query")
        .arg(&dataset)
        .arg("SELECT COUNT(*) FROM steps");
    assert!(
        finish(asked)
            .refused()
            .contains("the table steps has nothing about run")
    );
}

#[test]
fn pages_are_where_links_lead_and_as_old_as_the_tables() {
    let (archive, out) = (runs(), Folder::new());
    let dataset = out.path().join("dataset");
    assert_eq!(made(archive.path(), &dataset, "--reports --infer").code, 4);
    let links = || {
        let page = fs::read_to_string(dataset.join("summary.html")).unwrap();
        let links = page.split("<a href=\"./").skip(1);
        let links: Vec<String> = links
            .map(|rest| rest.split('"').next().unwrap().replace("%25", "%"))
            .collect();
        links
    };
    let found = links();
    assert!(found.len() >= 3, "{found:?}");
    for link in &found {
        let page = fs::read_to_string(dataset.join(link)).unwrap();
        assert!(
            page.contains("Time on ") && page.contains("Inputs that were read"),
            "{link}"
        );
    }
    // Without being asked again, and of runs that are still there alone.
    let fewer = archive.path().join("a");
    assert_eq!(made(&fewer, &dataset, "--prune --infer").code, 0);
    let page = fs::read_to_string(dataset.join("summary.html")).unwrap();
    assert!(page.contains("baseline") && !page.contains("job7"));
    assert_eq!(fs::read_dir(dataset.join("reports")).unwrap().count(), 2);
    assert_eq!(links().len(), 2);
}

#[test]
fn a_list_may_name_what_is_not_there() {
    let (archive, out) = (runs(), Folder::new());
    let good = archive.path().join("a/baseline/rank0.json");
    let lines = format!(
        "{}\n{}/gone.json\n",
        good.display(),
        archive.path().display()
    );
    let list = archive.write("list", lines);
    let dataset = out.path().join("dataset");
    let run = batch(&[Path::new("--list"), &list, Path::new("-o"), &dataset], "");
    assert_eq!(run.code, 4, "{}", run.err);
    let failed = failures(&dataset);
    assert!(failed[0].0.ends_with("gone.json") && failed[0].1.contains("no such file"));
    assert_eq!(
        query(&dataset, "SELECT COUNT(*) AS n FROM ranks"),
        json!([{"n": 1}])
    );
    assert!(
        made(&archive.path().join("none*"), &out.path().join("d"), "")
            .refused()
            .contains("nothing matches")
    );
}

#[test]
fn a_part_that_has_lost_inputs_is_not_merged() {
    let (archive, out) = (runs(), Folder::new());
    let parts = [1, 2].map(|part| {
        let place = out.path().join(format!("part{part}"));
        let run = made(archive.path(), &place, &format!("--shard {part}/2"));
        assert!(run.code == 0 || run.code == 4, "{}", run.err);
        place
    });
    let merge = |to: &Path| {
        let mut merge = command();
        merge
            .args(["batch", "merge"])
            .args(&parts)
            .arg("-o")
            .arg(to);
        finish(merge)
    };
    assert!(merge(&parts[0]).refused().contains("part and the whole"));
    fs::write(parts[0].join(".tracekit/journal"), "").unwrap();
    assert!(
        merge(&out.path().join("merged"))
            .refused()
            .contains("has lost")
    );
    fs::remove_dir_all(parts[1].join(".tracekit")).unwrap();
    assert!(
        merge(&out.path().join("merged"))
            .refused()
            .contains("no dataset")
    );
}

#[cfg(unix)]
#[test]
fn few_files_are_open_at_a_time() {
    let (archive, out) = (Folder::new(), Folder::new());
    for number in 0..60 {
        archive.copy(&format!("run{number}/rank0.json"), "two-steps");
    }
    let script = "ulimit -n 48 && exec \"$0\" batch \"$1\" -o \"$2\" -j 4 -q";
    let mut limited = std::process::Command::new("sh");
    limited
        .arg("-c")
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_tracekit"));
    limited.arg(archive.path()).arg(out.path().join("dataset"));
    let run = finish(limited);
    assert_eq!(run.code, 0, "{}", run.err);
}
