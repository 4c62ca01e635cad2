//! Traces for the benchmarks, made up but of the shapes that real ones have. The same arguments give
//! the same bytes.
//!
//! A trace is a training loop on one device: annotated steps of a forward pass, a backward pass on
//! the engine's thread and an optimizer, nested operators, launches, flows and kernels.

use std::fmt::Write as _;

/// What the events have in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Operators, launches, flows and kernels with few arguments.
    SmallOps,
    /// The same under Python frames: six of ten events are frames with long names.
    PythonStacks,
    /// Operators with shapes, strides, types and concrete inputs.
    LongArgs,
    /// Memory events between the operators: little text, many digits.
    Numbers,
}

impl Shape {
    /// Every shape.
    pub(crate) const ALL: [Self; 4] = [
        Self::SmallOps,
        Self::PythonStacks,
        Self::LongArgs,
        Self::Numbers,
    ];

    /// Its name in results and on command lines.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SmallOps => "small-ops",
            Self::PythonStacks => "python-stacks",
            Self::LongArgs => "long-args",
            Self::Numbers => "numbers",
        }
    }
}

/// How the text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// As the profiler writes it: several values a line.
    Native,
    /// One value a line.
    Pretty,
    /// On one line, with a space behind commas and colons, as scripts write it.
    Line,
    /// Without white space.
    Minified,
}

impl Layout {
    /// Every layout.
    pub(crate) const ALL: [Self; 4] = [Self::Native, Self::Pretty, Self::Line, Self::Minified];

    /// Its name in results and on command lines.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Pretty => "pretty",
            Self::Line => "line",
            Self::Minified => "minified",
        }
    }
}

/// What stands between the values of an event.
struct Style {
    open: &'static str,
    next: &'static str,
    line: &'static str,
    colon: &'static str,
    args: &'static str,
    args_next: &'static str,
    args_close: &'static str,
    close: &'static str,
}

impl Layout {
    fn style(self) -> Style {
        match self {
            Self::Native => Style {
                open: "\n  {\n    ",
                next: ", ",
                line: ",\n    ",
                colon: ": ",
                args: "{\n      ",
                args_next: ", ",
                args_close: "\n    }",
                close: "\n  }",
            },
            Self::Pretty => Style {
                open: "\n    {\n      ",
                next: ",\n      ",
                line: ",\n      ",
                colon: ": ",
                args: "{\n        ",
                args_next: ",\n        ",
                args_close: "\n      }",
                close: "\n    }",
            },
            Self::Line => Style {
                open: "{",
                next: ", ",
                line: ", ",
                colon: ": ",
                args: "{",
                args_next: ", ",
                args_close: "}",
                close: "}",
            },
            Self::Minified => Style {
                open: "{",
                next: ",",
                line: ",",
                colon: ":",
                args: "{",
                args_next: ",",
                args_close: "}",
                close: "}",
            },
        }
    }
}

/// In which order the events are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Operators by start, then the device: nearly sorted, as the profiler writes them.
    Written,
    /// Anyhow.
    Shuffled,
}

/// A trace of at least `bytes` bytes.
pub(crate) fn trace(shape: Shape, layout: Layout, order: Order, bytes: usize) -> Vec<u8> {
    let mut training = Training::new(shape);
    let mut events = Vec::new();
    let mut len = 0;
    while len < bytes {
        training.step();
        for event in training.events.drain(..) {
            let text = event.text(layout);
            len += text.len() + 1;
            events.push(text);
        }
    }
    if order == Order::Shuffled {
        for place in (1..events.len()).rev() {
            events.swap(place, training.random.below(place + 1));
        }
    }
    let mut out = String::with_capacity(len + 1024);
    out.push_str(
        "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\n      \"id\": 0, \
         \"name\": \"Generated\", \"totalGlobalMem\": 42297524224\n    }\n  ],\n  \
         \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, \"world_size\": 1},\n  \
         \"baseTimeNanoseconds\": 1712194000000000000,\n  \"traceEvents\": [",
    );
    let separator = if layout == Layout::Line { ", " } else { "," };
    for (place, event) in events.iter().enumerate() {
        if place > 0 {
            out.push_str(separator);
        }
        out.push_str(event);
    }
    out.push_str("\n  ],\n  \"traceName\": \"generated.pt.trace.json\"\n}\n");
    out.into_bytes()
}

