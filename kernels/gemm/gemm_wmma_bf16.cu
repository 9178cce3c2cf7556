// The WMMA kernels for BF16 operands: every tile, every pair of ops.
#include "kernels/gemm/gemm_wmma_dispatch.h"

namespace mp::MP_TARGET {

void launch_wmma_bf16(const GemmChoice &choice, const Device &device, const GemmArgs &args,
                      mp_stream_t stream) {
  launch_wmma<bf16>(choice, device, args, stream);
}

}  // namespace mp::MP_TARGET
