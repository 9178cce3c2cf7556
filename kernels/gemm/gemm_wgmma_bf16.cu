// The wgmma kernels for BF16 operands.
#include "kernels/gemm/gemm_wgmma.h"

namespace mp::MP_TARGET {

template void launch_wgmma_kernel<bf16>(const GemmChoice &, const Device &, const WgmmaArgs &,
                                        mp_stream_t);

}  // namespace mp::MP_TARGET