/// Small numbers without pattern (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap_or(0)
    }
}

/// Keys with their values as JSON text.
type Members = Vec<(&'static str, String)>;

struct Event {
    members: Members,
    args: Members,
}

impl Event {
    fn text(&self, layout: Layout) -> String {
        let style = layout.style();
        let mut out = String::with_capacity(512);
        out.push_str(style.open);
        for (place, (key, value)) in self.members.iter().enumerate() {
            if place > 0 {
                // The profiler starts a line at the time of an event.
                out.push_str(if *key == "ts" { style.line } else { style.next });
            }
            let _ = write!(out, "\"{key}\"{}{value}", style.colon);
        }
        if !self.args.is_empty() {
            let _ = write!(out, "{}\"args\"{}", style.line, style.colon);
            out.push_str(style.args);
            for (place, (key, value)) in self.args.iter().enumerate() {
                if place > 0 {
                    out.push_str(style.args_next);
                }
                let _ = write!(out, "\"{key}\"{}{value}", style.colon);
            }
            out.push_str(style.args_close);
        }
        out.push_str(style.close);
        out
    }
}

const PID: u64 = 2_910_249;
const MAIN: u64 = 2_910_249;
const ENGINE: u64 = 2_919_752;
const STREAM: u64 = 7;
/// How many layers the model has.
const LAYERS: usize = 24;

const FRAMES: [&str; 6] = [
    "train.py(118): training_step",
    "torch/nn/modules/module.py(1771): _wrapped_call_impl",
    "torch/nn/modules/module.py(1782): _call_impl",
    "transformers/models/llama/modeling_llama.py(312): forward",
    "torch/nn/modules/linear.py(125): forward",
    "<built-in function linear>",
];

/// An outer operator, the one inside it, the kernel it launches, and its node in backward.
const OPERATORS: [[&str; 4]; 5] = [
    [
        "aten::linear",
        "aten::addmm",
        "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn",
        "AddmmBackward0",
    ],
    [
        "aten::layer_norm",
        "aten::native_layer_norm",
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, \
         c10::BFloat16 const*, float*, float*, c10::BFloat16*)",
        "NativeLayerNormBackward0",
    ],
    [
        "aten::softmax",
        "aten::_softmax",
        "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, false>\
         (c10::BFloat16*, c10::BFloat16 const*, int, int, int)",
        "SoftmaxBackward0",
    ],
    [
        "aten::gelu",
        "aten::empty_strided",
        "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl, \
         at::detail::Array<char*, 2>>(int, at::native::GeluCUDAKernelImpl, at::detail::Array<char*, 2>)",
        "GeluBackward0",
    ],
    [
        "aten::matmul",
        "aten::bmm",
        "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn",
        "BmmBackward0",
    ],
];

/// A training loop that writes down what it does.
struct Training {
    shape: Shape,
    random: Random,
    events: Vec<Event>,
    /// Device work, which the profiler writes behind the host's.
    device: Vec<Event>,
    /// Time of the host, in nanoseconds.
    now: u64,
    /// When the device is free.
    device_free: u64,
    external: u64,
    correlation: u64,
    sequence: u64,
    index: u64,
    step: u64,
    allocated: u64,
}

impl Training {
    fn new(shape: Shape) -> Self {
        Self {
            shape,
            random: Random(0x9e37_79b9_7f4a_7c15),
            events: Vec::new(),
            device: Vec::new(),
            now: 5_109_498_832_413_303,
            device_free: 0,
            external: 1,
            correlation: 1000,
            sequence: 1,
            index: 0,
            step: 0,
            allocated: 8 << 30,
        }
    }

