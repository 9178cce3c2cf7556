// See wgmma_plan.h.
#include "kernels/gemm/wgmma_plan.h"

namespace mp::MP_TARGET {

namespace {

/// Rows of `cols` elements, `rows` of them, per batch item.
TensorMapSpec matrix_spec(const Operand &x, mp_dtype_t dtype, int64_t rows, int64_t cols,
                          int64_t batch_count, int box_rows) {
  TensorMapSpec spec{};
  spec.base = x.base;
  spec.dtype = dtype;
  spec.extent[0] = cols;
  spec.extent[1] = rows;
  // A matrix that all items share is one item.
  spec.extent[2] = x.stride != 0 ? batch_count : 1;
  spec.stride[0] = x.ld;
  spec.stride[1] = x.stride;
  spec.box[0] = 64;
  spec.box[1] = box_rows;
  spec.swizzle_128 = true;
  return spec;
}

}  // namespace

TensorMap wgmma_map_a(const GemmProblem &p, const GemmChoice &choice) {
  const GemmKernel &kernel = *choice.kernel;
  const bool by_k = p.op_a == MP_OP_N;
  const int shared_by = kernel.tile_m > kernel.tile_n ? choice.cluster : 1;
  return tensor_map(matrix_spec(p.a, p.dtype_ab, by_k ? p.m : p.k, by_k ? p.k : p.m, p.batch_count,
                                by_k ? kernel.tile_m / shared_by : kernel.tile_k));
}
TensorMap wgmma_map_b(const GemmProblem &p, const GemmChoice &choice) {
  const GemmKernel &kernel = *choice.kernel;
  const bool by_k = p.op_b == MP_OP_T;
  const int shared_by = kernel.tile_m > kernel.tile_n ? 1 : choice.cluster;
  return tensor_map(matrix_spec(p.b, p.dtype_ab, by_k ? p.n : p.k, by_k ? p.k : p.n, p.batch_count,
                                by_k ? kernel.tile_n / shared_by : kernel.tile_k));
}
TensorMapSpec wgmma_spec_d(const GemmProblem &p) {
  return matrix_spec(p.d, p.dtype_cd, p.m, p.n, p.batch_count, 16);
}

bool wgmma_has_extras(const Epilogue &e) {
  return e.bias != nullptr || e.activation != MP_ACT_NONE || e.amax != nullptr ||
         e.found_inf != nullptr;
}

StorePath wgmma_store_path(const GemmProblem &p, bool d_fits_tma) {
  const Epilogue &e = p.epilogue;
  if (e.aux != nullptr) return StorePath::general;
  if (p.dtype_cd == MP_FP32)
    return e.bias == nullptr && e.activation == MP_ACT_NONE ? StorePath::direct
                                                            : StorePath::general;
  const bool simple = e.activation == MP_ACT_NONE || e.activation == MP_ACT_RELU;
  return p.beta == 0.0f && simple && d_fits_tma ? StorePath::tma : StorePath::general;
}

void launch_wgmma_kernel(const GemmChoice &choice, const Device &device, const WgmmaArgs &args,
                         mp_stream_t stream) {
  if (args.problem.dtype_ab == MP_FP16)
    launch_wgmma_fp16(choice, device, args, stream);
  else
    launch_wgmma_bf16(choice, device, args, stream);
}

}  // namespace mp::MP_TARGET
