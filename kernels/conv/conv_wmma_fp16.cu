// The WMMA convolution kernels for FP16 tensors.
#include "kernels/conv/conv_wmma.h"

namespace mp::MP_TARGET {

template void launch_conv_wmma<half>(const ConvChoice &, mp_conv_op_t, const Device &,
                                     const ConvArgs &, mp_stream_t);

}  // namespace mp::MP_TARGET
