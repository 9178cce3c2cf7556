// The wgmma convolution kernels for BF16 tensors.
#include "kernels/conv/dgrad_wgmma.h"

namespace mp::MP_TARGET {

template void launch_conv_wgmma_kernel<bf16>(const ConvChoice &, mp_conv_op_t, const Device &,
                                             const ConvWgmmaArgs &, mp_stream_t);
template void launch_dgrad_wgmma_kernel<bf16>(const ConvChoice &, const Device &,
                                              const DgradWgmmaArgs &, mp_stream_t);

}  // namespace mp::MP_TARGET
