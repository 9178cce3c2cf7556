// The WMMA convolution kernels for BF16 tensors: every tile, every pass.
#include "kernels/conv/conv_wmma.h"

namespace mp::MP_TARGET {

void launch_conv_wmma_bf16(const ConvChoice &choice, mp_conv_op_t op, const Device &device,
                           const ConvArgs &args, mp_stream_t stream) {
  launch_conv_wmma<bf16>(choice, op, device, args, stream);
}

}  // namespace mp::MP_TARGET
