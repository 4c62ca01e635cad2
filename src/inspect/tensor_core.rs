//! Which kernels use matrix units (tensor cores, AMD matrix cores), and which operators could.
//!
//! A trace does not record it; names tell. A kernel uses them when its name has a word of
//! [`KERNEL_WORDS`] (instruction shapes such as `h884` or `16816`, instruction names, libraries whose
//! kernels have no other form) or, in the names of AMD's Tensile, a matrix instruction such as
//! `_MI16x16x16x1_`; and no word of [`SCALAR_WORDS`], with which the same libraries name their kernels
//! for ordinary units (`sm80_xmma_gemm_f32f32_…_ffma_…`). A kernel of Triton names no instruction and
//! counts as not using them.

/// Words in the names of kernels on matrix units, in lower case.
const KERNEL_WORDS: &[&str] = &[
    "h884",
    "s884",
    "h1688",
    "s1688",
    "c1688",
    "i8816",
    "16816",
    "16832",
    "hmma",
    "imma",
    "wgmma",
    "gmma",
    "tcgen05",
    "tensorop",
    "xmma_gemm",
    "xmma_sparse_gemm",
    "xmma_implicit_gemm",
    "xmma_fprop_implicit_gemm",
    "xmma_dgrad_implicit_gemm",
    "xmma_wgrad_implicit_gemm",
    "xmma_warp_specialized_implicit_gemm",
    "xmma_sparse_conv",
    "nvjet_",
    "flash_fwd",
    "flash_bwd",
    "fmha_cutlassf_f16",
    "fmha_cutlassf_bf16",
    "fmha_cutlassb_f16",
    "fmha_cutlassb_bf16",
    "mfma",
];

/// Words in the names of kernels of the same libraries on ordinary units.
const SCALAR_WORDS: &[&str] = &["_ffma_", "_dfma_", "simt"];

/// True for the name of a kernel on matrix units.
pub(super) fn is_used_by(kernel: &str) -> bool {
    let name = kernel.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    (has(KERNEL_WORDS) || names_matrix_instruction(kernel)) && !has(SCALAR_WORDS)
}

/// Tensile writes `_MI16x16x16x1_` for the matrix instruction of a kernel.
fn names_matrix_instruction(kernel: &str) -> bool {
    kernel.split('_').any(|part| {
        part.strip_prefix("MI").is_some_and(|shape| {
            shape.split('x').count() >= 3
                && shape
                    .split('x')
                    .all(|side| !side.is_empty() && side.bytes().all(|byte| byte.is_ascii_digit()))
        })
    })
}

/// Operators that autocast runs in half precision (PyTorch's list for `lower_precision_fp`), with the
/// operators that they are made of and their backward operators.
const OPERATORS: &[&str] = &[
    "aten::_convolution",
    "aten::conv1d",
    "aten::conv2d",
    "aten::conv3d",
    "aten::conv_tbc",
    "aten::conv_transpose1d",
    "aten::conv_transpose2d",
    "aten::conv_transpose3d",
    "aten::convolution",
    "aten::convolution_backward",
    "aten::cudnn_convolution",
    "aten::cudnn_convolution_transpose",
    "aten::cudnn_convolution_backward",
    "aten::cudnn_convolution_backward_input",
    "aten::cudnn_convolution_backward_weight",
    "aten::cudnn_convolution_transpose_backward",
    "aten::cudnn_convolution_transpose_backward_input",
    "aten::cudnn_convolution_transpose_backward_weight",
    "aten::miopen_convolution",
    "aten::miopen_convolution_transpose",
    "aten::prelu",
    "aten::addmm",
    "aten::addmm_",
    "aten::_addmm_activation",
    "aten::addmv",
    "aten::addr",
    "aten::matmul",
    "aten::mm",
    "aten::mv",
    "aten::linear",
    "aten::addbmm",
    "aten::baddbmm",
    "aten::bmm",
    "aten::chain_matmul",
    "aten::linalg_multi_dot",
    "aten::_scaled_mm",
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention_backward",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_efficient_attention_backward",
    "aten::_scaled_dot_product_cudnn_attention",
    "aten::_scaled_dot_product_cudnn_attention_backward",
    "aten::scaled_dot_product_attention",
    "aten::_flash_attention_forward",
    "aten::_flash_attention_backward",
    "aten::_efficient_attention_forward",
    "aten::_efficient_attention_backward",
    "aten::_thnn_fused_lstm_cell",
    "aten::_thnn_fused_gru_cell",
    "aten::_cudnn_rnn",
    "aten::_cudnn_rnn_backward",
    "aten::lstm_cell",
    "aten::gru_cell",
    "aten::rnn_tanh_cell",
    "aten::rnn_relu_cell",
];

