//! The HTML report in a browser. Where there is no Chromium, this says so and is skipped.
//!
//! `TRACEKIT_SCREENSHOTS=FOLDER` keeps what it looked like; `TRACEKIT_PAGES_OF=TRACE:FOLDER:…` opens the pages of
//! more traces, and keeps them in three sizes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chromium;
mod paper;
#[path = "../support/training.rs"]
mod training;

use std::path::{Path, PathBuf};
use std::process::Command;

use chromium::Chromium;
use serde_json::{Value, json};
use training::Training;

fn package(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// Writes the report on `traces`; false where they cannot be read.
fn report(traces: &[&Path], page: &Path) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracekit"));
    command
        .arg("report")
        .args(traces)
        .arg("-o")
        .arg(page)
        .arg("-q");
    let code = command.output().unwrap().status.code();
    code == Some(0) || code == Some(4)
}

fn bytes(base64: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = base64.bytes().filter(|byte| *byte != b'=').collect();
    let mut out = Vec::new();
    for chunk in digits.chunks(4) {
        let word =
            chunk.iter().fold(0, |word, byte| word << 6 | digit(*byte)) << (6 * (4 - chunk.len()));
        out.extend_from_slice(&word.to_be_bytes()[1..chunk.len()]);
    }
    out
}

/// Keeps a screenshot where that is wanted.
fn keep(browser: &mut Chromium, name: &str) {
    let Some(folder) = std::env::var_os("TRACEKIT_SCREENSHOTS") else {
        return;
    };
    std::fs::create_dir_all(&folder).unwrap();
    let picture = bytes(&browser.screenshot());
    std::fs::write(Path::new(&folder).join(format!("{name}.png")), picture).unwrap();
}

fn no_complaints(browser: &Chromium, of: &str) {
    assert!(
        browser.complaints.is_empty(),
        "{of}: {:?}",
        browser.complaints
    );
}

/// What sticks out of the page to the right.
const STICKING_OUT: &str = "(() => { const width = document.documentElement.clientWidth; \
    return document.documentElement.scrollWidth <= width ? [] : [...document.querySelectorAll('body *')] \
    .filter((one) => one.getBoundingClientRect().right > width + 1 && !one.closest('.scroll, .picture, nav')) \
    .map((one) => one.outerHTML.slice(0, 120)); })()";

#[test]
fn reports_work_in_a_browser() {
    let Some(mut browser) = Chromium::start() else {
        eprintln_skipped();
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    every_trace(&mut browser, &page);
    device_trace(&mut browser, &page);
    two_sides(&mut browser, &page);
    many_steps(&mut browser, folder.path());
    hostile_names(&mut browser, folder.path());
}

fn eprintln_skipped() {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "skipped: there is no Chromium here");
}

/// What has no name for those who hear the page.
const UNNAMED: &str = "[...document.querySelectorAll('button, select, input, canvas, nav, section, svg, table, \
    [role=region], [role=group]')].filter((one) => !(one.getAttribute('aria-label') || \
    document.getElementById(one.getAttribute('aria-labelledby'))?.textContent || one.labels?.length || \
    one.querySelector('title')?.textContent || (one.tagName === 'BUTTON' && one.textContent.trim()))) \
    .map((one) => one.outerHTML.slice(0, 120))";

/// Every fixture, in windows of three sizes.
fn every_trace(browser: &mut Chromium, page: &Path) {
    let mut traces: Vec<PathBuf> = std::fs::read_dir(package("fixtures/golden"))
        .unwrap()
        .map(|case| {
            let case = case.unwrap().path();
            let folder = case.join("trace");
            if folder.is_dir() {
                folder
            } else {
                case.join("trace.json")
            }
        })
        .collect();
    traces.extend(
        std::fs::read_dir(package("fixtures/hostile"))
            .unwrap()
            .map(|it| it.unwrap().path()),
    );
    traces.push(package("fixtures/traces"));
    let more = std::env::var_os("TRACEKIT_PAGES_OF").unwrap_or_default();
    let more: Vec<PathBuf> = std::env::split_paths(&more)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    traces.extend_from_slice(&more);
    traces.sort();
    let mut opened = 0;
    for trace in &traces {
        if !report(&[trace], page) {
            continue;
        }
        let name = trace
            .strip_prefix(package("fixtures"))
            .unwrap_or(trace)
            .display()
            .to_string();
        browser.resize(1280, 900);
        browser.open(page);
        assert_eq!(
            browser.evaluate("document.documentElement.dataset.ready"),
            "yes",
            "{name}"
        );
        no_complaints(browser, &name);
        let shot = name.replace(['/', '.'], "-");
        keep(browser, shot.trim_matches('-'));
        assert_eq!(browser.evaluate(UNNAMED), json!([]), "{name}");
        for width in [360, 768, 1280] {
            browser.resize(width, 800);
            let out = browser.evaluate(STICKING_OUT);
            assert_eq!(out, json!([]), "{name} in {width} pixels");
            if more.contains(trace) && width < 1280 {
                keep(browser, &format!("{}-{width}", shot.trim_matches('-')));
            }
        }
        opened += 1;
    }
    assert!(opened > 50, "only {opened} pages were opened");
}

