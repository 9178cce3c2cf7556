// The WMMA kernels for FP16 operands: every tile, every pair of ops.
#include "kernels/gemm/gemm_wmma_dispatch.h"

namespace mp::MP_TARGET {

void launch_wmma_fp16(const GemmChoice &choice, const Device &device, const GemmArgs &args,
                      mp_stream_t stream) {
  launch_wmma<half>(choice, device, args, stream);
}

}  // namespace mp::MP_TARGET
