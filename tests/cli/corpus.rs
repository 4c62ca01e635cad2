//! Every public trace of the corpus: analysed, or refused in one line.

use std::path::PathBuf;
use std::time::Instant;

use crate::attribute;

#[test]
fn every_public_trace_is_analysed_or_refused_in_one_line() {
    let Some(corpus) = std::env::var_os("TRACEKIT_CORPUS") else {
        println!("skipped: TRACEKIT_CORPUS is not set");
        return;
    };
    let mut folders = vec![
        std::fs::canonicalize(PathBuf::from(corpus))
            .unwrap()
            .join("public"),
    ];
    let (mut analysed, mut refused) = (0, 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.ends_with("INDEX.tsv") {
                continue;
            }
            let start = Instant::now();
            let run = attribute(&path, "");
            if start.elapsed().as_secs() >= 10 {
                println!("slow: {} took {:?}", path.display(), start.elapsed());
            }
            if run.code == 0 {
                analysed += 1;
                assert!(!run.out.is_empty(), "{}", path.display());
            } else {
                refused += 1;
                println!("{}", run.refused());
                assert!(run.err.contains(&path.display().to_string()), "{}", run.err);
            }
        }
    }
    println!("{analysed} analysed, {refused} refused");
    assert_eq!(analysed + refused, 134);
    assert!(analysed >= 120, "{refused} were refused");
}