/// The cells of tables of shades, from the least to the most: how much each has, its contrast to the page, and that of
/// its text to it.
const SHADES: &str = "(() => { const parts = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number); \
    const lum = (colour) => { const [r, g, b] = colour.map((one) => { const part = one / 255; \
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; }; \
    const contrast = (a, b) => { const [x, y] = [lum(a), lum(b)]; return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); }; \
    const page = parts(getComputedStyle(document.body).backgroundColor); \
    const tables = [...document.querySelectorAll('.picture svg')].filter((one) => one.querySelector('rect[fill=\"#5B9FDB\"]')); \
    const rects = tables.flatMap((one) => [...one.querySelectorAll('rect')]).filter((one) => one.querySelector('title') && one.nextElementSibling?.tagName === 'text'); \
    const cells = rects.map((cell) => { const full = parts(getComputedStyle(cell).fill); \
    const over = cell.getAttribute('fill') === '#5B9FDB'; const part = over ? Number(cell.getAttribute('opacity') ?? 1) : 0; \
    const empty = over ? parts(getComputedStyle(cell.previousElementSibling).fill) : full; \
    const shade = full.map((one, place) => over ? one * part + empty[place] * (1 - part) : one); \
    const ink = parts(getComputedStyle(cell.nextElementSibling).fill); return [part, contrast(shade, page), contrast(ink, shade)]; }); \
    return cells.sort((a, b) => a[0] - b[0]); })()";

