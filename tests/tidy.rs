//! The house rules that no compiler checks.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The layers, from the bottom up: a file may use only its own layer and those before it.
const LAYERS: [&[&str]; 14] = [
    &["units", "error", "health", "stats"],
    &["model"],
    &["ingest"],
    &["attribute"],
    &["inspect"],
    &["compare"],
    &["frame"],
    &["infer"],
    &["gate"],
    &["doctor", "rewrite", "collect"],
    &["evidence"],
    &["report"],
    &["batch"],
    &["cli"],
];

const LONGEST_FILE: usize = 800;

fn package() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if ends.iter().any(|end| path.to_string_lossy().ends_with(end)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn sources() -> Vec<PathBuf> {
    ["src", "tests", "benchmarks"]
        .iter()
        .flat_map(|folder| files(&package().join(folder), &[".rs"]))
        .collect()
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The modules after `crate::` in a line of code, also those of a `crate::{a, b}`.
fn modules_used(line: &str) -> Vec<&str> {
    let code = line.split("//").next().unwrap();
    let mut modules = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let names = rest.strip_prefix('{').unwrap_or(rest);
        let several = names.len() < rest.len();
        for name in names.split(',').take(if several { usize::MAX } else { 1 }) {
            let end = name
                .trim_start()
                .find(|c: char| !c.is_alphanumeric() && c != '_');
            let name = name.trim_start();
            modules.push(&name[..end.unwrap_or(name.len())]);
        }
    }
    modules
}

#[test]
fn every_file_uses_only_the_layers_below_it() {
    let src = package().join("src");
    let mut wrong = Vec::new();
    let mut checked = 0;
    for path in files(&src, &[".rs"]) {
        let inside = path.strip_prefix(&src).unwrap();
        let module = inside
            .iter()
            .next()
            .unwrap()
            .to_string_lossy()
            .replace(".rs", "");
        // Members of the workspace of their own use nothing of the package.
        if ["lib", "main", "inject", "spool"].contains(&module.as_str()) {
            continue;
        }
        let own =
            layer(&module).unwrap_or_else(|| panic!("{module} is in no layer: add it to LAYERS"));
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            for used in modules_used(line).into_iter().filter_map(layer) {
                checked += 1;
                if used > own {
                    wrong.push(format!(
                        "{}:{}: {}",
                        path.display(),
                        number + 1,
                        line.trim()
                    ));
                }
            }
        }
    }
    assert!(checked > 50, "only {checked} uses were seen");
    assert!(
        wrong.is_empty(),
        "uses of a higher layer:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn files_are_short_and_clean() {
    let mut wrong = Vec::new();
    let texts = files(&package(), &[".md", ".toml", ".rs"])
        .into_iter()
        .filter(|path| {
            !path.starts_with(package().join("target")) && !path.starts_with(package().join(".git"))
        });
    for path in texts {
        let text = std::fs::read_to_string(&path).unwrap();
        let rust = path.extension().is_some_and(|extension| extension == "rs");
        if rust && text.lines().count() > LONGEST_FILE {
            wrong.push(format!(
                "{}: more than {LONGEST_FILE} lines",
                path.display()
            ));
        }
        for (number, line) in text.split('\n').enumerate() {
            // Split in two so that this file passes its own test.
            let unfinished = [
                concat!("TO", "DO"),
                concat!("FIX", "ME"),
                concat!("to", "do!("),
                concat!("unimple", "mented!("),
            ];
            let fault = match line {
                _ if line.contains('\r') => "a carriage return",
                _ if line.contains('\t') => "a tab",
                _ if line.ends_with(' ') => "space at the end",
                _ if unfinished.iter().any(|word| line.contains(word)) => "something unfinished",
                _ => continue,
            };
            wrong.push(format!("{}:{}: {fault}", path.display(), number + 1));
        }
        if !text.is_empty() && !text.ends_with('\n') {
            wrong.push(format!("{}: no line end at the end", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lint_waivers_are_expectations_with_a_reason() {
    let mut wrong = Vec::new();
    for path in sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().starts_with(concat!("#[", "allow("))
                || line.contains(concat!("#![", "allow("))
            {
                wrong.push(format!(
                    "{}:{}: {}",
                    path.display(),
                    number + 1,
                    line.trim()
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "use expect with a reason:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn every_flag_is_in_the_readme() {
    let readme = std::fs::read_to_string(package().join("README.md")).unwrap();
    let mut flags = 0;
    for arguments in [
        &["--help"][..],
        &["attribute", "--help"],
        &["doctor", "--help"],
        &["compare", "--help"],
        &["report", "--help"],
        &["repair", "--help"],
        &["slice", "--help"],
        &["redact", "--help"],
        &["collect", "--help"],
        &["annotate", "--help"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tracekit"))
            .args(arguments)
            .output()
            .unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        for word in help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
            if word.len() > 3 && word.starts_with("--") && word != "--help" {
                flags += 1;
                assert!(
                    readme.contains(&format!("`{word}")),
                    "the README does not explain {word}"
                );
            }
        }
    }
    assert!(flags > 10, "only {flags} flags were seen");
}

/// What `tracekit ARGUMENTS --help` says.
fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tracekit"))
        .args(arguments)
        .arg("--help")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// `arguments` and every command below it.
fn commands(arguments: &[&str], found: &mut Vec<Vec<String>>) {
    found.push(arguments.iter().map(|word| (*word).to_owned()).collect());
    let help = help(arguments);
    let listed = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    for line in listed.lines().take_while(|line| !line.is_empty()) {
        let name = line.strip_prefix("  ").unwrap_or_default();
        let name = name.split(' ').next().unwrap_or_default();
        if !name.is_empty() && name != "help" {
            commands(&[arguments, &[name]].concat(), found);
        }
    }
}

#[test]
fn every_flag_of_gates_and_evidence_is_in_their_document() {
    let document = std::fs::read_to_string(package().join("reports/evidence.md")).unwrap();
    let readme = std::fs::read_to_string(package().join("README.md")).unwrap();
    assert!(readme.contains("(reports/evidence.md)"));
    let mut found = Vec::new();
    commands(&["gate"], &mut found);
    commands(&["evidence"], &mut found);
    assert!(found.len() > 20, "only {} commands were seen", found.len());
    let mut flags = 0;
    for command in found {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        if let [_, .., last] = words.as_slice()
            && words.len() > 1
        {
            assert!(document.contains(last), "the document has no {last}");
        }
        // Examples have flags of other programs.
        let help = help(&words);
        let own = help.split("\nExamples:").next().unwrap();
        assert!(help.contains("Examples:"), "{words:?} has no examples");
        for word in own.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
            if word.len() > 3 && word.starts_with("--") && !["--help", "--version"].contains(&word)
            {
                flags += 1;
                assert!(
                    document.contains(&format!("`{word}")),
                    "reports/evidence.md does not explain {word} of {words:?}"
                );
            }
        }
    }
    assert!(flags > 100, "only {flags} flags were seen");
}

#[test]
fn the_readme_is_short_and_its_links_lead_somewhere() {
    let readme = std::fs::read_to_string(package().join("README.md")).unwrap();
    assert!(
        readme.lines().count() <= 320,
        "the README has more than 320 lines"
    );
    for document in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "fixtures/README.md",
        "benchmarks/README.md",
        "reports/README.md",
        "reports/evidence.md",
    ] {
        let path = package().join(document);
        let text = std::fs::read_to_string(&path).unwrap();
        for rest in text.split("](").skip(1) {
            let target = rest.split([')', '#']).next().unwrap();
            if !target.is_empty() && !target.contains("://") {
                assert!(
                    path.parent().unwrap().join(target).exists(),
                    "{document} links to {target}"
                );
            }
        }
    }
}
