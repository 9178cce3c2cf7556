// From a choice made at run time to the wgmma kernel compiled for it.
#pragma once

#include "kernels/gemm/gemm_wgmma.h"

namespace mp::MP_TARGET {

template <class T, mp_op_t op_a, mp_op_t op_b>
void launch_wgmma_tile(const GemmChoice &choice, const Device &device, const WgmmaArgs &args,
                       mp_stream_t stream) {
  switch (choice.kernel->tile) {
    case GemmTile::wgmma_128x256:
      return launch_gemm_wgmma<T, op_a, op_b, WgmmaTile128x256>(choice, device, args, stream);
    case GemmTile::wgmma_256x128:
      return launch_gemm_wgmma<T, op_a, op_b, WgmmaTile256x128>(choice, device, args, stream);
    case GemmTile::wgmma_128x128:
      return launch_gemm_wgmma<T, op_a, op_b, WgmmaTile128x128>(choice, device, args, stream);
    case GemmTile::wgmma_64x256:
      return launch_gemm_wgmma<T, op_a, op_b, WgmmaTile64x256>(choice, device, args, stream);
    case GemmTile::wgmma_64x128:
      return launch_gemm_wgmma<T, op_a, op_b, WgmmaTile64x128>(choice, device, args, stream);
    default:
      throw TargetError(MP_ERROR_INTERNAL, std::string(choice.name) + " is no wgmma kernel");
  }
}

template <class T>
void launch_wgmma_ops(const GemmChoice &choice, const Device &device, const WgmmaArgs &args,
                      mp_stream_t stream) {
  const mp_op_t a = args.problem.op_a, b = args.problem.op_b;
  if (a == MP_OP_N && b == MP_OP_N)
    return launch_wgmma_tile<T, MP_OP_N, MP_OP_N>(choice, device, args, stream);
  if (a == MP_OP_N) return launch_wgmma_tile<T, MP_OP_N, MP_OP_T>(choice, device, args, stream);
  if (b == MP_OP_N) return launch_wgmma_tile<T, MP_OP_T, MP_OP_N>(choice, device, args, stream);
  return launch_wgmma_tile<T, MP_OP_T, MP_OP_T>(choice, device, args, stream);
}

}  // namespace mp::MP_TARGET
