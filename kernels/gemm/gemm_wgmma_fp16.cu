// The wgmma kernels for FP16 operands.
#include "kernels/gemm/gemm_wgmma.h"

namespace mp::MP_TARGET {

template void launch_wgmma_kernel<half>(const GemmChoice &, const Device &, const WgmmaArgs &,
                                        mp_stream_t);

}  // namespace mp::MP_TARGET
