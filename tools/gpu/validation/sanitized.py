"""Tests to run under compute-sanitizer, which slows them down by 10 to 100 times: one small test
that launches each kernel.  tests/tools/test_gpu_check.py checks that every kernel is listed."""
import re

# Kernels by test.  The host target logs the name of every launch, to find the test of a new kernel.
TESTS = {
    "gemm: C may be NULL when beta is 0": "gemm_simt gemm_wmma",
    "thin: unaligned rows are copied": "gemm_thin",
    "gemm batch: in place": "gemm_wgmma",
    "gemv: nothing is read beyond the operands": "gemv",
    "gemm: k = 0 leaves the epilogue of beta C": "column_sum",
    "column sum: overflow in the last rounding raises found_inf, and so does a NaN":
        "column_totals",
    "dbias: as many row blocks are summed in parallel as workspace allows": "column_sum_chunks",
    "split-k: the epilogue runs once, after the sum": "split_k_sum",
    "copies: an aligned operand is read in place": "copy_rows",
    "gemm batch: arrays of pointers with shared, in-place and absent matrices": "fill_wgmma_table",
    "gemm group: any product raises found_inf, none clears it": "fill_group_table",
    "gemm ragged: invalid ends cause no access outside the matrices": "fill_ragged_table",
    "conv: tensors misaligned by one element": "conv_simt conv_wmma",
    "conv copies: filters of one tap, one row, one column, and dilated ones are exact":
        "pad_channels",
    "conv windows: results are exact": "copy_windows store_windows",
    "conv wgmma: the limits of im2col TMA are supported and exceeded limits rejected":
        "conv_wgmma wgrad_wgmma",
    "conv wgmma: stride phases of dgrad are exact": "dgrad_wgmma",
    "conv epilogue: a few generated options": "conv_depthwise",
    "conv: typical layers are exact": "conv_depthwise_wgrad",
    "scaler: the loss times S is rounded once": "scale_array",
    "all-reduce: the factors multiply before and after the sum": "multiply_list",
    "report: fp32 beyond the range of the others": "measure_list report_tensors",
    "layout: small, odd and aligned images": "transpose_tiles",
    "accumulate: overflows of opposite signs do not cancel": "accumulate_list",
    "step lists: empty tensors first, last, in the middle and alone": "update_list measure_tensors",
    "scaler state: amax distinguishes NaN from infinity": "update_scaler_alone",
    "clip: the factor equals the documented formula": "clip_alone",
    "optimizer options: the loss of the regularizers is exact": "measure_master",
    "model: the default rounds to nearest and clamps": "copy_list",
    "ranks: without scalers, all ranks skip one step together": "write_message take_message",
    "xent: small batches": "xent_warp_per_row mean_loss",
    "xent: same bits in repeated calls, in place and out of place": "xent_block_per_row",
    "xent weights: a confident row keeps loss and gradient": "xent_targets",
    "xent ignore: if no row is left, the loss is NaN and the gradient 0": "count_rows",
    "xent count: adds the rows that are not ignored": "count_rows",
    "loss: weights, ignored targets and the loss scale":
        "losses_of_chunk count_targets finish_loss",
    "pool: unaligned tensors":
        "largest_of_windows mean_of_windows largest_backward mean_backward indexed_backward",
    "batch norm: a non-finite gradient affects only its channel":
        "measure_pieces finish_statistics normalise sum_pieces finish_sums input_gradient",
    "embedding: a sum that overflows FP16 raises found_inf":
        "embedding_gather embedding_keys embedding_begins embedding_sum embedding_combine "
        "embedding_zeros",
    "norm: a dropped NaN has no effect": "norm_vectors",
    "norm: an infinite gradient is reported": "norm_gradients combine_ranges",
    "pointwise: non-finite values and values at the ends of the range": "pointwise_elements",
    "sum rows: overflow and NaN stay in their column": "sum_repetitions",
    "strided copy: sums are fp32, and infinity, NaN and the sign of 0 are copied": "copy_strided",
    "glu: every activation is within its bound": "glu_rows glu_gradient_rows",
    "rope: position 0 leaves every element unchanged": "rotate_rows",
    "softmax: NaN and infinity stay in their row": "softmax_rows softmax_gradient_rows",
    "dropout: non-finite values are dropped too": "dropout_elements",
    "attention: grouped query heads":
        "attention_forward_plain attention_dq_plain attention_dkv_plain attention_forward_mma "
        "attention_dq_mma attention_dkv_mma attention_dsink_plain",
    "graph: a resumed run has the masks of the uninterrupted run": "count_one",
    "rnn: all optional tensors can be NULL":
        "rnn_step_forward rnn_reset_h rnn_step_backward rnn_reset_backward rnn_gather_rows "
        "rnn_bias_grads",
    "rnn: all cells and types are within tolerance": "rnn_fused_forward rnn_fused_backward",
    "rnn: more k tiles than pipeline stages are within tolerance in all cells":
        "rnn_fused_wgmma_forward rnn_fused_wgmma_backward",
    "rnn: inputs added to the gates, no biases, a clipped c": "rnn_sum_gates",
}
KERNELS = {kernel for kernels in TESTS.values() for kernel in kernels.split()}


def kernels_of(source: str) -> list:
    """Returns the names of the kernels that a file defines."""
    return re.findall(r"^MP_KERNEL\((?:[^()]|\([^()]*\))*\)\s+(\w+)\(", source, re.MULTILINE)


def test_spec() -> str:
    """Returns all tests as a Catch2 test specification."""
    return ",".join(re.sub(r'([\\,\[\]~"*])', r"\\\1", name) for name in TESTS)
