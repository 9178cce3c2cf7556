// The WMMA kernels for BF16 operands.
#include "kernels/gemm/gemm_wmma.h"

namespace mp::MP_TARGET {

template void launch_wmma<bf16>(const GemmChoice &, const Device &, const GemmArgs &, mp_stream_t);

}  // namespace mp::MP_TARGET
