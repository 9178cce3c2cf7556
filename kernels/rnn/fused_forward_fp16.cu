// Fused steps of FP16, forward.
#include "kernels/rnn/fused_forward.h"

namespace mp::MP_TARGET {

template void launch_fused_forward<half>(const Device &, const FusedForward &, mp_stream_t);

}  // namespace mp::MP_TARGET
