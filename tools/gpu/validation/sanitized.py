"""Tests to run under compute-sanitizer, which slows them down by 10 to 100 times: one small test
that launches each kernel.  tests/tools/test_gpu_check.py checks that every kernel is listed."""
import re

# The test of each kernel was found on the host target, which logs the name of every launch.
TESTS = {
    "gemm_simt": "gemm: C may be NULL when beta is 0",
    "gemm_wmma": "gemm: C may be NULL when beta is 0",
    "gemm_wgmma": "gemm batch: in place",
    "gemv": "gemv: the complete backward epilogue",
    "column_sum": "gemv: the complete backward epilogue",
    "column_totals": "column sum: overflow in the last rounding raises found_inf, and so does a NaN",
    "column_sum_chunks": "dbias: as many row blocks are summed in parallel as workspace allows",
    "split_k_sum": "split-k: the epilogue runs once, after the sum",
    "copy_rows": "copies: an aligned operand is read in place",
    "fill_wgmma_table": "gemm batch: arrays of pointers with shared, in-place and absent matrices",
    "fill_group_table": "gemm group: any product raises found_inf, none clears it",
    "fill_ragged_table": "gemm ragged: invalid ends cause no access outside the matrices",
    "conv_simt": "conv: tensors misaligned by one element",
    "conv_wmma": "conv: tensors misaligned by one element",
    "pad_channels": "conv copies: filters of one tap, one row, one column, and dilated ones are exact",
    "conv_wgmma": "conv wgmma: the limits of im2col TMA are supported and exceeded limits rejected",
    "wgrad_wgmma": "conv wgmma: the limits of im2col TMA are supported and exceeded limits rejected",
    "dgrad_wgmma": "conv wgmma: stride phases of dgrad are exact",
    "conv_depthwise": "conv epilogue: a few generated options",
    "conv_depthwise_wgrad": "conv: typical layers are exact",
    "scale_array": "scaler: the loss times S is rounded once",
    "multiply_list": "all-reduce: the factors multiply before and after the sum",
    "measure_list": "report: fp32 beyond the range of the others",
    "transpose_tiles": "layout: small, odd and aligned images",
    "accumulate_list": "accumulate: overflows of opposite signs do not cancel",
    "update_list": "optimizer: a NaN in an odd tail skips the step",
    "update_scaler_alone": "query: a non-finite amax is an overflow",
    "clip_alone": "clip: the factor equals the documented formula",
    "measure_tensors": "optimizer: a NaN in an odd tail skips the step",
    "measure_master": "optimizer options: the loss of the regularizers is exact",
    "copy_list": "model: the default rounds to nearest and clamps",
    "write_message": "ranks: without scalers, all ranks skip one step together",
    "take_message": "ranks: without scalers, all ranks skip one step together",
    "xent_warp_per_row": "xent: a label out of range makes its row NaN",
    "xent_block_per_row": "xent long: same bits in repeated calls, in place and out of place",
    "count_rows": "xent ignore: if no row is left, the loss is NaN and the gradient 0",
    "mean_loss": "xent: a label out of range makes its row NaN",
    "losses_of_chunk": "loss: weights, ignored targets and the loss scale",
    "count_targets": "loss: weights, ignored targets and the loss scale",
    "finish_loss": "loss: weights, ignored targets and the loss scale",
    "largest_of_windows": "pool: unaligned tensors",
    "mean_of_windows": "pool: unaligned tensors",
    "largest_backward": "pool: unaligned tensors",
    "mean_backward": "pool: unaligned tensors",
    "dilated_max_backward": "pool: output sizes equal torch's with ceil_mode and dilation",
    "measure_pieces": "batch norm: gradients equal the numerical derivative",
    "finish_statistics": "batch norm: gradients equal the numerical derivative",
    "normalise": "batch norm: gradients equal the numerical derivative",
    "sum_pieces": "batch norm: gradients equal the numerical derivative",
    "finish_sums": "batch norm: gradients equal the numerical derivative",
    "input_gradient": "batch norm: gradients equal the numerical derivative",
    "embedding_gather": "embedding: optional outputs can be NULL",
    "embedding_keys": "embedding: optional outputs can be NULL",
    "embedding_begins": "embedding: optional outputs can be NULL",
    "embedding_sum": "embedding: optional outputs can be NULL",
    "embedding_combine": "embedding: optional outputs can be NULL",
    "embedding_zeros": "embedding: optional outputs can be NULL",
    "pointwise_elements": "pointwise: non-finite values and values at the ends of the range",
    "dropout_elements": "dropout: non-finite values are dropped too",
    "count_one": "graph: a resumed run has the masks of the uninterrupted run",
    "rnn_step_forward": "rnn: all optional tensors can be NULL",
    "rnn_reset_h": "rnn: all optional tensors can be NULL",
    "rnn_step_backward": "rnn: all optional tensors can be NULL",
    "rnn_reset_backward": "rnn: all optional tensors can be NULL",
    "rnn_gather_rows": "rnn: all optional tensors can be NULL",
    "rnn_bias_grads": "rnn: all optional tensors can be NULL",
    "rnn_fused_forward": "rnn: all cells and types are within tolerance",
    "rnn_fused_backward": "rnn: all cells and types are within tolerance",
    "rnn_fused_wgmma_forward": "rnn: more k tiles than pipeline stages are within tolerance in all cells",
    "rnn_fused_wgmma_backward": "rnn: more k tiles than pipeline stages are within tolerance in all cells",
    "rnn_sum_gates": "rnn: inputs added to the gates, no biases, a clipped c",
}


def kernels_of(source: str) -> list:
    """Returns the names of the kernels that a file defines."""
    return re.findall(r"^MP_KERNEL\((?:[^()]|\([^()]*\))*\)\s+(\w+)\(", source, re.MULTILINE)


def test_spec() -> str:
    """Returns all tests as a Catch2 test specification."""
    return ",".join(re.sub(r'([\\,\[\]~"*])', r"\\\1", name) for name in dict.fromkeys(TESTS.values()))
