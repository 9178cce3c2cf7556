// Rules of test_arguments.cpp: pointers that may be NULL or are ignored, and arguments that must
// not overlap others, as documented in the headers.
#pragma once

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

namespace mptest {

/// Functions that the catalog does not call: one needs NCCL, two change the shared context, and
/// one is called by an inline function.
inline const std::set<std::string> kNotCalled = {"mp_comm_init_nccl", "mp_attention_set_kernel",
                                                 "mp_tuning_measure",
                                                 "mp_scaler_config_init_preset"};

/// Exceptions, as documented in the headers.  A name is a path without `tensors.`.  The test fails
/// if no call needs an exception.
struct Exceptions {
  std::string_view function;  ///< "": all functions
  std::string_view optional;  ///< may be NULL with the arguments of the catalog
  std::string_view ignored;   ///< not read by this function with the arguments of some rows
};
constexpr Exceptions kExceptions[] = {
    {"",
     "stats stats.amax stats.found_inf epilogue epilogue.scale epilogue.bias epilogue.aux "
     "epilogue.dbias epilogue.stats.amax epilogue.stats.found_inf desc.plan text dropout_offset",
     ""},
    {"mp_attention_backward", "q_lengths kv_lengths dsinks", ""},
    {"mp_attention_forward", "q_lengths kv_lengths sinks lse",
     "dsinks stats.found_inf stats.amax d_o dq dk dv"},
    {"mp_autocast_create", "config", ""},
    {"mp_autocast_explain",
     "graph.node_name graph.tensor_role result.tensor_dtype result.node_dtype result.node_reason "
     "result.input_cast result.casts",
     ""},
    {"mp_autocast_get_disabled_reason", "context", ""},
    {"mp_autocast_rewrite",
     "context graph.node_name graph.tensor_role result.tensor_dtype result.node_dtype "
     "result.node_reason result.input_cast result.casts",
     ""},
    {"mp_batchnorm_backward", "gamma beta dgamma dbeta", "running_mean running_var y"},
    {"mp_batchnorm_forward_inference", "gamma beta",
     "saved_mean saved_inv_std dy dx dgamma dbeta stats.amax stats.found_inf"},
    {"mp_batchnorm_forward_training", "gamma beta running_mean running_var",
     "dy dx dgamma dbeta stats.amax stats.found_inf"},
    {"mp_context_create", "config", ""},
    {"mp_dropout", "offset", ""},
    {"mp_gemm_grouped_workspace_size", "", "items.A items.B items.D"},
    {"mp_graph_backward", "scaler", ""},
    {"mp_graph_bind", "data", ""},
    {"mp_graph_get_lists", "grads master model", ""},
    {"mp_inspect", "report tensor_reports", ""},
    {"mp_l2norm", "norm per_tensor", ""},
    {"mp_linear_xent", "bias loss_scale count lse loss correct class_weights dx dw dbias", ""},
    {"mp_loss", "weights loss_scale element_loss loss dprediction", ""},
    {"mp_masters_to_model", "options options.overflows found_inf", ""},
    {"mp_norm_backward", "gamma dsum dx dresidual dgamma dbeta", "x residual beta y"},
    {"mp_norm_forward", "gamma beta sum mean rstd",
     "dy dsum dx dresidual dgamma dbeta stats.amax stats.found_inf"},
    {"mp_optimizer_create", "desc.model desc.m desc.v desc.master", ""},
    {"mp_optimizer_get_moments", "m v", ""},
    {"mp_pool2d_backward", "index", "x"},
    {"mp_pool2d_forward", "index", ""},
    {"mp_rnn_backward_data", "lengths h0 c0 dhn dcn dh0 dc0 weight_grads dx",
     "hn stats.amax x y cn"},
    {"mp_rnn_backward_weights", "lengths h0 weights", "c0 hn dhn dcn dh0 dc0 y dy dx cn"},
    {"mp_rnn_forward_inference", "lengths h0 c0 hn weight_grads cn",
     "dropout_offset dhn dcn dh0 dc0 stats.found_inf stats.amax dy dx reserve"},
    {"mp_rnn_forward_training", "lengths h0 c0 hn weight_grads cn",
     "dhn dcn dh0 dc0 stats.found_inf stats.amax dy dx"},
    {"mp_rope", "positions inv_freq", ""},
    {"mp_scale_step",
     "options.found_inf options.tensor_reports options.outcome options.rejected_updates scaler "
     "options options.comm options.grad_norm options.tensor_norms options.report",
     ""},
    {"mp_scaler_get_history_sync", "scales skipped", ""},
    {"mp_scaler_update", "amax", ""},
    {"mp_softmax_xent", "count lse class_weights correct loss loss_scale dx", ""},
    {"mp_tensor_list_get_tensor", "data numel dtype", ""},
    {"mp_tensor_stats",
     "outputs.found_inf outputs.tensor_amax outputs.norm outputs.tensor_norm outputs.report "
     "outputs.tensor_reports outputs.amax",
     ""},
};

/// Arguments that must not overlap other arguments, as documented in the headers.  The test fails
/// if no call needs a row, an argument or a pair.
struct Writes {
  std::string_view function;
  std::string_view written;        ///< in addition to kWrittenByAll
  std::string_view in_place;       ///< pairs WRITTEN=READ that may have the same address
  std::string_view compared = "";  ///< pairs WRITTEN=OTHER that the library compares; "": all
};
constexpr std::string_view kWrittenByAll =
    "workspace stats.amax stats.found_inf epilogue.aux epilogue.dbias epilogue.stats.amax "
    "epilogue.stats.found_inf";
constexpr std::string_view kComparedByRnnForward = "y=x y=h0 y=c0 hn=x hn=y hn=h0 cn=x cn=y cn=c0";
constexpr Writes kWrites[] = {
    {"mp_attention_backward", "dq dk dv dsinks", ""},
    {"mp_attention_forward", "o lse", ""},
    {"mp_batchnorm_backward", "dx dgamma dbeta", "dx=x dx=dy"},
    {"mp_batchnorm_forward_inference", "y", "y=x"},
    {"mp_batchnorm_forward_training", "y running_mean running_var saved_mean saved_inv_std", "y=x"},
    {"mp_cast", "dst", ""},
    {"mp_column_sum", "sum", ""},
    {"mp_conv2d_dgrad", "dx", ""},
    {"mp_conv2d_fprop", "y", ""},
    {"mp_conv2d_wgrad", "dfilter", ""},
    {"mp_dropout", "y", "y=x"},
    {"mp_embedding_backward", "dtable", ""},
    {"mp_embedding_forward", "out", ""},
    {"mp_gemm", "D", "D=C"},
    {"mp_gemm_batched", "", ""},
    {"mp_gemm_grouped", "items.D", ""},
    {"mp_gemm_ragged", "D", ""},
    {"mp_glu_backward", "dx", "dx=x"},
    {"mp_glu_forward", "y", ""},
    {"mp_linear_xent", "row_loss lse loss correct dx dw dbias", "dx=x"},
    {"mp_loss", "element_loss loss dprediction", "dprediction=prediction"},
    {"mp_nchw_to_nhwc", "dst", ""},
    {"mp_nhwc_to_nchw", "dst", ""},
    {"mp_norm_backward", "dx dresidual dgamma dbeta", "dx=dy dresidual=dsum"},
    {"mp_norm_forward", "y sum mean rstd", "y=x sum=residual"},
    {"mp_pointwise", "y", "y=a y=b"},
    {"mp_pool2d_backward", "dx", ""},
    {"mp_pool2d_forward", "y index", ""},
    {"mp_rnn_backward_data", "dx dh0 dc0", "dh0=dhn dc0=dcn",
     "dx=dy dx=dhn dx=dcn dx=c0 dh0=dy dh0=dx dh0=dhn dc0=dy dc0=dx dc0=dcn stats.found_inf=dx "
     "stats.found_inf=dh0 stats.found_inf=dc0"},
    {"mp_rnn_backward_weights", "", "", "stats.found_inf=stats.amax stats.amax=stats.found_inf"},
    {"mp_rnn_forward_inference", "y hn cn", "hn=h0 cn=c0", kComparedByRnnForward},
    {"mp_rnn_forward_training", "y hn cn", "", kComparedByRnnForward},
    {"mp_rope", "y", "y=x"},
    {"mp_softmax_backward", "dx", "dx=y dx=dy"},
    {"mp_softmax_forward", "y", "y=x"},
    {"mp_softmax_xent", "row_loss lse loss correct dx", "dx=x"},
    {"mp_strided_copy", "y", ""},
    {"mp_sum_rows", "sum", ""},
    {"mp_xent_count", "count", ""},
};

/// Functions with outputs that no row of kWrites contains.  The test fails if a function is in
/// neither table, or has no output.
struct NotCompared {
  std::string_view functions;
  std::string_view reason;
};
constexpr NotCompared kNotCompared[] = {
    {"mp_amax mp_check_nonfinite mp_inspect mp_l2norm mp_tensor_stats mp_unscale "
     "mp_masters_to_model mp_optimizer_regularization mp_scale_step",
     "the tensors are in lists, and the library does not compare their outputs with each other"},
    {"mp_clip_factor mp_scale_loss",
     "the library does not compare their arguments; out may be loss"},
};

/// Functions that zero their outputs on error, as documented.
inline const std::set<std::string> kZeroOutputs = {"mp_optimizer_desc_from_name",
                                                   "mp_scaler_config_from_name"};

/// Returns whether a list, separated by spaces, has the item.
inline bool has(std::string_view list, std::string_view item) {
  return (" " + std::string(list) + " ").find(" " + std::string(item) + " ") != std::string::npos;
}

inline bool has_exception(std::string_view function, std::string_view path,
                          std::string_view Exceptions::*column) {
  return std::ranges::any_of(kExceptions, [&](const Exceptions &row) {
    return (row.function.empty() || row.function == function) && has(row.*column, path);
  });
}

}  // namespace mptest
