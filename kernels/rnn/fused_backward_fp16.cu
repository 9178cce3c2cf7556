// Fused steps of FP16, backward.
#include "kernels/rnn/fused_backward.h"

namespace mp::MP_TARGET {

template void launch_fused_backward<half>(const Device &, const FusedBackward &, mp_stream_t);

}  // namespace mp::MP_TARGET
