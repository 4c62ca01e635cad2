//! Random training traces, the same for the same [`Plan`]: steps of forward, backward, recompute and
//! optimizer work on the host, launches, and device work on several streams, with the irregularities
//! that real traces have.

use proptest::prelude::*;

use super::seeded::Seeded;

/// What a trace is to look like.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "traits that combine freely")]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) steps: u64,
    pub(crate) layers: u64,
    /// Explicit phase annotations.
    pub(crate) annotated: bool,
    /// `ProfilerStep#` ranges.
    pub(crate) marked_steps: bool,
    /// Backward runs on a thread of its own.
    pub(crate) autograd_thread: bool,
    /// Blocks are checkpointed (re-run inside their first backward node).
    pub(crate) checkpointed: bool,
    /// Device work at all.
    pub(crate) devices: u64,
    pub(crate) streams: u64,
    /// Irregularities: unlinked work, overlaps, odd names, lost links.
    pub(crate) irregular: bool,
    /// Times have three decimals, else they are whole microseconds.
    pub(crate) fraction: bool,
    pub(crate) base_time: bool,
}

/// A modest number of cases; `PROPTEST_CASES` asks for another number, `TRACEKIT_SEED` for others.
pub(crate) fn few(cases: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    let seed = std::env::var("TRACEKIT_SEED").ok();
    ProptestConfig {
        cases: asked.map_or(cases, |cases| cases.parse().unwrap()),
        failure_persistence: None,
        // The same cases every time: what a change breaks must not depend on chance. The fuzz loop goes
        // on where these end.
        rng_seed: proptest::test_runner::RngSeed::Fixed(
            seed.map_or(1, |seed| seed.parse().unwrap()),
        ),
        ..ProptestConfig::default()
    }
}

/// Every kind of plan, small ones first when shrinking.
pub(crate) fn plans() -> impl Strategy<Value = Plan> {
    let shape = (any::<u64>(), 0..4u64, 1..4u64, 0..3u64, 1..4u64);
    let traits = (any::<[bool; 7]>(),);
    (shape, traits).prop_map(|((seed, steps, layers, devices, streams), (flags,))| {
        let [
            annotated,
            marked_steps,
            autograd_thread,
            checkpointed,
            irregular,
            fraction,
            base_time,
        ] = flags;
        Plan {
            seed,
            steps,
            layers,
            annotated,
            marked_steps,
            autograd_thread,
            checkpointed,
            devices,
            streams,
            irregular,
            fraction,
            base_time,
        }
    })
}

