//! A plain reader of what Chromium prints: the text of each page of a PDF.

use std::collections::BTreeMap;
use std::io::Read as _;

/// One object of the file: what is said about it, and its content, where it has any.
struct Object<'a> {
    about: &'a str,
    content: Vec<u8>,
}

/// The text of every page, without the spaces between pieces of it.
pub(crate) fn pages(pdf: &[u8]) -> Vec<String> {
    let objects = objects(pdf);
    let number = |about: &str, key: &str| -> Option<usize> {
        let rest = about.split_once(key)?.1.trim_start();
        rest.split(' ').next()?.parse().ok()
    };
    let fonts: BTreeMap<usize, BTreeMap<u16, char>> = objects
        .iter()
        .filter_map(|(name, object)| {
            let letters = number(object.about, "/ToUnicode")?;
            Some((*name, letters_of(&objects.get(&letters)?.content)))
        })
        .collect();
    let is_page = |about: &str| about.contains("/Type /Page") && !about.contains("/Type /Pages");
    let pages = objects.values().filter(|object| is_page(object.about));
    pages
        .filter_map(|page| objects.get(&number(page.about, "/Contents")?))
        .map(|content| text(&content.content, &fonts))
        .collect()
}

fn objects(pdf: &[u8]) -> BTreeMap<usize, Object<'_>> {
    let mut objects = BTreeMap::new();
    let mut at = 0;
    while let Some(start) = find(&pdf[at..], b" 0 obj") {
        let start = at + start;
        let digits = pdf[..start]
            .iter()
            .rev()
            .take_while(|it| it.is_ascii_digit());
        let name = String::from_utf8_lossy(&pdf[start - digits.count()..start]).parse();
        let body = start + b" 0 obj".len();
        let end = body + find(&pdf[body..], b"endobj").unwrap_or(pdf.len() - body);
        let stream = find(&pdf[body..end], b"stream").map(|it| body + it);
        let about = std::str::from_utf8(&pdf[body..stream.unwrap_or(end)]).unwrap_or("");
        let length = about.split_once("/Length ").and_then(|(_, rest)| {
            rest.split([' ', '\n', '>', '/'])
                .next()?
                .parse::<usize>()
                .ok()
        });
        let mut content = Vec::new();
        at = end;
        if let (Some(stream), Some(length)) = (stream, length) {
            let start = stream + b"stream\n".len();
            let packed = &pdf[start..start + length];
            if about.contains("/FlateDecode") {
                // What is no text may be of another form; it is left empty.
                let _ = flate2::read::ZlibDecoder::new(packed).read_to_end(&mut content);
            }
            at = start + length;
        }
        if let Ok(name) = name {
            objects.insert(name, Object { about, content });
        }
    }
    objects
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

fn code(hex: &str) -> Option<u16> {
    u16::from_str_radix(hex.get(..4)?, 16).ok()
}

/// The letters of the glyphs of a font.
fn letters_of(map: &[u8]) -> BTreeMap<u16, char> {
    let map = String::from_utf8_lossy(map);
    let mut letters = BTreeMap::new();
    for (section, places) in [("bfchar", 2), ("bfrange", 3)] {
        for part in map.split(&format!("begin{section}")).skip(1) {
            let part = part.split(&format!("end{section}")).next().unwrap();
            let codes: Vec<u16> = part
                .split('<')
                .skip(1)
                .filter_map(|text| code(text.split('>').next()?))
                .collect();
            for entry in codes.chunks_exact(places) {
                let (first, last, letter) = (entry[0], entry[places - 2], entry[places - 1]);
                for (step, glyph) in (0..).zip(first..=last) {
                    let letter = char::from_u32(u32::from(letter) + step);
                    letters.insert(glyph, letter.unwrap_or('?'));
                }
            }
        }
    }
    letters
}

fn text(content: &[u8], fonts: &BTreeMap<usize, BTreeMap<u16, char>>) -> String {
    let content = String::from_utf8_lossy(content);
    let mut out = String::new();
    let mut letters = None;
    for line in content.lines() {
        if let Some((font, _)) = line.split_once(" Tf") {
            let name = font
                .split_once("/F")
                .and_then(|(_, rest)| rest.split(' ').next());
            letters = name.and_then(|name| fonts.get(&name.parse().ok()?));
        }
        if !line.ends_with("Tj") && !line.ends_with("TJ") {
            continue;
        }
        let pieces = line.split('<').skip(1);
        for hex in pieces.filter_map(|piece| piece.split('>').next()) {
            for at in (0..hex.len()).step_by(4) {
                let glyph = hex.get(at..).and_then(code);
                let letter = glyph.and_then(|glyph| letters?.get(&glyph));
                match letter {
                    // Letters that the font joins.
                    Some('ﬁ') => out.push_str("fi"),
                    Some('ﬂ') => out.push_str("fl"),
                    Some(letter) if !letter.is_whitespace() => out.push(*letter),
                    _ => {}
                }
            }
        }
    }
    out
}
