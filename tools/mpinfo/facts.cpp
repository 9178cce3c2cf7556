#define MP_ENABLE_EXPERIMENTAL
#include "facts.h"

#include <cstdlib>

#include "support/device.h"
#include "support/text.h"

namespace mpinfo {
namespace {

Device probe(const std::string &flag, int32_t ordinal) {
  mp_context_config_t config = mp_context_config_default();
  config.device = ordinal;
  mp_context_t raw = nullptr;
  if (mp_context_create(&raw, &config) != MP_SUCCESS) return {flag, {}, mp_last_error()};
  const mptools::Context context(raw);
  mp_device_info_t info;
  MP_INIT_STRUCT(&info);
  mptools::check(mp_context_get_info(raw, &info));
  return {flag, info, ""};
}

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

std::vector<Device> find_devices() {
  std::vector<Device> devices = {probe("host", MP_DEVICE_HOST)};
  for (int32_t ordinal = 0;; ordinal++) {
    Device device = probe("cuda:" + std::to_string(ordinal), ordinal);
    const bool is_last = !device.info;
    if (!is_last || ordinal == 0) devices.push_back(std::move(device));
    if (is_last) return devices;
  }
}

std::vector<Variable> environment() {
  std::vector<Variable> variables = {
      {"MP_LOG", "minimum severity of messages on stderr: error, warn, info or debug", nullptr},
      {"MP_LOG_PLANS", "1: log every new plan in one line", nullptr},
      {"MP_GEMM_TUNING", "path of a tuning table, as written by mptune", nullptr},
      {"MP_AUTOCAST", "off, fp16 or bf16: overrides the type passed to mp_autocast_create",
       nullptr},
      {"MP_AUTOCAST_LEVEL", "normal, infer_as_deny, tensor_cores_only or force_all", nullptr},
      {"MP_AUTOCAST_ALLOW_ADD",
       "adds operations to the ALLOW list (always 16-bit), separated by commas", nullptr},
      {"MP_AUTOCAST_ALLOW_REMOVE", "removes operations from the ALLOW list", nullptr},
      {"MP_AUTOCAST_INFER_ADD",
       "adds operations to the INFER list (16-bit between 16-bit operations)", nullptr},
      {"MP_AUTOCAST_INFER_REMOVE", "removes operations from the INFER list", nullptr},
      {"MP_AUTOCAST_DENY_ADD", "adds operations to the DENY list (fp32, also downstream)", nullptr},
      {"MP_AUTOCAST_DENY_REMOVE", "removes operations from the DENY list", nullptr},
      {"MP_AUTOCAST_CLEAR_ADD", "adds operations to the CLEAR list (same type as their neighbors)",
       nullptr},
      {"MP_AUTOCAST_CLEAR_REMOVE", "removes operations from the CLEAR list", nullptr},
      {"MP_AUTOCAST_IGNORE_PERFORMANCE", "1: use 16 bits even if they are not faster", nullptr},
      {"MP_AUTOCAST_LOG", "folder for the lists, the report and the graphs of every rewrite",
       nullptr},
      {"MP_HOST_THREADS", "number of threads of the host target, 1 to 256; default: all processors",
       nullptr},
  };
  for (Variable &variable : variables) variable.value = std::getenv(variable.name);
  return variables;
}

std::vector<Problem> explain(const Options &options, mp_context_t context) {
  std::vector<Problem> problems;
  if (options.problem == Options::Problem::gemm) {
    const mp_gemm_desc_t &desc = options.gemm;
    problems.push_back({title_of(desc), "", {}});
    if (options.explains)
      problems.back().plan = plan_of([&](char *text, size_t *bytes) {
        return mp_gemm_explain(context, &desc, nullptr, text, bytes);
      });
    else
      problems.back().kernels = kernels_of([&](int32_t index, mp_kernel_info_t *info) {
        return mp_gemm_kernel_info(context, &desc, index, info);
      });
  }
  if (options.problem == Options::Problem::conv) {
    const mp_conv2d_desc_t &desc = options.conv;
    for (const mp_conv_op_t op : options.passes) {
      problems.push_back({title_of(desc, op), "", {}});
      if (options.explains)
        problems.back().plan = plan_of([&](char *text, size_t *bytes) {
          return mp_conv2d_explain(context, &desc, op, nullptr, text, bytes);
        });
      else
        problems.back().kernels = kernels_of([&](int32_t index, mp_kernel_info_t *info) {
          return mp_conv2d_kernel_info(context, &desc, op, index, info);
        });
    }
  }
  if (options.problem == Options::Problem::attention) {
    const mp_attention_desc_t &desc = options.attention;
    problems.push_back({title_of(desc), "", {}});
    if (options.explains)
      problems.back().plan = plan_of([&](char *text, size_t *bytes) {
        return mp_attention_explain(context, &desc, text, bytes);
      });
    else
      problems.back().kernels = kernels_of([&](int32_t index, mp_kernel_info_t *info) {
        return mp_attention_kernel_info(context, &desc, index, info);
      });
  }
  return problems;
}

void collect_warnings(std::vector<std::string> *warnings) {
  mp_set_log_callback(
      [](mp_log_level_t level, const char *message, void *user) {
        if (level == MP_LOG_WARN) static_cast<std::vector<std::string> *>(user)->push_back(message);
      },
      warnings, MP_LOG_WARN);
}

}  // namespace mpinfo
