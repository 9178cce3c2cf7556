// Scenarios of GEMMs and convolutions, with enough blocks for several workers.
#define MP_ENABLE_EXPERIMENTAL
#include <array>
#include <string_view>

#include "scenarios.h"
#include "tests/support/named_plan.h"

namespace mptest::faults {

namespace {

/// A GEMM with all features of the epilogue.
void multiply(Run &run, mp_dtype_t dtype, int64_t m, int64_t n, int64_t k, const char *kernel) {
  mp_gemm_desc_t desc = mp_gemm_desc_default(m, n, k, dtype, dtype);
  desc.plan = named_plan(kernel);
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.activation = MP_ACT_RELU;
  epilogue.bias = run.tensor(dtype, n);
  epilogue.dtype_bias = dtype;
  epilogue.stats.amax = static_cast<float *>(run.bytes(sizeof(float)));
  epilogue.stats.found_inf = static_cast<float *>(run.bytes(sizeof(float)));
  size_t bytes = 0;
  FAULTY_CALL(run, mp_gemm_workspace_size, run.context(), &desc, &epilogue, &bytes);
  void *const workspace = bytes > 0 ? run.bytes(bytes) : nullptr;
  void *const a = run.tensor(dtype, m * k, 1), *const b = run.tensor(dtype, k * n, 2);
  void *const d = run.tensor(dtype, m * n, 3);
  FAULTY_CALL(run, mp_gemm, run.context(), &desc, a, b, nullptr, d, &epilogue, workspace, bytes,
              nullptr);
  run.record_device(d, static_cast<size_t>(m * n) * mp_dtype_size(dtype));
  run.record_device(epilogue.stats.amax, sizeof(float));
}

/// The best kernels of a problem.
template <class Info>
void list_kernels(Run &run, const char *function, const Info &info) {
  for (const int32_t index : {0, 1}) {
    mp_kernel_info_t kernel;
    MP_INIT_STRUCT(&kernel);
    run.call(function, [&] { return info(index, &kernel); });
    run.record(kernel.name, std::string_view(kernel.name).size());
    run.record(&kernel.predicted_us, sizeof kernel.predicted_us);
  }
}

}  // namespace

void multiply_matrices(Run &run) {
  multiply(run, MP_FP16, 72, 40, 16, nullptr);
  multiply(run, MP_FP32, 130, 70, 8, nullptr);
  multiply(run, MP_BF16, 1, 64, 32, nullptr);
  mp_gemm_desc_t desc = mp_gemm_desc_default(16, 16, 16, MP_FP16, MP_FP32);
  desc.batch_count = 2;
  std::array<const void *, 2> a = {run.tensor(MP_FP16, 256, 1), run.tensor(MP_FP16, 256, 2)};
  std::array<const void *, 2> b = {run.tensor(MP_FP16, 256, 3), run.tensor(MP_FP16, 256, 4)};
  std::array<void *, 2> d = {run.floats(256), run.floats(256)};
  const auto on_device = [&](const void *const *pointers) {
    void *const copy = run.bytes(2 * sizeof(void *));
    FAULTY_CALL(run, mp_memcpy, run.context(), copy, pointers, 2 * sizeof(void *), nullptr);
    return static_cast<void **>(copy);
  };
  const void *const *const as = on_device(a.data()), *const *const bs = on_device(b.data());
  void *const *const ds = on_device(d.data());
  FAULTY_CALL(run, mp_gemm_batched, run.context(), &desc, as, bs, nullptr, ds, nullptr, nullptr, 0,
              nullptr);
  for (const void *item : d) run.record_device(item, 256 * sizeof(float));
}

void multiply_groups(Run &run) {
  mp_gemm_desc_t desc = mp_gemm_desc_default(0, 0, 0, MP_FP16, MP_FP32);
  std::array items = {mp_gemm_group_item_default(24, 16, 16),
                      mp_gemm_group_item_default(8, 40, 16)};
  for (mp_gemm_group_item_t &item : items) {
    item.A = run.tensor(MP_FP16, item.m * item.k, 1);
    item.B = run.tensor(MP_FP16, item.k * item.n, 2);
    item.D = run.floats(item.m * item.n);
  }
  size_t bytes = 0;
  FAULTY_CALL(run, mp_gemm_grouped_workspace_size, run.context(), &desc, 2, items.data(), nullptr,
              &bytes);
  void *workspace = bytes > 0 ? run.bytes(bytes) : nullptr;
  FAULTY_CALL(run, mp_gemm_grouped, run.context(), &desc, 2, items.data(), nullptr, workspace,
              bytes, nullptr);
  for (const mp_gemm_group_item_t &item : items)
    run.record_device(item.D, static_cast<size_t>(item.m * item.n) * sizeof(float));

  for (const mp_ragged_t ragged : {MP_RAGGED_M, MP_RAGGED_K}) {
    const int64_t m = 48, n = 16, k = ragged == MP_RAGGED_M ? 16 : 48;
    mp_gemm_desc_t all = mp_gemm_desc_default(m, n, k, MP_FP16, MP_FP32);
    all.batch_count = 2;
    if (ragged == MP_RAGGED_K) all.m = 16, all.op_a = MP_OP_T, all.ld_a = 16, all.stride_d = 256;
    const int32_t *const ends = run.integers({16, 48});
    void *const a = run.tensor(MP_FP16, 48 * 16, 1), *const b = run.tensor(MP_FP16, 48 * 16 * 2, 2);
    float *const d = run.floats(2 * 48 * 16);
    FAULTY_CALL(run, mp_gemm_ragged_workspace_size, run.context(), &all, ragged, nullptr, &bytes);
    workspace = bytes > 0 ? run.bytes(bytes) : nullptr;
    FAULTY_CALL(run, mp_gemm_ragged, run.context(), &all, ragged, ends, a, b, nullptr, d, nullptr,
                workspace, bytes, nullptr);
    run.record_device(d, 2 * 48 * 16 * sizeof *d);
  }
}

void convolve(Run &run) {
  mp_conv2d_desc_t desc = mp_conv2d_desc_default(2, 6, 6, 8, 16, 3, 3, MP_FP16);
  desc.pad_top = desc.pad_bottom = desc.pad_left = desc.pad_right = 1;
  void *const x = run.tensor(MP_FP16, 2 * 6 * 6 * 8, 1);
  void *const filter = run.tensor(MP_FP16, 16 * 9 * 8, 2);
  void *const y = run.tensor(MP_FP16, 2 * 6 * 6 * 16, 3);
  const auto workspace_of = [&](mp_conv_op_t op, size_t &bytes) {
    FAULTY_CALL(run, mp_conv2d_workspace_size, run.context(), &desc, op, nullptr, &bytes);
    return bytes > 0 ? run.bytes(bytes) : nullptr;
  };
  size_t bytes = 0;
  void *workspace = workspace_of(MP_CONV_FPROP, bytes);
  FAULTY_CALL(run, mp_conv2d_fprop, run.context(), &desc, x, filter, y, nullptr, workspace, bytes,
              nullptr);
  run.record_device(y, 2 * 6 * 6 * 16 * sizeof(uint16_t));
  void *const dx = run.tensor(MP_FP16, 2 * 6 * 6 * 8, 4);
  workspace = workspace_of(MP_CONV_DGRAD, bytes);
  FAULTY_CALL(run, mp_conv2d_dgrad, run.context(), &desc, y, filter, dx, nullptr, workspace, bytes,
              nullptr);
  run.record_device(dx, 2 * 6 * 6 * 8 * sizeof(uint16_t));
  void *const dfilter = run.tensor(MP_FP16, 16 * 9 * 8, 5);
  workspace = workspace_of(MP_CONV_WGRAD, bytes);
  FAULTY_CALL(run, mp_conv2d_wgrad, run.context(), &desc, x, y, dfilter, nullptr, workspace, bytes,
              nullptr);
  run.record_device(dfilter, 16 * 9 * 8 * sizeof(uint16_t));
}

void ask_for_kernels(Run &run) {
  const mp_gemm_desc_t gemm = mp_gemm_desc_default(64, 64, 64, MP_FP16, MP_FP16);
  list_kernels(run, "mp_gemm_kernel_info", [&](int32_t index, mp_kernel_info_t *info) {
    return mp_gemm_kernel_info(run.context(), &gemm, index, info);
  });
  const mp_conv2d_desc_t conv = mp_conv2d_desc_default(2, 6, 6, 8, 16, 3, 3, MP_FP16);
  list_kernels(run, "mp_conv2d_kernel_info", [&](int32_t index, mp_kernel_info_t *info) {
    return mp_conv2d_kernel_info(run.context(), &conv, MP_CONV_FPROP, index, info);
  });
  const mp_rnn_desc_t rnn = mp_rnn_desc_default(MP_RNN_LSTM, 4, 3, 16, 16, MP_FP16);
  list_kernels(run, "mp_rnn_kernel_info", [&](int32_t index, mp_kernel_info_t *info) {
    return mp_rnn_kernel_info(run.context(), &rnn, index, info);
  });
}

// The pipelines of Hopper kernels have the most setup.
void multiply_in_a_pipeline(Run &run) {
  const mp_gemm_desc_t gemm = mp_gemm_desc_default(64, 64, 64, MP_FP16, MP_FP16);
  for (int32_t index = 0;; ++index) {
    mp_kernel_info_t info;
    MP_INIT_STRUCT(&info);
    if (mp_gemm_kernel_info(run.context(), &gemm, index, &info) == MP_ERROR_NOT_FOUND) break;
    const bool is_hopper = std::string_view(info.name).find("wgmma") != std::string_view::npos;
    if (is_hopper && info.reason == nullptr) return multiply(run, MP_FP16, 64, 64, 64, info.name);
  }
}

}  // namespace mptest::faults
