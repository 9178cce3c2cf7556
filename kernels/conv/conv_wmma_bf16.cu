// The WMMA convolution kernels for BF16 tensors.
#include "kernels/conv/conv_wmma.h"

namespace mp::MP_TARGET {

template void launch_conv_wmma<bf16>(const ConvChoice &, mp_conv_op_t, const Device &,
                                     const ConvArgs &, mp_stream_t);

}  // namespace mp::MP_TARGET
