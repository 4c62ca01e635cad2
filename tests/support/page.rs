//! A plain reader of pages: their tables, row by row, against the JSON of the same report.

use serde_json::Value;

/// `text` with the entities of XML replaced.
pub(crate) fn plain(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

/// What a cell shows, and its exact value where that is written beside it.
pub(crate) type Shown = (String, Option<String>);

/// The tables of a page, row by row: what each cell shows, and its exact value.
pub(crate) fn tables(page: &str) -> Vec<Vec<Vec<Shown>>> {
    let tables = page.split("<tbody>").skip(1);
    let rows = |table: &str| -> Vec<Vec<Shown>> {
        let body = table.split("</tbody>").next().unwrap();
        body.split("<tr").skip(1).map(cells).collect()
    };
    tables.map(rows).collect()
}

fn cells(row: &str) -> Vec<Shown> {
    let row = row.split_once('>').unwrap().1;
    let starts = row.match_indices("<t").map(|(place, _)| place);
    starts
        .map(|start| {
            let (head, rest) = row[start..].split_once('>').unwrap();
            let text = rest.split("</t").next().unwrap();
            let raw = head
                .split_once("data-v=\"")
                .map(|(_, raw)| raw.split('"').next().unwrap());
            (plain(text), raw.map(str::to_owned))
        })
        .collect()
}

pub(crate) fn json_tables(report: &Value) -> Vec<&Value> {
    let sections = report["sections"].as_array().unwrap().iter();
    let blocks = sections.flat_map(|section| section["blocks"].as_array().unwrap());
    blocks.filter_map(|block| block.get("table")).collect()
}

/// True when `shown`, as a table spells it in `unit`, is what `value` is.
pub(crate) fn says(shown: &str, value: &Value, unit: Option<&str>) -> bool {
    let digits = shown.replace(',', "");
    let scale = match unit {
        Some("ms") => 1e-6,
        Some("%") => 100.0,
        Some("MiB") => 1.0 / f64::from(1 << 20),
        _ => 1.0,
    };
    let Some(value) = value.as_f64() else {
        return value.is_null() && ["—", "n/a", ""].contains(&shown);
    };
    let exact = value * scale;
    if let Some(bound) = digits.strip_prefix(['<', '>']) {
        let bound: f64 = bound.parse().unwrap();
        let is_full = digits.starts_with('>') && bound > 0.0;
        return if is_full {
            exact >= bound
        } else {
            exact.abs() < bound.abs() * 1.001 && exact != 0.0
        };
    }
    let digits_after = digits.split_once('.').map_or(0, |(_, after)| after.len());
    let step = 10_f64.powi(-i32::try_from(digits_after).unwrap_or(0));
    match digits.parse::<f64>() {
        // Exponents are for numbers whose size says more than their digits.
        Ok(shown) if digits.contains('e') => ((shown - exact) / exact).abs() < 1e-3,
        Ok(shown) => (shown - exact).abs() <= step * 0.500_001 + exact.abs() * 1e-9,
        Err(_) => false,
    }
}

/// Compares every cell of the tables of a page with the JSON of the same report; returns how many numbers there are.
pub(crate) fn read_back(page: &str, report: &Value, of: &str) -> usize {
    let mut numbers = 0;
    let shown = tables(page);
    let expected = json_tables(report);
    assert_eq!(shown.len(), expected.len(), "{of}");
    for (shown, table) in shown.iter().zip(expected) {
        let rows = table["rows"].as_array().unwrap();
        let columns = table["columns"].as_array().unwrap();
        let caption = &table["caption"];
        assert_eq!(shown.len(), rows.len(), "{of}: {caption}");
        for (shown, row) in shown.iter().zip(rows) {
            let values = row["cells"].as_array().unwrap();
            assert_eq!(shown.len(), values.len(), "{of}: {caption}");
            for (((shown, raw), value), column) in shown.iter().zip(values).zip(columns) {
                if let Some(text) = value.as_str() {
                    // Names may be shortened, and links have their own elements.
                    let whole = text.is_ascii() && text.len() < 100 && !shown.contains('<');
                    assert!(
                        !whole || shown == text || text.contains('<'),
                        "{of}: {shown} for {text}"
                    );
                    continue;
                }
                numbers += 1;
                let unit = column["shown_in"].as_str();
                assert!(
                    says(shown, value, unit),
                    "{of}: {shown} for {value} in {caption}"
                );
                // What is exact is exact.
                if let Some(raw) = raw.as_deref().filter(|raw| !raw.is_empty()) {
                    let (raw, value) = (raw.parse::<f64>().unwrap(), value.as_f64().unwrap());
                    assert!(
                        (raw - value).abs() <= value.abs() * 1e-15,
                        "{raw} for {value}"
                    );
                }
            }
        }
    }
    numbers
}
