use std::io::{Cursor, Write as _};

use super::*;
use crate::ingest::IngestOptions;

const BOUNDS: Bounds = Bounds { member: 1 << 30 };

/// A tar archive of files with these names and contents.
fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = ::tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = ::tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        // Set raw: the builder would refuse the tricks that are tested here.
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ::zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = ::zip::write::SimpleFileOptions::default()
        .compression_method(::zip::CompressionMethod::Deflated);
    for (name, content) in files {
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn archive(bytes: &[u8], form: Form, bounds: Bounds) -> Result<Archive> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive");
    std::fs::write(&path, bytes).unwrap();
    let source = Source::open(&path, &IngestOptions::default()).unwrap();
    Archive::open(Arc::new(source), form, bounds)
}

/// Every entry with its content, in either way to read.
fn all(bytes: &[u8], form: Form, bounds: Bounds) -> Result<Vec<(Entry, Option<Vec<u8>>)>> {
    let archive = archive(bytes, form, bounds)?;
    let mut found = Vec::new();
    if form.is_listed() {
        for entry in archive.list()? {
            let content = match &entry {
                Entry::Member(member) => Some(archive.read(member)?.into_owned()),
                _ => None,
            };
            found.push((entry, content));
        }
    } else {
        archive.walk(&mut |entry, reader| {
            let content = match &entry {
                Entry::Member(member) => Some(read_member(reader, member.size).unwrap()),
                _ => None,
            };
            found.push((entry, content));
            ControlFlow::Continue(())
        })?;
    }
    Ok(found)
}

fn contents(bytes: &[u8], form: Form) -> Vec<(String, Vec<u8>)> {
    let found = all(bytes, form, BOUNDS).unwrap();
    let members = found
        .into_iter()
        .filter_map(|(entry, content)| match entry {
            Entry::Member(member) => Some((member.name, content?)),
            _ => None,
        });
    members.collect()
}

const FILES: [(&str, &[u8]); 3] = [
    ("run/rank0.json", b"[0]"),
    ("run/notes.txt", b"no trace"),
    ("./run/rank1.json", b"[1, 2, 3]"),
];

#[test]
fn members_are_the_same_in_every_form() {
    let expected = vec![
        ("run/rank0.json".to_owned(), b"[0]".to_vec()),
        ("run/rank1.json".to_owned(), b"[1, 2, 3]".to_vec()),
    ];
    let tar = tar_of(&FILES);
    assert_eq!(contents(&tar, Form::Tar), expected);
    assert_eq!(contents(&gzip(&tar), Form::TarGzip), expected);
    let zstd = zstd::encode_all(tar.as_slice(), 1).unwrap();
    assert_eq!(contents(&zstd, Form::TarZstd), expected);
    assert_eq!(contents(&zip_of(&FILES), Form::Zip), expected);
}

#[test]
fn xz_is_read_as_a_file_and_around_a_tar() {
    // printf '[1, 2]' | xz, and a tar of nothing through xz: made once with xz 5.4.
    let file = [
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46,
    ];
    assert!(is_xz(&file));
    assert!(unpacked(&file, 1 << 20).is_err(), "it ends in the header");
    assert!(!is_xz(b"[1, 2]"));
}

#[test]
fn names_that_lead_out_of_an_archive_are_refused() {
    for name in ["../up.json", "a/../../up.json", "/etc/x.json", "c:/x.json"] {
        for (bytes, form) in [
            (tar_of(&[(name, b"[]")]), Form::Tar),
            (gzip(&tar_of(&[(name, b"[]")])), Form::TarGzip),
            (zip_of(&[(name, b"[]")]), Form::Zip),
        ] {
            let found = all(&bytes, form, BOUNDS).unwrap();
            assert!(
                matches!(&found[0].0, Entry::Refused { reason, .. } if reason.ends_with("refused")),
                "{name} in {form:?}: {found:?}"
            );
        }
    }
}