fn device_trace(browser: &mut Chromium, page: &Path) {
    assert!(report(
        &[&package("fixtures/golden/two-steps/trace.json")],
        page
    ));
    browser.resize(1280, 900);
    browser.open(page);
    // Sorting: by time, most first, then least first; totals stay at the end.
    let find = "[...document.querySelectorAll('table')].find((table) => table.tBodies[0].rows.length > 5 \
        && table.tBodies[0].rows[table.tBodies[0].rows.length - 1].className === 'total').id";
    let id = browser.evaluate(find);
    let id = id.as_str().expect("a table with a total");
    let times = &format!(
        "(() => {{ const table = document.getElementById('{id}'); \
        return [...table.tBodies[0].rows].map((row) => [row.className, Number(row.cells[1].dataset.v)]); }})()"
    );
    let sort = &format!("document.querySelector('#{id} th:nth-child(2) button').click()");
    let sorted = |rows: &Value| -> Vec<f64> {
        let rows = rows.as_array().unwrap();
        assert_eq!(rows.last().unwrap()[0], "total");
        let plain = rows.iter().filter(|row| row[0] == "");
        plain.map(|row| row[1].as_f64().unwrap()).collect()
    };
    browser.evaluate(sort);
    let most_first = sorted(&browser.evaluate(times));
    assert!(
        most_first.len() > 4 && most_first.is_sorted_by(|a, b| a >= b),
        "{most_first:?}"
    );
    browser.evaluate(sort);
    let least_first = sorted(&browser.evaluate(times));
    assert!(least_first.is_sorted(), "{least_first:?}");
    let state = browser.evaluate(&format!(
        "document.querySelector('#{id} th:nth-child(2)').getAttribute('aria-sort')"
    ));
    assert_eq!(state, "ascending");

    // Searching.
    let search = "(() => { const input = document.querySelector('#operators .filter input'); input.value = 'ADAM'; \
        input.dispatchEvent(new Event('input')); const rows = [...document.querySelectorAll('#operators tbody tr')]; \
        return [rows.filter((row) => !row.hidden).length, rows.length, \
        document.querySelector('#operators .filter output').textContent]; })()";
    if browser.evaluate("!!document.querySelector('#operators .filter')") == true {
        let found = browser.evaluate(search);
        assert!(found[0].as_u64() < found[1].as_u64(), "{found}");
        assert!(found[2].as_str().unwrap().contains(" of "), "{found}");
    }

    // Zooming: by button, by key, by dragging.
    let view = "document.querySelector('figure[data-timeline]').view";
    let range = format!("[{view}.from, {view}.to, {view}.end]");
    let whole = browser.evaluate(&range);
    assert_eq!((&whole[0], &whole[1]), (&json!(0), &whole[2]));
    browser.evaluate("document.querySelector('.controls button[aria-label=\"Zoom in\"]').click()");
    let half = browser.evaluate(&range);
    let length = |range: &Value| range[1].as_f64().unwrap() - range[0].as_f64().unwrap();
    assert!(
        (length(&half) * 2.0 - length(&whole)).abs() < 1.0,
        "{half} of {whole}"
    );
    let key =
        "document.querySelector('canvas').dispatchEvent(new KeyboardEvent('keydown', {key: '0'}))";
    browser.evaluate(key);
    assert_eq!(browser.evaluate(&range), whole);
    browser.evaluate("document.querySelector('canvas').scrollIntoView()");
    let at = browser.evaluate(
        "(() => { const box = document.querySelector('canvas').getBoundingClientRect(); return [box.left, box.top]; })()",
    );
    let place =
        |x: f64| json!({"x": at[0].as_f64().unwrap() + x, "y": at[1].as_f64().unwrap() + 20.0});
    for (kind, x) in [
        ("mousePressed", 400.0),
        ("mouseMoved", 500.0),
        ("mouseReleased", 600.0),
    ] {
        let mut event = place(x);
        event["type"] = json!(kind);
        event["button"] = json!("left");
        event["clickCount"] = json!(1);
        browser.send("Input.dispatchMouseEvent", event);
    }
    let dragged = browser.evaluate(&range);
    assert!(
        length(&dragged) < length(&whole) / 3.0,
        "{dragged} of {whole}"
    );
    let says = browser.evaluate("document.querySelector('.says').textContent");
    assert!(says.as_str().unwrap().contains(" ms of "), "{says}");
    no_complaints(browser, "two-steps");

    // On paper.
    let paper = printed(browser);
    assert!(
        paper.starts_with(b"%PDF-") && paper.len() > 20_000,
        "{} bytes",
        paper.len()
    );
    if let Some(folder) = std::env::var_os("TRACEKIT_SCREENSHOTS") {
        std::fs::write(Path::new(&folder).join("paper.pdf"), &paper).unwrap();
    }

    // In the dark: text is readable on every ground.
    let scheme =
        |value: &str| json!({"features": [{"name": "prefers-color-scheme", "value": value}]});
    let contrasts = "(() => { const lum = (text) => { const parts = text.match(/[\\d.]+/g).slice(0, 3).map((one) => { \
        const part = one / 255; return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; }); \
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]; }; \
        const ground = (one) => { while (one) { const color = getComputedStyle(one).backgroundColor; \
        if (!color.endsWith(', 0)') && color !== 'transparent') return color; one = one.parentElement; } return 'rgb(255, 255, 255)'; }; \
        return [...document.querySelectorAll('h1, h2, p, dt, dd, td, th, a, figcaption, button, .u')].filter((one) => one.textContent.trim()).map((one) => { \
        const [a, b] = [lum(getComputedStyle(one).color), lum(ground(one))]; \
        return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), one.outerHTML.slice(0, 80)]; }).sort((a, b) => a[0] - b[0])[0]; })()";
    let ground = "getComputedStyle(document.body).backgroundColor";
    for (value, page_is) in [("dark", "rgb(18, 22, 28)"), ("light", "rgb(255, 255, 255)")] {
        browser.send("Emulation.setEmulatedMedia", scheme(value));
        browser.open(page);
        assert_eq!(browser.evaluate(ground), page_is, "{value}");
        let least = browser.evaluate(contrasts);
        assert!(least[0].as_f64().unwrap() >= 4.5, "{value}: {least}");
        let scale = browser.evaluate(SHADES);
        let scale = scale.as_array().unwrap();
        assert!(scale.len() > 8, "{scale:?}");
        // On each page, the more there is of something the further its cell is from the ground of the page.
        for pair in scale.windows(2) {
            let far = |cell: &Value| cell[1].as_f64().unwrap();
            assert!(far(&pair[0]) <= far(&pair[1]) + 0.01, "{value}: {pair:?}");
        }
        for cell in scale {
            let contrast = cell[2].as_f64().unwrap();
            assert!(contrast >= 4.5, "{value}: text on {cell}");
        }
        keep(browser, &format!("theme-{value}"));
    }

    // Without its script everything is there.
    browser.send(
        "Emulation.setScriptExecutionDisabled",
        json!({"value": true}),
    );
    browser.open(page);
    assert_eq!(
        browser.evaluate("document.documentElement.dataset.ready || 'no'"),
        "no"
    );
    let seen = browser.evaluate(
        "[document.querySelectorAll('table').length, \
         [...document.querySelectorAll('.picture svg')].every((one) => one.getBoundingClientRect().height > 20), \
         document.querySelectorAll('.picture svg').length]",
    );
    assert!(seen[0].as_u64().unwrap() > 8, "{seen}");
    assert_eq!(seen[1], true);
    assert!(seen[2].as_u64().unwrap() >= 3, "{seen}");
    keep(browser, "no-script");
    browser.send(
        "Emulation.setScriptExecutionDisabled",
        json!({"value": false}),
    );
}

