// GEMMs and convolutions of several shapes and types, and queries of their kernels.
#define MP_ENABLE_EXPERIMENTAL
#include "calls.h"

namespace mptest {

namespace {

using mptools::check;
using mptools::kStream;

struct Product {
  const char *name;
  int64_t m, n, k;
  mp_dtype_t ab, cd;
  mp_op_t op_a = MP_OP_N, op_b = MP_OP_N;
  mp_activation_t activation = MP_ACT_NONE;
};

/// Full tiles, edge tiles, a vector, conversions of types, and shapes that need a workspace.
constexpr Product kProducts[] = {
    {"gemm fp16", 64, 64, 64, MP_FP16, MP_FP16},
    {"gemm bf16 to fp32", 96, 40, 72, MP_BF16, MP_FP32, MP_OP_T},
    {"gemm fp32", 33, 17, 29, MP_FP32, MP_FP32, MP_OP_N, MP_OP_T},
    {"gemm fp16 with relu", 130, 24, 56, MP_FP16, MP_FP16, MP_OP_N, MP_OP_N, MP_ACT_RELU},
    {"gemm bf16 with gelu", 48, 136, 40, MP_BF16, MP_BF16, MP_OP_T, MP_OP_T, MP_ACT_GELU},
    {"gemv fp16", 1, 200, 120, MP_FP16, MP_FP32},
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

Bytes multiply(mp_context_t context, const Product &p) {
  Operands operands(context);
  const mp_gemm_desc_t desc = desc_of(p);
  size_t bytes = 0;
  check(mp_gemm_workspace_size(context, &desc, nullptr, &bytes));
  operands.tell_plain(bytes);
  void *const a = operands.input(p.ab, p.m * p.k), *const b = operands.input(p.ab, p.k * p.n);
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.activation = p.activation;
  epilogue.bias = operands.input(MP_FP32, p.n);
  epilogue.dtype_bias = MP_FP32;
  epilogue.stats.amax = static_cast<float *>(operands.output(MP_FP32, 1));
  epilogue.stats.found_inf = static_cast<float *>(operands.output(MP_FP32, 1));
  epilogue.dbias = static_cast<float *>(operands.output(MP_FP32, p.n));
  void *const d = operands.output(p.cd, p.m * p.n);
  check(mp_gemm(context, &desc, a, b, nullptr, d, &epilogue, operands.scratch(bytes), bytes,
                kStream));
  return operands.bytes();
}

/// Returns only the first kernels: each query takes as long as ranking all of them.
template <typename Info>
Bytes kernels_by(mp_context_t context, const Info &info_of) {
  constexpr int32_t kMax = 2;
  Operands operands(context);
  for (int32_t index = 0; index < kMax; ++index) {
    mp_kernel_info_t info;
    MP_INIT_STRUCT(&info);
    check(info_of(index, &info));
    operands.tell(info.name);
    operands.tell(info.reason != nullptr ? info.reason : "");
    operands.tell_plain(info.predicted_us);
    operands.tell_plain(info.workspace_bytes);
  }
  return operands.bytes();
}

Bytes multiply_batched(mp_context_t context) {
  constexpr int32_t kItems = 3;
  constexpr int64_t kSize = 24;
  Operands operands(context);
  mp_gemm_desc_t desc = mp_gemm_desc_default(kSize, kSize, kSize, MP_FP16, MP_FP16);
  desc.batch_count = kItems;
  const void *a[kItems], *b[kItems];
  void *d[kItems];
  for (int32_t i = 0; i < kItems; ++i) {
    a[i] = operands.input(MP_FP16, kSize * kSize);
    b[i] = operands.input(MP_FP16, kSize * kSize);
    d[i] = operands.output(MP_FP16, kSize * kSize);
  }
  size_t bytes = 0;
  check(mp_gemm_batched_workspace_size(context, &desc, nullptr, &bytes));
  check(mp_gemm_batched(context, &desc, a, b, nullptr, d, nullptr, operands.scratch(bytes), bytes,
                        kStream));
  return operands.bytes();
}

Bytes multiply_grouped(mp_context_t context) {
  Operands operands(context);
  const mp_gemm_desc_t desc = mp_gemm_desc_default(0, 0, 0, MP_BF16, MP_FP32);
  std::vector<mp_gemm_group_item_t> items;
  for (const int64_t size : {8, 40, 72}) {
    items.push_back(mp_gemm_group_item_default(size, 32, size / 2));
    items.back().A = operands.input(MP_BF16, size * size / 2);
    items.back().B = operands.input(MP_BF16, size / 2 * 32);
    items.back().D = operands.output(MP_FP32, size * 32);
  }
  const auto count = static_cast<int32_t>(items.size());
  size_t bytes = 0;
  check(mp_gemm_grouped_workspace_size(context, &desc, count, items.data(), nullptr, &bytes));
  check(mp_gemm_grouped(context, &desc, count, items.data(), nullptr, operands.scratch(bytes),
                        bytes, kStream));
  return operands.bytes();
}

Bytes multiply_ragged(mp_context_t context) {
  constexpr int64_t kRows = 48, kWidth = 32;
  Operands operands(context);
  mp_gemm_desc_t desc = mp_gemm_desc_default(kRows, kWidth, kWidth, MP_FP16, MP_FP16);
  desc.batch_count = 4;
  desc.stride_b = kWidth * kWidth;
  const int32_t ends[] = {5, 5, 30, 48};
  void *const device_ends = operands.scratch(sizeof ends);
  check(mp_memcpy(context, device_ends, ends, sizeof ends, kStream));
  size_t bytes = 0;
  check(mp_gemm_ragged_workspace_size(context, &desc, MP_RAGGED_M, nullptr, &bytes));
  check(mp_gemm_ragged(context, &desc, MP_RAGGED_M, static_cast<int32_t *>(device_ends),
                       operands.input(MP_FP16, kRows * kWidth),
                       operands.input(MP_FP16, 4 * kWidth * kWidth), nullptr,
                       operands.output(MP_FP16, kRows * kWidth), nullptr, operands.scratch(bytes),
                       bytes, kStream));
  return operands.bytes();
}

mp_conv2d_desc_t convolution(mp_dtype_t dtype) {
  mp_conv2d_desc_t desc = mp_conv2d_desc_default(2, 9, 7, 16, 24, 3, 3, dtype);
  desc.pad_top = desc.pad_bottom = desc.pad_left = desc.pad_right = 1;
  return desc;
}

using Convolve = mp_status_t(mp_context_t, const mp_conv2d_desc_t *, const void *, const void *,
                             void *, const mp_epilogue_t *, void *, size_t, mp_stream_t);

Bytes convolve(mp_context_t context, mp_dtype_t dtype, mp_conv_op_t op, Convolve *function) {
  Operands operands(context);
  const mp_conv2d_desc_t desc = convolution(dtype);
  int32_t p = 0, q = 0;
  check(mp_conv2d_get_output_size(&desc, &p, &q));
  const int64_t x = int64_t{desc.n} * desc.h * desc.w * desc.c;
  const int64_t y = int64_t{desc.n} * p * q * desc.k;
  const int64_t filter = int64_t{desc.k} * desc.r * desc.s * desc.c;
  size_t bytes = 0;
  check(mp_conv2d_workspace_size(context, &desc, op, nullptr, &bytes));
  void *const first = operands.input(dtype, op == MP_CONV_DGRAD ? y : x);
  void *const second = operands.input(dtype, op == MP_CONV_WGRAD ? y : filter);
  void *const out = operands.output(dtype, op == MP_CONV_FPROP   ? y
                                           : op == MP_CONV_DGRAD ? x
                                                                 : filter);
  check(function(context, &desc, first, second, out, nullptr, operands.scratch(bytes), bytes,
                 kStream));
  return operands.bytes();
}

}  // namespace

void add_products(std::vector<Call> &calls) {
  for (const Product &product : kProducts) {
    calls.push_back({product.name, [=](mp_context_t c) { return multiply(c, product); }});
    calls.push_back({std::string("kernels: ") + product.name, [=](mp_context_t c) {
                       const mp_gemm_desc_t desc = desc_of(product);
                       return kernels_by(c, [&](int32_t index, mp_kernel_info_t *info) {
                         return mp_gemm_kernel_info(c, &desc, index, info);
                       });
                     }});
  }
  calls.push_back({"gemm_batched", multiply_batched});
  calls.push_back({"gemm_grouped", multiply_grouped});
  calls.push_back({"gemm_ragged", multiply_ragged});
  for (const mp_dtype_t dtype : {MP_FP16, MP_FP32}) {
    calls.push_back({"conv2d_fprop", [=](mp_context_t c) {
                       return convolve(c, dtype, MP_CONV_FPROP, mp_conv2d_fprop);
                     }});
    calls.push_back({"conv2d_dgrad", [=](mp_context_t c) {
                       return convolve(c, dtype, MP_CONV_DGRAD, mp_conv2d_dgrad);
                     }});
    calls.push_back({"conv2d_wgrad", [=](mp_context_t c) {
                       return convolve(c, dtype, MP_CONV_WGRAD, mp_conv2d_wgrad);
                     }});
    calls.push_back({"kernels: conv2d", [=](mp_context_t c) {
                       const mp_conv2d_desc_t desc = convolution(dtype);
                       return kernels_by(c, [&](int32_t index, mp_kernel_info_t *info) {
                         return mp_conv2d_kernel_info(c, &desc, MP_CONV_FPROP, index, info);
                       });
                     }});
  }
}

}  // namespace mptest
