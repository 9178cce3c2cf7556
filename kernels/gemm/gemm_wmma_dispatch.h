// From a choice made at run time to the WMMA kernel compiled for it.
#pragma once

#include "kernels/gemm/gemm_wmma.h"

namespace mp::MP_TARGET {

template <class T, mp_op_t op_a, mp_op_t op_b>
void launch_wmma_tile(const GemmChoice &choice, const Device &device, const GemmArgs &args,
                      mp_stream_t stream) {
  switch (choice.kernel->tile) {
    case GemmTile::wmma_256x128:
      return launch_gemm_wmma<T, op_a, op_b, WmmaTile256x128>(choice.name, device, args, stream);
    case GemmTile::wmma_128x128:
      return launch_gemm_wmma<T, op_a, op_b, WmmaTile128x128>(choice.name, device, args, stream);
    case GemmTile::wmma_64x64:
      return launch_gemm_wmma<T, op_a, op_b, WmmaTile64x64>(choice.name, device, args, stream);
    default:
      throw TargetError(MP_ERROR_INTERNAL, std::string(choice.name) + " is no WMMA kernel");
  }
}

template <class T>
void launch_wmma(const GemmChoice &choice, const Device &device, const GemmArgs &args,
                 mp_stream_t stream) {
  const mp_op_t a = args.problem.op_a, b = args.problem.op_b;
  if (a == MP_OP_N && b == MP_OP_N)
    return launch_wmma_tile<T, MP_OP_N, MP_OP_N>(choice, device, args, stream);
  if (a == MP_OP_N) return launch_wmma_tile<T, MP_OP_N, MP_OP_T>(choice, device, args, stream);
  if (b == MP_OP_N) return launch_wmma_tile<T, MP_OP_T, MP_OP_N>(choice, device, args, stream);
  return launch_wmma_tile<T, MP_OP_T, MP_OP_T>(choice, device, args, stream);
}

}  // namespace mp::MP_TARGET