    /// One step of training.
    fn step(&mut self) {
        self.step += 1;
        let start = self.now;
        let forward = self.now;
        let first = self.sequence;
        for layer in 0..LAYERS {
            self.operator(layer, MAIN);
            self.sequence += 1;
        }
        self.annotation("forward", forward);
        let backward = self.now;
        for layer in (0..LAYERS).rev() {
            self.node(layer, first + layer as u64);
        }
        self.annotation("backward", backward);
        let optimizer = self.now;
        for layer in 0..LAYERS / 4 {
            self.operator(layer, MAIN);
            self.sequence += 1;
        }
        self.annotation("Optimizer.step#AdamW.step", optimizer);
        let name = format!("ProfilerStep#{}", self.step);
        self.annotation(&name, start);
        self.now += 20_000;
        self.events.append(&mut self.device);
    }

    /// An operator with one inside that launches a kernel.
    fn operator(&mut self, layer: usize, thread: u64) {
        let [outer, inner, kernel, _] = OPERATORS[layer % OPERATORS.len()];
        if self.shape == Shape::PythonStacks {
            self.frames();
        }
        let took = 30_000 + self.random.next() % 20_000;
        self.host(outer, thread, self.now, took, Some(self.sequence));
        self.host(inner, thread, self.now + 3_000, took - 6_000, None);
        self.launch(kernel, thread, self.now + 9_000);
        if self.shape == Shape::Numbers {
            for part in 0..4 {
                self.memory(thread, self.now + 4_000 + part * 500);
            }
        }
        self.now += took + 1_000 + self.random.next() % 4_000;
    }

    /// A node of autograd on the engine's thread.
    fn node(&mut self, layer: usize, sequence: u64) {
        let [_, inner, kernel, node] = OPERATORS[layer % OPERATORS.len()];
        let took = 60_000 + self.random.next() % 20_000;
        let engine = format!("autograd::engine::evaluate_function: {node}");
        self.host(&engine, ENGINE, self.now, took, Some(sequence));
        self.host(node, ENGINE, self.now + 2_000, took - 5_000, Some(sequence));
        self.host(inner, ENGINE, self.now + 5_000, took - 12_000, None);
        self.launch(kernel, ENGINE, self.now + 20_000);
        self.now += took + 1_000;
    }

    fn annotation(&mut self, name: &str, start: u64) {
        let members = complete("user_annotation", name, MAIN, start, self.now - start);
        let args = vec![("External id", self.id()), ("Ev Idx", self.number())];
        self.events.push(Event { members, args });
    }

    fn frames(&mut self) {
        for (depth, frame) in (0..).zip(FRAMES) {
            let members = complete(
                "python_function",
                frame,
                MAIN,
                self.now - 2_000 + 100 * depth,
                60_000,
            );
            let args = vec![
                ("Python parent id", self.index.saturating_sub(1).to_string()),
                ("Python id", self.index.to_string()),
                ("Ev Idx", self.number()),
            ];
            self.events.push(Event { members, args });
        }
    }

    fn host(&mut self, name: &str, thread: u64, start: u64, took: u64, sequence: Option<u64>) {
        let mut args = vec![
            ("External id", self.id()),
            ("Record function id", self.external.to_string()),
        ];
        if let Some(sequence) = sequence {
            let thread = u64::from(thread == ENGINE);
            args.push(("Sequence number", sequence.to_string()));
            args.push(("Fwd thread id", thread.to_string()));
        }
        if self.shape == Shape::LongArgs {
            let rows = 1 << (5 + self.random.below(8));
            args.push((
                "Concrete Inputs",
                "[\"\", \"\", \"\", \"-1\", \"False\"]".to_owned(),
            ));
            args.push((
                "Input type",
                "[\"c10::BFloat16\", \"c10::BFloat16\", \"c10::BFloat16\", \"Scalar\", \"Scalar\"]"
                    .to_owned(),
            ));
            args.push((
                "Input Strides",
                format!("[[{}, 4096, 1], [1, 4096], [1], [], []]", rows * 4096),
            ));
            args.push((
                "Input Dims",
                format!("[[8, {rows}, 4096], [4096, 4096], [4096], [], []]"),
            ));
        }
        args.push(("Ev Idx", self.number()));
        self.events.push(Event {
            members: complete("cpu_op", name, thread, start, took),
            args,
        });
    }