#[test]
fn links_and_sparse_files_are_not_read() {
    let mut builder = ::tar::Builder::new(Vec::new());
    for (kind, name) in [
        (::tar::EntryType::Symlink, "a.json"),
        (::tar::EntryType::Link, "b.json"),
        (::tar::EntryType::GNUSparse, "c.json"),
        (::tar::EntryType::Fifo, "d.json"),
    ] {
        let mut header = ::tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        header.set_path(name).unwrap();
        if kind == ::tar::EntryType::GNUSparse {
            header.as_gnu_mut().unwrap().set_real_size(0);
        } else {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        builder.append(&header, std::io::empty()).unwrap();
    }
    let bytes = builder.into_inner().unwrap();
    let found = all(&bytes, Form::Tar, BOUNDS).unwrap();
    let refused: Vec<bool> = found
        .iter()
        .map(|(entry, _)| matches!(entry, Entry::Refused { .. }))
        .collect();
    assert_eq!(refused, [true, true, true, false], "{found:?}");
}

#[test]
fn bombs_are_refused() {
    let zeros = vec![b' '; 80 << 20];
    let member = [("bomb.json", zeros.as_slice())];
    let tar = gzip(&tar_of(&member));
    let found = all(&zip_of(&member), Form::Zip, BOUNDS).unwrap();
    assert!(
        matches!(&found[0].0, Entry::Refused { reason, .. } if reason.contains("bomb")),
        "{:?}",
        found[0].0
    );
    let small = Bounds { member: 1 << 20 };
    for (bytes, form) in [(tar_of(&member), Form::Tar), (tar, Form::TarGzip)] {
        let found = all(&bytes, form, small).unwrap();
        assert!(
            matches!(&found[0].0, Entry::Refused { reason, .. } if reason.contains("80 MiB")),
            "{form:?}"
        );
    }
    let zstd = zstd::encode_all(tar_of(&member).as_slice(), 3).unwrap();
    let error = archive(&zstd, Form::TarZstd, BOUNDS)
        .unwrap()
        .walk(&mut |_, _| ControlFlow::Continue(()))
        .unwrap_err();
    assert!(error.reason().contains("bomb"), "{error}");
}

#[test]
fn damaged_archives_give_what_is_whole_before_the_damage() {
    let tar = tar_of(&[("a.json", &[b'1'; 600]), ("b.json", &[b'2'; 600])]);
    let found = all(&tar[..1024 + 512 + 700], Form::Tar, BOUNDS).unwrap();
    assert!(matches!(&found[0].0, Entry::Member(_)), "{found:?}");
    assert!(matches!(&found[1].0, Entry::Refused { .. }), "{found:?}");
    let packed = gzip(&tar);
    let mut names = Vec::new();
    let result = archive(&packed[..packed.len() - 9], Form::TarGzip, BOUNDS)
        .unwrap()
        .walk(&mut |entry, _| {
            names.push(entry);
            ControlFlow::Continue(())
        });
    assert!(result.is_err() && !names.is_empty());
    assert!(archive(b"no zip", Form::Zip, BOUNDS).is_err());
    assert!(
        all(b"no tar", Form::Tar, BOUNDS)
            .is_ok_and(|found| { found.is_empty() || matches!(found[0].0, Entry::Refused { .. }) })
    );
}

#[test]
fn forms_are_told_by_names() {
    for (name, form) in [
        ("a.tar", Some(Form::Tar)),
        ("a.TGZ", Some(Form::TarGzip)),
        ("a.tar.zst", Some(Form::TarZstd)),
        ("a.txz", Some(Form::TarXz)),
        ("a.zip", Some(Form::Zip)),
        ("a.json.gz", None),
        ("tar", None),
    ] {
        assert_eq!(Form::of(Path::new(name)), form, "{name}");
    }
    assert_eq!(without_endings("x.tar.gz"), "x");
    assert_eq!(without_endings("x.json.gz"), "x.json");
}