/// However many steps there are, a picture is drawn with no more strokes than it has pixels for.
fn many_steps(browser: &mut Chromium, folder: &Path) {
    let trace = folder.join("long.json");
    let training = Training {
        rank: 0,
        ranks: 1,
        steps: 3_000,
        kernels: 6,
        pace: 100,
    };
    std::fs::write(&trace, training::trace(training)).unwrap();
    let page = folder.join("long.html");
    assert!(report(&[&trace], &page));
    browser.resize(1280, 900);
    browser.open(&page);
    no_complaints(browser, "many steps");
    let strokes = "(() => { const view = document.querySelector('figure[data-timeline]').view; \
        const pen = CanvasRenderingContext2D.prototype; const own = pen.fillRect; let count = 0; \
        pen.fillRect = function (...place) { count += 1; return own.apply(this, place); }; \
        const counts = [1, 0.5, 0.1, 0.01].map((part) => { count = 0; view.show(0, view.end * part); return count; }); \
        pen.fillRect = own; view.show(0, view.end); return counts; })()";
    let counts = browser.evaluate(strokes);
    for count in counts.as_array().unwrap() {
        assert!((10..12_000).contains(&count.as_u64().unwrap()), "{counts}");
    }
    keep(browser, "many-steps");

    // On paper every page of a long table has its headings, and rows that a search hides on the screen are there.
    let search = "(() => { const table = [...document.querySelectorAll('table')].find((one) => \
        one.tBodies[0].rows.length > 900); const input = table.closest('.scroll').previousElementSibling \
        .querySelector('input'); input.value = '#777'; input.dispatchEvent(new Event('input')); \
        const rows = [...table.tBodies[0].rows]; return [rows.filter((row) => !row.hidden).length, rows.length, \
        [...table.tHead.rows[0].cells].map((cell) => cell.firstChild.textContent)]; })()";
    let found = browser.evaluate(search);
    assert!(found[0].as_u64() < found[1].as_u64(), "{found}");
    let pages = paper::pages(&printed(browser));
    let all: String = pages.concat();
    for step in 3..1_003 {
        // No other table has the steps that a search for 777 hides; names end where the first number begins.
        assert!(all.contains(&format!("ProfilerStep#{step}0.")), "{step}");
    }
    // Pages with nothing but that table: the one of gaps has steps, too, with causes.
    let is_of_steps = |page: &&String| {
        page.matches("ProfilerStep#").count() > 10
            && !page.contains("_bound")
            && !page.contains("mean")
    };
    let steps: Vec<&String> = pages.iter().filter(is_of_steps).collect();
    assert!(steps.len() > 5, "{} of {} pages", steps.len(), pages.len());
    for page in steps {
        for heading in found[2].as_array().unwrap() {
            let heading = heading.as_str().unwrap().replace(' ', "");
            assert!(page.contains(&heading), "{heading} is not on {page}");
        }
    }
}

