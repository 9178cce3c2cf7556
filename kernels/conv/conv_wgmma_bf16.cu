// The wgmma convolution kernels for BF16 tensors: every tile, every pass.
#include "kernels/conv/conv_wgmma.h"

namespace mp::MP_TARGET {

void launch_conv_wgmma_bf16(const ConvChoice &choice, mp_conv_op_t op, const Device &device,
                            const ConvWgmmaArgs &args, mp_stream_t stream) {
  launch_conv_wgmma<bf16>(choice, op, device, args, stream);
}

}  // namespace mp::MP_TARGET
