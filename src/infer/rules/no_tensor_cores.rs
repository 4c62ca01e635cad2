//! Matrix work that does not run on matrix units.

use std::sync::LazyLock;

use regex::Regex;

use super::super::case::{Case, Judgement, Rows, percent, share, work_of};
use super::super::condition::Condition;
use super::super::inference::{Category, Level};
use super::super::sum::column;
use super::Rule;

pub(super) const RULE: Rule = Rule {
    code: "no_tensor_cores",
    category: Category::Compute,
    question: "Does matrix work miss the matrix units?",
    method: "Kernels of libraries for matrix products, convolutions and attention, by their names; \
             those without the mark of an instruction for matrix units in their name. Their share of the window.",
    next_action: "torch.autocast with bfloat16 or float16, torch.set_float32_matmul_precision(\"high\"), sizes that \
                  are multiples of 8.",
    needs_launches: false,
    judge,
};

/// Kernels of libraries that multiply matrices. Operators do not tell: they launch copies and additions,
/// too, and kernels of Triton name no instruction. Kernels of FBGEMM look tables up.
static ELIGIBLE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(^|[^b])gemm|wgrad|dgrad|fprop|implicit_convolve|winograd|fmha|flash_(fwd|bwd)|^Cijk_|nvjet_|grouped_conv|conv2d_",
    )
});

/// Marks of matrix instructions in names: shapes, instructions, libraries that have no others.
static MARKED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)[hsc](884|1688)|i8816|168(16|32)|161616|tensor\d+x\d+x\d+|hmma|imma|wgmma|gmma|tcgen05|tensorop|nvjet_|flash_(fwd|bwd)|fmha_cutlass[fb]_b?f16|mfma|_mi\d+x\d+x\d+|gtcx|xdl|xmma_gemm_(b?f16|tf32)",
    )
});

/// Devices with matrix units, by their names.
static EQUIPPED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"V100|T4|TITAN V|TITAN RTX|RTX|A10|A30|A40|A100|A800|L4|L40|H20|H100|H200|H800|GH200|B100|B200|GB200|MI[1-3]\d\d",
    )
});

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("patterns of this file are regular expressions")
}

fn judge(case: &mut Case<'_>) -> Judgement {
    let Some(window) = case.window() else {
        return Judgement::not_applicable("there is no device work");
    };
    let matrix = work_of(&["compute"]).and(Condition::Matches("name", &ELIGIBLE));
    let eligible = case.ns("matrix work", &column("held_ns"), &matrix);
    if eligible == 0 {
        return Judgement::not_applicable("there is no matrix work");
    }
    let used = case.ns(
        "of it on matrix units",
        &column("held_ns"),
        &matrix.and(Condition::Matches("name", &MARKED)),
    );
    let equipped = case.count(
        "files from devices with matrix units",
        &Rows::of("files").and(Condition::Matches("device_names", &EQUIPPED)),
    );
    if equipped == 0 && used == 0 {
        return Judgement::insufficient(
            "the files do not tell whether the device has matrix units",
        );
    }
    let unused = eligible - used;
    let others = matrix.and(Condition::MatchesNot("name", &MARKED));
    case.blame(&column("held_ns"), &others);
    let of_window = share(unused, window);
    let (part, on) = (percent(of_window), percent(share(used, eligible)));
    Judgement::when(
        of_window >= case.limit("unused_share"),
        format!("{part} of the window is matrix work off the matrix units; {on} of it is on them"),
        format!("only {part} of the window is matrix work off the matrix units"),
    )
    .winning(unused, window)
    .at_most(
        Level::Medium,
        "which units a kernel uses is known from its name only",
    )
}