/// The page as it is printed.
fn printed(browser: &mut Chromium) -> Vec<u8> {
    let paper = browser.send(
        "Page.printToPDF",
        json!({"printBackground": true, "preferCSSPageSize": true}),
    );
    bytes(paper["data"].as_str().unwrap())
}

fn two_sides(browser: &mut Chromium, page: &Path) {
    let sides = ["baseline", "checkpoint"].map(|name| package(&format!("fixtures/traces/{name}")));
    assert!(report(&[&sides[0], &sides[1]], page));
    browser.resize(1280, 900);
    browser.open(page);
    no_complaints(browser, "two sides");
    assert_eq!(
        browser.evaluate("!!document.querySelector('#comparison svg')"),
        true
    );
    assert_eq!(browser.evaluate(UNNAMED), json!([]));
    keep(browser, "comparison");
}

fn hostile_names(browser: &mut Chromium, folder: &Path) {
    let long = "k".repeat(10_000);
    let piled = format!("z{}", "\u{301}\u{335}".repeat(5_000));
    for (number, name) in [
        "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">",
        "</script><script>document.title='run'</script>",
        "\"'`&amp;<!--\u{202e}evil\u{2066}\u{0}\u{1b}[31m",
        "שלום עולם مرحبا بالعالم",
        &long,
        &piled,
    ]
    .into_iter()
    .enumerate()
    {
        let trace = folder.join("trace.json");
        let event = |cat: &str, pid: u32, ts: u32, dur: u32, args: Value| json!({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": 1, "ts": ts, "dur": dur, "args": args});
        let events = json!({"traceEvents": [
            event("user_annotation", 1, 0, 100, json!({})),
            event("cpu_op", 1, 1, 50, json!({})),
            event("cuda_runtime", 1, 2, 5, json!({"correlation": 7})),
            event("kernel", 0, 20, 30, json!({"correlation": 7, "device": 0, "stream": 7})),
        ]});
        std::fs::write(&trace, events.to_string()).unwrap();
        let page = folder.join("hostile.html");
        assert!(report(&[&trace], &page));
        for width in [360, 1280] {
            browser.resize(width, 900);
            browser.open(&page);
            no_complaints(browser, name);
            assert_ne!(browser.evaluate("document.title"), "run");
            assert_eq!(
                browser.evaluate("document.querySelectorAll('img').length"),
                0
            );
            assert_eq!(browser.evaluate(STICKING_OUT), json!([]), "name {number}");
            keep(browser, &format!("hostile-{number}-{width}"));
        }
    }
    // Runs and devices are called anything, too.
    let runs = folder.join("runs");
    for name in ["r".repeat(200), "שלום עולם".to_owned(), "W".repeat(60)] {
        let run = runs.join(name);
        std::fs::create_dir_all(&run).unwrap();
        let events = json!({
            "deviceProperties": [{"id": 0, "name": long}],
            "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 0, "dur": 30,
                "args": {"correlation": 7, "device": 0, "stream": 7}}],
        });
        std::fs::write(run.join("trace.json"), events.to_string()).unwrap();
    }
    let page = folder.join("runs.html");
    assert!(report(&[&runs], &page));
    for width in [360, 1280, 1600] {
        browser.resize(width, 900);
        browser.open(&page);
        no_complaints(browser, "runs");
        assert_eq!(browser.evaluate(STICKING_OUT), json!([]), "{width} pixels");
        let tallest = "Math.max(...[...document.querySelectorAll('dd')].map((one) => one.getBoundingClientRect().height))";
        let tallest = browser.evaluate(tallest);
        assert!(tallest.as_f64().unwrap() < 400.0, "{tallest} pixels");
        let apart =
            browser.evaluate("[...document.querySelectorAll('bdi')].map((one) => one.textContent)");
        let apart = apart.as_array().unwrap();
        assert!(apart.iter().any(|name| name == "שלום עולם"), "{apart:?}");
        keep(browser, &format!("hostile-runs-{width}"));
    }
}