/// Autograd nodes of [`OPERATORS`], without the number at the end of their names.
const NODES: &[&str] = &[
    "AddbmmBackward",
    "AddmmBackward",
    "AddmvBackward",
    "BaddbmmBackward",
    "BmmBackward",
    "ConvolutionBackward",
    "CudnnConvolutionBackward",
    "CudnnConvolutionTransposeBackward",
    "LinearBackward",
    "MiopenConvolutionBackward",
    "MmBackward",
    "MvBackward",
    "ScaledDotProductEfficientAttentionBackward",
    "ScaledDotProductFlashAttentionBackward",
];

/// True for the name of an operator that could use matrix units.
pub(super) fn is_open_to(operator: &str) -> bool {
    OPERATORS.contains(&operator)
        || NODES.contains(&operator.trim_end_matches(|c: char| c.is_ascii_digit()))
}

/// Words that PyTorch's TensorBoard plugin looks for in the names of kernels; case counts.
const PLUGIN_WORDS: &[&str] = &[
    "h884",
    "s884",
    "h1688",
    "s1688",
    "hmma",
    "i8816",
    "16816",
    "dgrad_1x1_stride_2x2",
    "first_layer_wgrad_kernel",
    "conv1x1",
    "conv2d_c1_k1",
    "direct_group",
    "xmma_implicit_gemm",
    "xmma_sparse_conv",
    "xmma_warp_specialized_implicit_gemm",
    "xmma_gemm",
    "xmma_sparse_gemm",
    "c1688",
];

/// True for the name of a kernel that the TensorBoard plugin takes to use tensor cores.
pub(super) fn is_used_by_plugin(kernel: &str) -> bool {
    PLUGIN_WORDS.iter().any(|word| kernel.contains(word))
}

/// Those of [`OPERATORS`] that the TensorBoard plugin does not know: its list is of 2021, and of NVIDIA.
const NOT_OF_PLUGIN: &[&str] = &[
    "aten::convolution_backward",
    "aten::miopen_convolution",
    "aten::miopen_convolution_transpose",
    "aten::_addmm_activation",
    "aten::_scaled_mm",
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_flash_attention_backward",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_efficient_attention_backward",
    "aten::_scaled_dot_product_cudnn_attention",
    "aten::_scaled_dot_product_cudnn_attention_backward",
    "aten::scaled_dot_product_attention",
    "aten::_flash_attention_forward",
    "aten::_flash_attention_backward",
    "aten::_efficient_attention_forward",
    "aten::_efficient_attention_backward",
    "aten::_cudnn_rnn",
    "aten::_cudnn_rnn_backward",
];

/// Autograd nodes that the plugin knows; the number at their end counts.
const PLUGIN_NODES: &[&str] = &[
    "AddbmmBackward",
    "AddmmBackward",
    "AddmvBackward",
    "BmmBackward0",
    "CudnnConvolutionBackward",
    "CudnnConvolutionTransposeBackward",
    "MmBackward",
    "MvBackward",
];

/// True for the name of an operator that the TensorBoard plugin takes to be eligible for tensor cores.
pub(super) fn is_open_to_by_plugin(operator: &str) -> bool {
    let is_operator = OPERATORS.contains(&operator) && !NOT_OF_PLUGIN.contains(&operator);
    is_operator || PLUGIN_NODES.contains(&operator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_which_kernels_use_matrix_units() {
        for kernel in [
            "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn",
            "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x128x64_warpgroupsize1x1x1_kernel",
            "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4>(Params)",
            "nvjet_tst_128x64_64x6_2x1_v_bz_TNT",
            "Cijk_Ailk_Bjlk_SB_Bias_MT64x16x16_MI16x16x1_SN_LDSB0",
        ] {
            assert!(is_used_by(kernel), "{kernel}");
        }
        for kernel in [
            "ampere_sgemm_128x64_nn",
            "void cutlass::Kernel<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)",
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_ffma_aligna4_kernel",
            "Cijk_Ailk_Bjlk_SB_MT64x64x8_SE_MIx_MI16",
            "triton_poi_fused_add_0",
        ] {
            assert!(!is_used_by(kernel), "{kernel}");
        }
    }

    #[test]
    fn operators_and_their_nodes_could() {
        for operator in [
            "aten::mm",
            "AddmmBackward0",
            "MmBackward",
            "ConvolutionBackward0",
        ] {
            assert!(is_open_to(operator), "{operator}");
        }
        for operator in ["aten::add", "AddBackward0", "mm"] {
            assert!(!is_open_to(operator), "{operator}");
        }
    }

    #[test]
    fn the_plugin_knows_no_operator_that_is_younger() {
        for operator in ["aten::mm", "aten::cudnn_convolution_backward", "MmBackward"] {
            assert!(is_open_to_by_plugin(operator), "{operator}");
        }
        for operator in ["aten::convolution_backward", "MmBackward0", "aten::add"] {
            assert!(!is_open_to_by_plugin(operator), "{operator}");
        }
        for operator in NOT_OF_PLUGIN {
            assert!(is_open_to(operator), "{operator}");
        }
    }
}
