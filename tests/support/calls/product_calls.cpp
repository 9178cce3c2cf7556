// GEMMs and convolutions of several shapes and types, with enough blocks for several workers, and
// queries of their kernels and plans.
#define MP_ENABLE_EXPERIMENTAL
#include <array>
#include <iterator>

#include "catalog.h"
#include "tests/support/named_plan.h"

namespace mptest {

namespace {

struct Product {
  const char *name;
  int64_t m, n, k;
  mp_dtype_t ab, cd;
  mp_op_t op_a = MP_OP_N, op_b = MP_OP_N;
  mp_activation_t activation = MP_ACT_NONE;
  mp_dtype_t bias = MP_FP32;
};

/// Full tiles, edge tiles, vectors, conversions of types, and shapes that need a workspace.
constexpr Product kProducts[] = {
    {"gemm fp16", 64, 64, 64, MP_FP16, MP_FP16},
    {"gemm bf16 to fp32", 96, 40, 72, MP_BF16, MP_FP32, MP_OP_T},
    {"gemm fp32", 33, 17, 29, MP_FP32, MP_FP32, MP_OP_N, MP_OP_T},
    {"gemm fp16 with relu", 130, 24, 56, MP_FP16, MP_FP16, MP_OP_N, MP_OP_N, MP_ACT_RELU, MP_FP16},
    {"gemm bf16 with gelu", 48, 136, 40, MP_BF16, MP_BF16, MP_OP_T, MP_OP_T, MP_ACT_GELU},
    {"gemm fp32 with relu", 130, 70, 8, MP_FP32, MP_FP32, MP_OP_N, MP_OP_N, MP_ACT_RELU},
    {"gemv fp16", 1, 200, 120, MP_FP16, MP_FP32},
    {"gemv bf16", 1, 64, 32, MP_BF16, MP_BF16, MP_OP_N, MP_OP_N, MP_ACT_RELU, MP_BF16},
    {"gemm of unaligned rows", 31, 45, 67, MP_FP16, MP_FP16},
    {"gemm with a long k", 16, 16, 4096, MP_FP16, MP_FP32},
};

mp_gemm_desc_t desc_of(const Product &p) {
  mp_gemm_desc_t desc = mp_gemm_desc_default(p.m, p.n, p.k, p.ab, p.cd);
  desc.op_a = p.op_a;
  desc.op_b = p.op_b;
  if (p.op_a == MP_OP_T) desc.ld_a = p.m;
  if (p.op_b == MP_OP_T) desc.ld_b = p.k;
  return desc;
}

void multiply(Caller &c, const Product &p, const mp_plan_t *plan) {
  mp_gemm_desc_t desc = desc_of(p);
  desc.plan = plan;
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.activation = p.activation;
  epilogue.bias = c.input(p.bias, p.n);
  epilogue.dtype_bias = p.bias;
  epilogue.scale = c.number(0.5f);
  epilogue.stats = c.stats();
  if (p.activation != MP_ACT_NONE) epilogue.aux = c.output(p.cd, p.m * p.n);
  epilogue.dbias = c.sums(p.n);
  const Workspace w = WORKSPACE(c, mp_gemm_workspace_size, c.context(), &desc, &epilogue);
  c.record_value(w.bytes);
  void *const a = c.input(p.ab, p.m * p.k), *const b = c.input(p.ab, p.k * p.n);
  void *const d = c.output(p.cd, p.m * p.n);
  CALL(c, mp_gemm, c.context(), &desc, a, b, nullptr, d, &epilogue, w.data, w.bytes, nullptr);
}

/// Records the first kernels: each query takes as long as ranking all of them.
template <class Function, class... Arguments>
void list_kernels(Caller &c, const char *name, const Function &function,
                  const Arguments &...arguments) {
  for (const int32_t index : {0, 1}) {
    auto info = initialized<mp_kernel_info_t>();
    c.call(name, function, c.context(), arguments..., index, &info);
    c.record(info.name);
    c.record(info.reason != nullptr ? info.reason : "");
    c.record_value(info.predicted_us);
    c.record_value(info.workspace_bytes);
  }
}
#define LIST_KERNELS(caller, function, ...) list_kernels(caller, #function, function, __VA_ARGS__)

void record_plan(Caller &c, const mp_plan_t &plan) {
  c.record(plan.kernel);
  c.record_value(plan.split_k);
}

void list_kernels_of(Caller &c, const Product &p) {
  const mp_gemm_desc_t desc = desc_of(p);
  LIST_KERNELS(c, mp_gemm_kernel_info, &desc);
}

void explain_products(Caller &c) {
  const mp_gemm_desc_t gemm = mp_gemm_desc_default(64, 64, 64, MP_FP16, MP_FP16);
  const mp_conv2d_desc_t conv = mp_conv2d_desc_default(2, 6, 6, 8, 16, 3, 3, MP_FP16);
  const mp_rnn_desc_t rnn = mp_rnn_desc_default(MP_RNN_LSTM, 4, 3, 16, 16, MP_FP16);
  const mp_epilogue_t epilogue = mp_epilogue_default();
  auto plan = initialized<mp_plan_t>();
  CALL(c, mp_gemm_get_plan, c.context(), &gemm, &epilogue, SIZE_MAX, &plan);
  record_plan(c, plan);
  CALL(c, mp_gemm_batched_get_plan, c.context(), &gemm, &epilogue, SIZE_MAX, &plan);
  record_plan(c, plan);
  CALL(c, mp_conv2d_get_plan, c.context(), &conv, MP_CONV_FPROP, &epilogue, SIZE_MAX, &plan);
  record_plan(c, plan);
  CALL(c, mp_rnn_get_plan, c.context(), &rnn, &plan);
  record_plan(c, plan);
  RECORD_TEXT(c, mp_gemm_explain, c.context(), &gemm, &epilogue);
  size_t bytes = 0;
  CALL(c, mp_tuning_get_text, nullptr, &bytes);
  RECORD_TEXT(c, mp_conv2d_explain, c.context(), &conv, MP_CONV_FPROP, &epilogue);
  LIST_KERNELS(c, mp_rnn_kernel_info, &rnn);
  const mp_attention_desc_t attention = mp_attention_desc_default(1, 2, 40, 40, 8, MP_FP16);
  LIST_KERNELS(c, mp_attention_kernel_info, &attention);
  RECORD_TEXT(c, mp_attention_explain, c.context(), &attention);
}

// The pipelines of Hopper kernels have the most setup.
void multiply_in_a_pipeline(Caller &c) {
  constexpr Product kProduct = {"", 64, 64, 64, MP_FP16, MP_FP16};
  const mp_gemm_desc_t desc = desc_of(kProduct);
  for (int32_t index = 0;; ++index) {
    auto info = initialized<mp_kernel_info_t>();
    if (mp_gemm_kernel_info(c.context(), &desc, index, &info) == MP_ERROR_NOT_FOUND) break;
    const bool is_hopper = std::string_view(info.name).find("wgmma") != std::string_view::npos;
    if (is_hopper && info.reason == nullptr) return multiply(c, kProduct, named_plan(info.name));
  }
}

/// Adds C, without an epilogue, by which the other rows check A, B and C a second time.
void multiply_and_add(Caller &c) {
  constexpr int64_t kSize = 24, kCount = kSize * kSize;
  mp_gemm_desc_t desc = mp_gemm_desc_default(kSize, kSize, kSize, MP_FP16, MP_FP32);
  desc.beta = 1.0f;
  const Workspace w = WORKSPACE(c, mp_gemm_workspace_size, c.context(), &desc, nullptr);
  void *const a = c.input(MP_FP16, kCount), *const b = c.input(MP_FP16, kCount);
  void *const sum = c.input(MP_FP32, kCount), *const d = c.output(MP_FP32, kCount);
  CALL(c, mp_gemm, c.context(), &desc, a, b, sum, d, nullptr, w.data, w.bytes, nullptr);
}

void multiply_batched(Caller &c) {
  constexpr int32_t kItems = 3;
  constexpr int64_t kSize = 24, kCount = kSize * kSize;
  mp_gemm_desc_t desc = mp_gemm_desc_default(kSize, kSize, kSize, MP_FP16, MP_FP32);
  desc.batch_count = kItems;
  std::array<void *, kItems> items[3];
  for (int32_t i = 0; i < kItems; ++i)
    for (auto &of_operand : items)
      of_operand[static_cast<size_t>(i)] =
          &of_operand != &items[2] ? c.input(MP_FP16, kCount) : c.output(MP_FP32, kCount);
  const auto on_device = [&](const std::array<void *, kItems> &pointers) {
    return c.upload(pointers.data(), pointers.size());
  };
  void **const a = on_device(items[0]), **const b = on_device(items[1]);
  void **const d = on_device(items[2]);
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.scale = c.number(0.5f);
  epilogue.stats.found_inf = c.sums(1);
  const Workspace w = WORKSPACE(c, mp_gemm_batched_workspace_size, c.context(), &desc, &epilogue);
  CALL(c, mp_gemm_batched, c.context(), &desc, a, b, nullptr, d, &epilogue, w.data, w.bytes,
       nullptr);
}

void multiply_grouped(Caller &c) {
  const mp_gemm_desc_t desc = mp_gemm_desc_default(0, 0, 0, MP_BF16, MP_FP32);
  std::vector<mp_gemm_group_item_t> items;
  for (const int64_t size : {8, 40, 72}) {
    items.push_back(mp_gemm_group_item_default(size, 32, size / 2));
    items.back().A = c.input(MP_BF16, size * size / 2);
    items.back().B = c.input(MP_BF16, size / 2 * 32);
    items.back().D = c.output(MP_FP32, size * 32);
  }
  const auto count = static_cast<int32_t>(items.size());
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.scale = c.number(0.5f);
  epilogue.stats.found_inf = c.sums(1);
  const Workspace w = WORKSPACE(c, mp_gemm_grouped_workspace_size, c.context(), &desc, count,
                                items.data(), &epilogue);
  CALL(c, mp_gemm_grouped, c.context(), &desc, count, items.data(), &epilogue, w.data, w.bytes,
       nullptr);
}

void multiply_ragged(Caller &c, mp_ragged_t ragged) {
  constexpr int64_t kRows = 48, kWidth = 32;
  constexpr int32_t kItems = 4, kEnds[kItems] = {5, 5, 30, kRows};
  const bool is_m = ragged == MP_RAGGED_M;
  mp_gemm_desc_t desc =
      mp_gemm_desc_default(is_m ? kRows : kWidth, kWidth, is_m ? kWidth : kRows, MP_FP16, MP_FP32);
  desc.batch_count = kItems;
  if (is_m)
    desc.stride_b = kWidth * kWidth;
  else
    desc.op_a = MP_OP_T, desc.ld_a = kWidth, desc.stride_d = kWidth * kWidth;
  int32_t *const ends = c.upload(kEnds, kItems);
  void *const a = c.input(MP_FP16, kRows * kWidth);
  void *const b = c.input(MP_FP16, (is_m ? kItems * kWidth : kRows) * kWidth);
  void *const d = c.output(MP_FP32, (is_m ? kRows : kItems * kWidth) * kWidth);
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.scale = c.number(0.5f);
  epilogue.stats.found_inf = c.sums(1);
  const Workspace w =
      WORKSPACE(c, mp_gemm_ragged_workspace_size, c.context(), &desc, ragged, &epilogue);
  CALL(c, mp_gemm_ragged, c.context(), &desc, ragged, ends, a, b, nullptr, d, &epilogue, w.data,
       w.bytes, nullptr);
}

void convolve(Caller &c, mp_dtype_t dtype, mp_conv_op_t op) {
  mp_conv2d_desc_t desc = mp_conv2d_desc_default(2, 9, 7, 16, 24, 3, 3, dtype);
  desc.pad_top = desc.pad_bottom = desc.pad_left = desc.pad_right = 1;
  int32_t p = 0, q = 0;
  CALL(c, mp_conv2d_get_output_size, &desc, &p, &q);
  const int64_t x = int64_t{desc.n} * desc.h * desc.w * desc.c;
  const int64_t y = int64_t{desc.n} * p * q * desc.k;
  const int64_t filter = int64_t{desc.k} * desc.r * desc.s * desc.c;
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.scale = c.number(0.5f);
  epilogue.stats = c.stats();
  if (op != MP_CONV_WGRAD) {
    const int64_t channels = op == MP_CONV_FPROP ? desc.k : desc.c;
    epilogue.activation = MP_ACT_RELU;
    epilogue.bias = c.input(dtype, channels);
    epilogue.dtype_bias = dtype;
    epilogue.aux = c.output(dtype, op == MP_CONV_FPROP ? y : x);
    epilogue.dbias = c.sums(channels);
  }
  const Workspace w = WORKSPACE(c, mp_conv2d_workspace_size, c.context(), &desc, op, &epilogue);
  void *const first = c.input(dtype, op == MP_CONV_DGRAD ? y : x);
  void *const second = c.input(dtype, op == MP_CONV_WGRAD ? y : filter);
  void *const out = c.output(dtype, op == MP_CONV_FPROP ? y : op == MP_CONV_DGRAD ? x : filter);
  switch (op) {
    case MP_CONV_FPROP:
      CALL(c, mp_conv2d_fprop, c.context(), &desc, first, second, out, &epilogue, w.data, w.bytes,
           nullptr);
      return LIST_KERNELS(c, mp_conv2d_kernel_info, &desc, op);
    case MP_CONV_DGRAD:
      return CALL(c, mp_conv2d_dgrad, c.context(), &desc, first, second, out, &epilogue, w.data,
                  w.bytes, nullptr);
    case MP_CONV_WGRAD:
      return CALL(c, mp_conv2d_wgrad, c.context(), &desc, first, second, out, &epilogue, w.data,
                  w.bytes, nullptr);
  }
}

}  // namespace

Catalog product_calls() {
  Catalog calls = {{"product in a pipeline", multiply_in_a_pipeline},
                   {"plans and kernels", explain_products},
                   {"gemm that adds C", multiply_and_add},
                   {"gemm_batched", multiply_batched},
                   {"gemm_grouped", multiply_grouped}};
  for (const Product &p : kProducts) {
    calls.push_back({p.name, [=](Caller &c) { multiply(c, p, nullptr); }});
    calls.push_back({std::string("kernels: ") + p.name, [=](Caller &c) { list_kernels_of(c, p); }});
  }
  for (const mp_ragged_t ragged : {MP_RAGGED_M, MP_RAGGED_K})
    calls.push_back({ragged == MP_RAGGED_M ? "gemm_ragged in m" : "gemm_ragged in k",
                     [=](Caller &c) { multiply_ragged(c, ragged); }});
  constexpr const char *kPasses[] = {"fprop", "dgrad", "wgrad"};
  constexpr mp_conv_op_t kOps[] = {MP_CONV_FPROP, MP_CONV_DGRAD, MP_CONV_WGRAD};
  for (const mp_dtype_t dtype : {MP_FP16, MP_FP32})
    for (size_t i = 0; i < std::size(kOps); ++i)
      calls.push_back({std::string("conv2d_") + kPasses[i] + " " + mp_dtype_name(dtype),
                       [dtype, op = kOps[i]](Caller &c) { convolve(c, dtype, op); }});
  return calls;
}

}  // namespace mptest
