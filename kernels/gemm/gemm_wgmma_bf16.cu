// The wgmma kernels for BF16 operands: every tile, every pair of ops.
#include "kernels/gemm/gemm_wgmma_dispatch.h"

namespace mp::MP_TARGET {

void launch_wgmma_bf16(const GemmChoice &choice, const Device &device, const WgmmaArgs &args,
                       mp_stream_t stream) {
  launch_wgmma_ops<bf16>(choice, device, args, stream);
}

}  // namespace mp::MP_TARGET
