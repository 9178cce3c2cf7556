// The WMMA kernels for FP16 operands.
#include "kernels/gemm/gemm_wmma.h"

namespace mp::MP_TARGET {

template void launch_wmma<half>(const GemmChoice &, const Device &, const GemmArgs &, mp_stream_t);

}  // namespace mp::MP_TARGET
