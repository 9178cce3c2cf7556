#define MP_ENABLE_EXPERIMENTAL
#include "facts.h"

#include <cstdlib>

#include "support/device.h"
#include "support/text.h"

namespace mpinfo {
namespace {

const char *name_of(mp_conv_op_t op) {
  return op == MP_CONV_FPROP ? "fprop" : op == MP_CONV_DGRAD ? "dgrad" : "wgrad";
}

std::string title_of(const mp_gemm_desc_t &d) {
  std::string title = mptools::text(
      "GEMM %lld x %lld x %lld, op %c%c, %s to %s", static_cast<long long>(d.m),
      static_cast<long long>(d.n), static_cast<long long>(d.k), d.op_a == MP_OP_T ? 'T' : 'N',
      d.op_b == MP_OP_T ? 'T' : 'N', mp_dtype_name(d.dtype_ab), mp_dtype_name(d.dtype_cd));
  if (d.batch_count > 1) title += mptools::text(", batch %d", d.batch_count);
  return title;
}

std::string title_of(const mp_conv2d_desc_t &d, mp_conv_op_t op) {
  return mptools::text(
      "convolution %s, x %d x %d x %d x %d, filter %d x %d x %d x %d, stride %d, padding %d, "
      "dilation %d, groups %d, %s to %s",
      name_of(op), d.n, d.h, d.w, d.c, d.k, d.r, d.s, d.groups > 0 ? d.c / d.groups : 0, d.stride_h,
      d.pad_top, d.dilation_h, d.groups, mp_dtype_name(d.dtype), mp_dtype_name(d.dtype_out));
}

std::string title_of(const mp_attention_desc_t &d) {
  return mptools::text(
      "attention, %d sequences, %lld queries, %lld keys, heads %d of %d, %d of %d, %s", d.batch,
      static_cast<long long>(d.q_len), static_cast<long long>(d.kv_len), d.heads, d.head_dim,
      d.kv_heads, d.head_dim_v, mp_dtype_name(d.dtype));
}

/// ask(index, &info) has the contract of mp_gemm_kernel_info.
template <class Ask>
std::vector<Kernel> kernels_of(const Ask &ask) {
  std::vector<Kernel> kernels;
  mp_kernel_info_t info;
  MP_INIT_STRUCT(&info);
  while (true) {
    const mp_status_t status = ask(static_cast<int32_t>(kernels.size()), &info);
    if (status == MP_ERROR_NOT_FOUND && !kernels.empty()) return kernels;
    mptools::check(status);
    kernels.push_back({info.name, info.reason != nullptr ? info.reason : "", info.predicted_us,
                       info.workspace_bytes});
  }
}

/// write(text, &bytes) as mp_gemm_explain.
template <class Write>
std::string plan_of(const Write &write) {
  size_t bytes = 0;
  mptools::check(write(nullptr, &bytes));
  std::string text(bytes, '\0');
  mptools::check(write(text.data(), &bytes));
  text.resize(bytes - 1);
  return text;
}

}  // namespace

std::vector<Variable> environment() {
  std::vector<Variable> variables = {
      {"MP_LOG", "minimum severity of messages on stderr: error, warn, info or debug"},
      {"MP_LOG_PLANS", "1: log every new plan in one line"},
      {"MP_GEMM_TUNING", "path of a tuning table, as written by mptune or mpbench"},
      {"MP_AUTOCAST",
       "off, " MP_HALF_TYPE_NAMES ": overrides the type passed to mp_autocast_create"},
      {"MP_AUTOCAST_LEVEL", "normal, infer_as_deny, tensor_cores_only or force_all"},
      {"MP_AUTOCAST_ALLOW_ADD",
       "adds operations to the ALLOW list (always 16-bit), separated by commas"},
      {"MP_AUTOCAST_ALLOW_REMOVE", "removes operations from the ALLOW list"},
      {"MP_AUTOCAST_INFER_ADD",
       "adds operations to the INFER list (16-bit between 16-bit operations)"},
      {"MP_AUTOCAST_INFER_REMOVE", "removes operations from the INFER list"},
      {"MP_AUTOCAST_DENY_ADD", "adds operations to the DENY list (fp32, also downstream)"},
      {"MP_AUTOCAST_DENY_REMOVE", "removes operations from the DENY list"},
      {"MP_AUTOCAST_CLEAR_ADD", "adds operations to the CLEAR list (same type as their neighbors)"},
      {"MP_AUTOCAST_CLEAR_REMOVE", "removes operations from the CLEAR list"},
      {"MP_AUTOCAST_IGNORE_PERFORMANCE", "1: use 16 bits even if they are not faster"},
      {"MP_AUTOCAST_LOG", "folder for the lists, the report and the graphs of every rewrite"},
      {"MP_HOST_THREADS",
       "number of threads of the host target, 1 to 256; default: all processors"},
  };
  for (Variable &variable : variables) variable.value = std::getenv(variable.name);
  return variables;
}

std::vector<Problem> explain(const Options &options, mp_context_t context) {
  std::vector<Problem> problems;
  const auto add = [&](const std::string &title, const auto &ask, const auto &write) {
    problems.push_back({title, options.explains ? plan_of(write) : "",
                        options.explains ? std::vector<Kernel>() : kernels_of(ask)});
  };
  if (options.problem == Options::Problem::gemm)
    add(
        title_of(options.gemm),
        [&](auto... out) { return mp_gemm_kernel_info(context, &options.gemm, out...); },
        [&](auto... out) { return mp_gemm_explain(context, &options.gemm, nullptr, out...); });
  if (options.problem == Options::Problem::conv)
    for (const mp_conv_op_t op : options.passes)
      add(
          title_of(options.conv, op),
          [&](auto... out) { return mp_conv2d_kernel_info(context, &options.conv, op, out...); },
          [&](auto... out) {
            return mp_conv2d_explain(context, &options.conv, op, nullptr, out...);
          });
  if (options.problem == Options::Problem::attention)
    add(
        title_of(options.attention),
        [&](auto... out) { return mp_attention_kernel_info(context, &options.attention, out...); },
        [&](auto... out) { return mp_attention_explain(context, &options.attention, out...); });
  return problems;
}

}  // namespace mpinfo
