//! The fast reader: simd-json on chunks of events.
//!
//! A chunk that starts where an event starts and that is valid JSON between two brackets also ends
//! where an event ends, so nobody has to look for the ends of events first. simd-json says what
//! there is and where; the text of numbers is read from the file itself, for its own numbers have
//! gone through `f64`. Whatever is unusual about a chunk is left to the scalar reader.

use simd_json::{Buffers, INPUT_PADDING, Node, StaticNode, Tape};

use super::escape::is_space;
use super::key::{Key, Keys};
use super::row::{RawEvent, Rows, Value};
use super::split;

/// Longer chunks, which only odd files have, would need as much memory several times over.
const MAX_CHUNK: usize = 1 << 20;

/// What the fast reader keeps from chunk to chunk.
pub(super) struct Decoder {
    text: Vec<u8>,
    buffers: Buffers,
    tape: Tape<'static>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            text: Vec::new(),
            buffers: Buffers::new(0),
            tape: Tape(Vec::new()),
        }
    }
}

impl Decoder {
    /// Adds the rows of the events from the one at `start` to the one before `next`, when all of
    /// them are plain; else adds none.
    pub(super) fn chunk(
        &mut self,
        data: &[u8],
        start: usize,
        next: usize,
        rows: &mut Rows,
    ) -> bool {
        let end = split::end_before(data, next);
        if end <= start || end - start > MAX_CHUNK {
            return false;
        }
        self.text.clear();
        self.text.push(b'[');
        self.text.extend_from_slice(&data[start..end]);
        self.text.push(b']');
        let len = self.text.len();
        self.text.resize(len + INPUT_PADDING, b' ');
        // The byte of the file that became the byte at address `base`.
        let base = self.text.as_ptr().addr();
        let mut tape = std::mem::replace(&mut self.tape, Tape(Vec::new())).reset();
        let valid = simd_json::fill_tape_padded(&mut self.text, len, &mut self.buffers, &mut tape);
        let mut plain = false;
        if valid.is_ok() {
            let mark = rows.mark();
            let chunk = Chunk {
                nodes: &tape.0,
                data: &data[..end],
                start,
                base,
            };
            plain = chunk.rows(rows).is_some();
            if !plain {
                rows.rewind(mark);
            }
        }
        self.tape = tape.reset();
        plain
    }
}

/// A chunk on the tape. `None` from any method means that the chunk is not plain.
struct Chunk<'a> {
    nodes: &'a [Node<'a>],
    data: &'a [u8],
    start: usize,
    base: usize,
}

impl<'a> Chunk<'a> {
    fn rows(&self, rows: &mut Rows) -> Option<()> {
        let mut at = 1;
        while let Some(node) = self.nodes.get(at) {
            let Node::Object { len, count } = *node else {
                return None;
            };
            let Node::String(first) = *self.nodes.get(at + 1)? else {
                return None;
            };
            let offset = self.brace_before(self.offset(first)?)?;
            let mut event = RawEvent::default();
            self.event(at + 1, len, &mut event)?;
            rows.push(offset as u64, &event);
            at += 1 + count;
        }
        Some(())
    }

    /// The event whose `len` members start at node `at`.
    #[inline]
    fn event(&self, mut at: usize, len: usize, event: &mut RawEvent<'a>) -> Option<()> {
        let mut keys = Keys::default();
        for _ in 0..len {
            let &[Node::String(text), value, ..] = self.nodes.get(at..)? else {
                return None;
            };
            if let Some(key) = Key::of_event(text.as_bytes()) {
                if !keys.insert(key) {
                    return None;
                }
                if let Some(slot) = event.slot(key) {
                    *slot = self.value(text, value)?;
                } else if let Node::Object { len, .. } = value {
                    self.args(at + 2, len, event)?;
                }
            }
            at += 1 + span(value);
        }
        Some(())
    }

    /// The arguments of `event`, whose `len` members start at node `at`.
    #[inline]
    fn args(&self, mut at: usize, len: usize, event: &mut RawEvent<'a>) -> Option<()> {
        let mut keys = Keys::default();
        for _ in 0..len {
            let &[Node::String(text), value, ..] = self.nodes.get(at..)? else {
                return None;
            };
            if let Some(key) = Key::of_args(text.as_bytes()) {
                if !keys.insert(key) {
                    return None;
                }
                if let Some(slot) = event.slot(key) {
                    *slot = self.value(text, value)?;
                }
            }
            at += 1 + span(value);
        }
        Some(())
    }

    #[inline]
    fn value(&self, key: &str, node: Node<'a>) -> Option<Value<'a>> {
        Some(match node {
            Node::String(text) => Value::Text(text),
            Node::Static(StaticNode::Null) => Value::Null,
            Node::Static(StaticNode::Bool(value)) => Value::Bool(value),
            Node::Static(StaticNode::I64(value)) => Value::Int(value),
            Node::Static(StaticNode::U64(value)) => match i64::try_from(value) {
                Ok(value) => Value::Int(value),
                Err(_) => Value::Number(self.number(key)?),
            },
            Node::Static(StaticNode::F64(_)) => Value::Number(self.number(key)?),
            Node::Array { .. } => Value::Array(self.container(key)?),
            Node::Object { .. } => Value::Object(self.container(key)?),
        })
    }

    /// The text of the number under `key`.
    fn number(&self, key: &str) -> Option<&'a [u8]> {
        let text = self.behind(key)?;
        let len = text
            .iter()
            .take_while(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'))
            .count();
        (len > 0).then_some(&text[..len])
    }

    /// The text of the array or object under `key`.
    fn container(&self, key: &str) -> Option<&'a [u8]> {
        let text = self.behind(key)?;
        let mut depth = 0_usize;
        let mut inside = false;
        let mut escaped = false;
        for (at, byte) in text.iter().enumerate() {
            if inside {
                inside = escaped || *byte != b'"';
                escaped = !escaped && *byte == b'\\';
                continue;
            }
            match byte {
                b'"' => inside = true,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(&text[..=at]);
                    }
                }
                _ if depth == 0 => return None,
                _ => {}
            }
        }
        None
    }

    /// The text of the file from the value under `key` on.
    #[inline]
    fn behind(&self, key: &str) -> Option<&'a [u8]> {
        let text = self.data.get(self.offset(key)?..)?;
        // A key with escapes was decoded in place: its text in the file is another one.
        let text = text.strip_prefix(key.as_bytes())?.strip_prefix(b"\"")?;
        Some(trim_start(trim_start(text).strip_prefix(b":")?))
    }

    /// Offset in the file of the first byte of a key of the chunk.
    #[inline]
    fn offset(&self, key: &str) -> Option<usize> {
        let at = key.as_ptr().addr().checked_sub(self.base)?;
        Some(self.start + at.checked_sub(1)?)
    }

    /// Offset of the brace before the key whose text starts at `key`.
    #[inline]
    fn brace_before(&self, key: usize) -> Option<usize> {
        let before = self.data.get(..key)?.strip_suffix(b"\"")?;
        let spaces = before
            .iter()
            .rev()
            .take_while(|byte| is_space(**byte))
            .count();
        let brace = (before.len() - spaces).checked_sub(1)?;
        (self.data[brace] == b'{').then_some(brace)
    }
}

/// How many nodes a value takes.
#[inline]
fn span(node: Node<'_>) -> usize {
    match node {
        Node::Object { count, .. } | Node::Array { count, .. } => 1 + count,
        _ => 1,
    }
}

fn trim_start(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| is_space(**byte)).count();
    &text[spaces..]
}
