// Fused steps of BF16 on Hopper, forward.
#include "kernels/rnn/fused_wgmma_forward.h"

namespace mp::MP_TARGET {

template void launch_fused_wgmma_forward<bf16>(const Device &, const FusedForward &, mp_stream_t);

}  // namespace mp::MP_TARGET
