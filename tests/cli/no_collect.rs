//! A build without the feature `collect`.

use crate::tracekit;

#[test]
fn collect_is_refused_in_one_line_that_says_why() {
    for arguments in ["collect --check", "collect -o x -- true", "collect"] {
        let run = tracekit(arguments);
        let line = run.refused();
        assert!(line.contains("built without the feature collect"), "{line}");
    }
}