    /// A launch, its flow, and the kernel that runs when the device gets to it.
    fn launch(&mut self, kernel: &str, thread: u64, start: u64) {
        self.correlation += 1 + self.random.next() % 3;
        let correlation = self.correlation;
        let external = self.external - 1;
        self.events.push(Event {
            members: complete("cuda_runtime", "cudaLaunchKernel", thread, start, 6_123),
            args: vec![
                ("External id", external.to_string()),
                ("cbid", "211".to_owned()),
                ("correlation", correlation.to_string()),
            ],
        });
        let flow = |ph: &str, thread: u64, at: u64| {
            let mut members: Members = vec![
                ("ph", quoted(ph)),
                ("id", correlation.to_string()),
                ("pid", PID.to_string()),
                ("tid", thread.to_string()),
                ("ts", microseconds(at)),
                ("cat", quoted("ac2g")),
                ("name", quoted("ac2g")),
            ];
            if ph == "f" {
                "0".clone_into(&mut members[2].1);
                members.push(("bp", quoted("e")));
            }
            Event {
                members,
                args: Vec::new(),
            }
        };
        self.events.push(flow("s", thread, start));
        let took = 8_000 + self.random.next() % 60_000;
        let at = self.device_free.max(start + 9_000);
        self.device_free = at + took + 700;
        let mut members = complete("kernel", kernel, STREAM, at, took);
        "0".clone_into(&mut members[3].1);
        let numbers = [
            ("External id", external.to_string()),
            ("queued", "0".to_owned()),
            ("device", "0".to_owned()),
            ("context", "1".to_owned()),
            ("stream", STREAM.to_string()),
            ("correlation", correlation.to_string()),
            ("registers per thread", "168".to_owned()),
            ("shared memory", "98304".to_owned()),
            ("blocks per SM", "1.185185".to_owned()),
            ("warps per SM", "9.481482".to_owned()),
            ("grid", "[32, 4, 1]".to_owned()),
            ("block", "[256, 1, 1]".to_owned()),
            ("est. achieved occupancy %", "15".to_owned()),
        ];
        self.device.push(Event {
            members,
            args: numbers.into(),
        });
        self.device.push(flow("f", STREAM, at));
    }

    fn memory(&mut self, thread: u64, at: u64) {
        let bytes = 512 << self.random.below(16);
        self.allocated += bytes;
        let index = self.number();
        self.events.push(Event {
            members: vec![
                ("ph", quoted("i")),
                ("cat", quoted("cpu_instant_event")),
                ("s", quoted("t")),
                ("name", quoted("[memory]")),
                ("pid", PID.to_string()),
                ("tid", thread.to_string()),
                ("ts", microseconds(at)),
            ],
            args: vec![
                ("Total Reserved", (self.allocated + (2 << 30)).to_string()),
                ("Total Allocated", self.allocated.to_string()),
                ("Bytes", bytes.to_string()),
                ("Addr", (0x7f00_0000_0000 + self.allocated).to_string()),
                ("Device Id", "0".to_owned()),
                ("Device Type", "1".to_owned()),
                ("Ev Idx", index),
            ],
        });
    }

    /// A new External id.
    fn id(&mut self) -> String {
        self.external += 1;
        (self.external - 1).to_string()
    }

    /// The number of the next event.
    fn number(&mut self) -> String {
        self.index += 1;
        (self.index - 1).to_string()
    }
}

fn complete(cat: &str, name: &str, thread: u64, start: u64, took: u64) -> Members {
    vec![
        ("ph", quoted("X")),
        ("cat", quoted(cat)),
        ("name", quoted(name)),
        ("pid", PID.to_string()),
        ("tid", thread.to_string()),
        ("ts", microseconds(start)),
        ("dur", microseconds(took)),
    ]
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
