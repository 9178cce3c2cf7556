// The wgmma kernels for FP16 operands: every tile, every pair of ops.
#include "kernels/gemm/gemm_wgmma_dispatch.h"

namespace mp::MP_TARGET {

void launch_wgmma_fp16(const GemmChoice &choice, const Device &device, const WgmmaArgs &args,
                       mp_stream_t stream) {
  launch_wgmma_ops<half>(choice, device, args, stream);
}

}  // namespace mp::MP_TARGET
