//! Writes a made-up trace: `cargo run --release --example generate -- SHAPE BYTES [LAYOUT [shuffled]] >FILE`
//!
//! Shapes are `small-ops`, `python-stacks`, `long-args` and `numbers`, layouts `native`, `pretty`,
//! `line` and `minified`. For a file of real events, see `replicate`.

use std::error::Error;
use std::io::{self, Write};

mod inputs;

use inputs::{Layout, Order, Shape};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |place: usize| words.get(place).map(String::as_str);
    let shape = Shape::ALL
        .into_iter()
        .find(|shape| Some(shape.name()) == word(0))
        .ok_or("usage: generate SHAPE BYTES [LAYOUT]")?;
    let bytes = word(1).ok_or("how many bytes?")?.parse()?;
    let layout = word(2).unwrap_or(Layout::Native.name());
    let layout = Layout::ALL
        .into_iter()
        .find(|known| known.name() == layout)
        .ok_or("no layout is called so")?;
    let order = if word(3) == Some("shuffled") {
        Order::Shuffled
    } else {
        Order::Written
    };
    let text = inputs::trace(shape, layout, order, bytes);
    io::stdout().lock().write_all(&text)?;
    Ok(())
}