/// One event: its keys with their values as JSON text.
pub(crate) type Event = Vec<(&'static str, String)>;

/// A trace that is not written yet.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    /// Top-level keys before the events.
    pub(crate) head: Vec<(&'static str, String)>,
    pub(crate) events: Vec<Event>,
    /// Top-level keys after the events.
    pub(crate) tail: Vec<(&'static str, String)>,
}

/// How a trace is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// As libkineto does: keys of an event over several lines.
    Native,
    /// No white space at all.
    Minified,
    /// One space after every comma and colon, one line.
    OneLine,
    /// Every key on a line, indented; args too.
    Pretty,
}

impl Content {
    /// The text of the trace.
    pub(crate) fn write(&self, layout: Layout) -> Vec<u8> {
        let (colon, comma, line, inner) = match layout {
            Layout::Native => (": ", ", ", "\n", "\n    "),
            Layout::Minified => (":", ",", "", ""),
            Layout::OneLine => (": ", ", ", " ", " "),
            Layout::Pretty => (" : ", ",\r\n\t ", "\r\n", "\r\n\t\t"),
        };
        let mut fields: Vec<String> = Vec::new();
        for (key, value) in &self.head {
            fields.push(format!("\"{key}\"{colon}{value}"));
        }
        let events: Vec<String> = self
            .events
            .iter()
            .map(|event| {
                let pairs: Vec<String> = event
                    .iter()
                    .map(|(key, value)| format!("\"{key}\"{colon}{value}"))
                    .collect();
                format!(
                    "{{{inner}{}{line}}}",
                    pairs.join(&format!("{comma}{inner}"))
                )
            })
            .collect();
        fields.push(format!(
            "\"traceEvents\"{colon}[{line}{}{line}]",
            events.join(&format!(",{line}"))
        ));
        for (key, value) in &self.tail {
            fields.push(format!("\"{key}\"{colon}{value}"));
        }
        format!("{{{line}{}{line}}}{line}", fields.join(&format!(",{line}"))).into_bytes()
    }
}

const PID: u64 = 4100;
const MAIN: u64 = 4100;
const AUTOGRAD: u64 = 4177;

struct Builder {
    plan: Plan,
    random: Seeded,
    /// Nanoseconds of the host clock.
    now: u64,
    events: Vec<Event>,
    /// When each stream of each device is free.
    free: Vec<u64>,
    correlation: u64,
    sequence: u64,
    index: u64,
}

/// The trace of `plan`.
pub(crate) fn build(plan: &Plan) -> Content {
    let lanes = usize::try_from(plan.devices * plan.streams).unwrap();
    let mut builder = Builder {
        plan: plan.clone(),
        random: Seeded::new(plan.seed),
        now: 1_000_000,
        events: Vec::new(),
        free: vec![1_000_000; lanes],
        correlation: 100,
        sequence: 10,
        index: 0,
    };
    builder.metadata();
    if plan.irregular {
        builder.work_without_launch();
    }
    for step in 0..plan.steps {
        builder.step(step);
    }
    builder.events.push(vec![
        ("ph", "\"i\"".into()),
        ("name", "\"Record Window End\"".into()),
        ("pid", "\"\"".into()),
        ("tid", "\"\"".into()),
        ("ts", builder.time(builder.now)),
        ("s", "\"g\"".into()),
    ]);
    let mut head = vec![("schemaVersion", "1".to_owned())];
    if plan.devices > 0 {
        let devices: Vec<String> = (0..plan.devices)
            .map(|id| format!("{{\"id\": {id}, \"name\": \"Example GPU\"}}"))
            .collect();
        head.push(("deviceProperties", format!("[{}]", devices.join(", "))));
    }
    head.push(("displayTimeUnit", "\"ms\"".into()));
    let mut tail = vec![(
        "traceName",
        "\"example \\u0022 \\\\ ] } [ { name.json\"".to_owned(),
    )];
    if plan.base_time {
        tail.push(("baseTimeNanoseconds", "1790857026000000000".into()));
    }
    Content {
        head,
        events: builder.events,
        tail,
    }
}

impl Builder {
    /// A time as text in microseconds.
    fn time(&self, ns: u64) -> String {
        if self.plan.fraction {
            format!("{}.{:03}", ns / 1000, ns % 1000)
        } else {
            (ns / 1000).to_string()
        }
    }

    /// A random length below `most` microseconds, in the clock's resolution.
    fn length(&mut self, most: u64) -> u64 {
        let ns = self.random.below(most * 1000);
        if self.plan.fraction {
            ns
        } else {
            ns / 1000 * 1000
        }
    }

    fn wait(&mut self, most: u64) {
        self.now += self.length(most);
    }

    fn push(
        &mut self,
        cat: &str,
        name: &str,
        at: (u64, u64),
        span: (u64, u64),
        args: &[(&str, String)],
    ) {
        let args: Vec<String> = args
            .iter()
            .map(|(key, value)| format!("\"{key}\": {value}"))
            .collect();
        let mut event = vec![
            ("ph", "\"X\"".to_owned()),
            ("cat", format!("\"{cat}\"")),
            ("name", format!("\"{name}\"")),
            ("pid", at.0.to_string()),
            ("tid", at.1.to_string()),
            ("ts", self.time(span.0)),
            ("dur", self.time(span.1 - span.0)),
        ];
        if !args.is_empty() {
            event.push(("args", format!("{{{}}}", args.join(", "))));
        }
        self.events.push(event);
    }

    fn metadata(&mut self) {
        for (tid, name) in [(MAIN, "python"), (AUTOGRAD, "pt_autograd_0")] {
            self.events.push(vec![
                ("ph", "\"M\"".into()),
                ("name", "\"thread_name\"".into()),
                ("pid", PID.to_string()),
                ("tid", tid.to_string()),
                ("ts", self.time(self.now)),
                ("args", format!("{{\"name\": \"thread {tid} ({name})\"}}")),
            ]);
        }
    }

    /// Device work from before the window, and work whose launch is lost.
    fn work_without_launch(&mut self) {
        for lane in 0..self.free.len() {
            for correlation in [7, 0, 900_000_000] {
                self.device_work(lane, "early_gemm", correlation, self.now);
            }
        }
    }

    /// Runs `inside` under a host event that covers it exactly.
    fn range(
        &mut self,
        cat: &str,
        name: &str,
        tid: u64,
        args: &[(&str, String)],
        inside: impl FnOnce(&mut Self),
    ) {
        let place = self.events.len();
        let start = self.now;
        inside(self);
        if self.random.one_in(3) {
            self.wait(3);
        }
        self.push(cat, name, (PID, tid), (start, self.now), args);
        let event = self.events.pop().unwrap();
        self.events.insert(place, event);
    }

    fn op(
        &mut self,
        name: &str,
        tid: u64,
        sequence: Option<u64>,
        forward_thread: u64,
        inside: impl FnOnce(&mut Self),
    ) {
        self.index += 1;
        let mut args = vec![
            ("External id", (self.index + 5000).to_string()),
            ("Ev Idx", self.index.to_string()),
            ("Input Dims", "[[2, 8], [8, 8], []]".to_owned()),
        ];
        if let Some(sequence) = sequence {
            args.push(("Sequence number", sequence.to_string()));
            args.push(("Fwd thread id", forward_thread.to_string()));
        }
        self.range("cpu_op", name, tid, &args, inside);
    }

    /// A launch on `tid`, with its device work.
    fn launch(&mut self, tid: u64, name: &str) {
        self.wait(4);
        if self.free.is_empty() {
            return;
        }
        self.correlation += 1;
        let correlation = self.correlation;
        let (start, length) = (self.now, self.length(3));
        let args = [
            ("correlation", correlation.to_string()),
            ("cbid", "211".to_owned()),
        ];
        self.push(
            "cuda_runtime",
            "cudaLaunchKernel",
            (PID, tid),
            (start, start + length),
            &args,
        );
        self.now = start + length;
        let lane = self.random.index(self.free.len());
        self.device_work(lane, name, correlation, start);
        let lost = self.plan.irregular && self.random.one_in(9);
        if !lost {
            for (ph, at) in [("\"s\"", start), ("\"f\"", start + 2000)] {
                self.events.push(vec![
                    ("ph", ph.into()),
                    ("id", correlation.to_string()),
                    ("pid", PID.to_string()),
                    ("tid", tid.to_string()),
                    ("ts", self.time(at)),
                    ("cat", "\"ac2g\"".into()),
                    ("name", "\"ac2g\"".into()),
                ]);
            }
        }
        if self.plan.irregular && self.random.one_in(7) {
            // A graph launch: more work under the same correlation.
            let lane = self.random.index(self.free.len());
            self.device_work(lane, "graph_node", correlation, start);
        }
    }

    fn device_work(&mut self, lane: usize, name: &str, correlation: u64, launched: u64) {
        let streams = usize::try_from(self.plan.streams).unwrap();
        let (device, stream) = ((lane / streams) as u64, (lane % streams) as u64 * 13 + 7);
        let mut start = self.free[lane].max(launched + 1000);
        if self.random.one_in(2) {
            start += self.length(6);
        }
        if self.plan.irregular && self.random.one_in(6) && start > 4000 {
            start -= self.length(4);
        }
        let length = if self.random.one_in(12) {
            0
        } else {
            self.length(20)
        };
        let (cat, name) = match self.random.below(8) {
            0 => ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)"),
            1 => ("gpu_memset", "Memset (Device)"),
            2 => (
                "kernel",
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            ),
            3 if self.plan.irregular => ("kernel", "k\\u00e9rnel \\\"<\\\\d>\\\" }, { [ 你好"),
            _ => ("kernel", name),
        };
        let args = [
            ("External id", (correlation + 70_000).to_string()),
            ("device", device.to_string()),
            ("stream", stream.to_string()),
            ("correlation", correlation.to_string()),
            ("grid", "[2, 1, 1]".to_owned()),
        ];
        self.push(cat, name, (device, stream), (start, start + length), &args);
        self.free[lane] = self.free[lane].max(start + length);
    }

    /// Runs `inside` under a phase annotation, where there are any.
    fn phase(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        if self.plan.annotated {
            self.range("user_annotation", name, MAIN, &[], inside);
        } else {
            inside(self);
        }
    }

    fn step(&mut self, number: u64) {
        if self.plan.marked_steps {
            self.range(
                "user_annotation",
                &format!("ProfilerStep#{}", number + 3),
                MAIN,
                &[],
                Self::body_of_step,
            );
        } else {
            self.body_of_step();
        }
        self.wait(5);
        if self.plan.irregular && self.random.one_in(2) {
            self.op("aten::copy_", MAIN, None, 0, |b| {
                b.launch(MAIN, "between_steps");
            });
        }
    }

    fn body_of_step(&mut self) {
        self.range(
            "user_annotation",
            "Optimizer.zero_grad#AdamW.zero_grad",
            MAIN,
            &[],
            |b| b.launch(MAIN, "fill"),
        );
        let layers = self.plan.layers;
        let mut sequences = Vec::new();
        self.phase("forward", |b| {
            for layer in 0..layers {
                sequences.push(b.block(MAIN, layer, true));
            }
        });
        let tid = if self.plan.autograd_thread {
            AUTOGRAD
        } else {
            MAIN
        };
        self.op("aten::ones_like", MAIN, None, 0, |b| b.launch(MAIN, "fill"));
        self.phase("backward", |b| {
            for layer in (0..layers).rev() {
                let layer_sequences = &sequences[usize::try_from(layer).unwrap()];
                for (place, sequence) in layer_sequences.iter().rev().enumerate() {
                    b.node(tid, *sequence, place == 0 && b.plan.checkpointed, layer);
                }
            }
        });
        if self.random.one_in(2) {
            self.op("aten::norm", MAIN, None, 0, |b| b.launch(MAIN, "norm"));
        }
        self.phase("optimizer", |b| {
            b.range(
                "user_annotation",
                "Optimizer.step#AdamW.step",
                MAIN,
                &[],
                |b| {
                    b.op("aten::_foreach_add_", MAIN, None, 0, |b| {
                        b.launch(MAIN, "multi_tensor_apply");
                    });
                },
            );
        });
    }

    /// The forward operators of one layer; returns their sequence numbers.
    fn block(&mut self, tid: u64, layer: u64, main: bool) -> Vec<u64> {
        let mut sequences = Vec::new();
        for name in ["aten::layer_norm", "aten::linear", "aten::gelu"] {
            self.sequence += 1;
            let sequence = if main {
                self.sequence
            } else {
                self.sequence + 100_000
            };
            sequences.push(sequence);
            self.op(name, tid, Some(sequence), 0, |b| {
                b.launch(tid, &format!("{}_{layer}", &name[6..]));
                if layer % 2 == 1 {
                    b.op("aten::addmm", tid, None, 0, |b| b.launch(tid, "gemm"));
                }
            });
        }
        sequences
    }

    /// One backward node, with the layer run again in it when it is checkpointed.
    fn node(&mut self, tid: u64, sequence: u64, again: bool, layer: u64) {
        let name = "GeluBackward0";
        self.op(
            &format!("autograd::engine::evaluate_function: {name}"),
            tid,
            Some(sequence),
            1,
            |b| {
                b.op(name, tid, Some(sequence), 1, |b| {
                    if again {
                        b.block(tid, layer, false);
                    }
                    b.op("aten::gelu_backward", tid, None, 0, |b| {
                        b.launch(tid, "gelu_backward");
                    });
                });
            },
        );
    }
}
