//! Names in archives, which others made up.

use std::path::Path;

use super::{Entry, Form};
use crate::ingest::is_trace_name;

/// What the names of compressed files end with.
const COMPRESSED: [&[u8]; 3] = [b".gz", b".zst", b".xz"];

/// Longest name that is taken.
const LONGEST: usize = 4096;

/// What a member is that does not have to be looked at further.
pub(super) enum Named {
    /// A clean name.
    Clean(String),
    /// No name for a trace, or one to refuse.
    Not(Entry),
}

/// The name in an entry, made of `bytes`, when nothing about it is a trick.
pub(super) fn named(bytes: &[u8]) -> Named {
    let name = String::from_utf8_lossy(bytes).into_owned();
    let shown: String = name.chars().take(LONGEST).collect();
    let refuse = |reason: &str| {
        Named::Not(Entry::Refused {
            name: shown.clone(),
            reason: format!("{reason}; refused"),
        })
    };
    if name.len() > LONGEST {
        return refuse("its name is too long");
    }
    if name.contains('\0') {
        return refuse("its name has a null byte");
    }
    let has_drive = name.as_bytes().get(1) == Some(&b':');
    if name.starts_with(['/', '\\']) || has_drive {
        return refuse("its name is an absolute path");
    }
    if name.split(['/', '\\']).any(|part| part == "..") {
        return refuse("its name leads out of the archive");
    }
    let parts: Vec<&str> = name
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let clean = parts.join("/");
    let pass = |reason| {
        Named::Not(Entry::Passed {
            name: clean.clone(),
            reason,
        })
    };
    match parts.last() {
        None => pass("no name"),
        Some(_) if parts.iter().any(|part| part.starts_with('.')) => pass("hidden"),
        Some(last) if last.as_bytes().ends_with(b".tmp") => pass("unfinished temporary file"),
        Some(last) if Form::of(Path::new(last)).is_some() => {
            refuse("is an archive in an archive: unpack that first")
        }
        Some(last) if !is_json_name(last) => pass("not named *.json, or *.json.gz, .zst or .xz"),
        Some(_) => Named::Clean(clean),
    }
}

/// True for the names that traces may have.
pub(crate) fn is_json_name(name: &str) -> bool {
    let name = name.as_bytes();
    let plain = COMPRESSED.iter().find_map(|end| name.strip_suffix(*end));
    plain.unwrap_or(name).ends_with(b".json")
}

/// True for the names of compressed files.
pub(crate) fn is_compressed_name(name: &str) -> bool {
    let name = name.as_bytes();
    COMPRESSED.iter().any(|end| name.ends_with(end))
}

/// What a link called `name` is.
pub(super) fn link(name: String) -> Entry {
    if is_trace_name(Path::new(&name)) || is_json_name(&name) {
        return Entry::Refused {
            name,
            reason: "is a link; refused".to_owned(),
        };
    }
    Entry::Passed {
        name,
        reason: "link",
    }
}

/// A file name without the endings that say what kind of archive or compressed file it is.
pub(crate) fn without_endings(name: &str) -> &str {
    let lower = name.to_ascii_lowercase();
    let ends = [
        ".tar.gz",
        ".tar.zst",
        ".tar.zstd",
        ".tar.xz",
        ".tar",
        ".tgz",
        ".tzst",
        ".txz",
        ".zip",
        ".gz",
        ".zst",
        ".xz",
    ];
    let end = ends.iter().find(|end| lower.ends_with(*end));
    end.map_or(name, |end| &name[..name.len() - end.len()])
}
