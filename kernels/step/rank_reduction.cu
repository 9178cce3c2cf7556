// Values that all ranks of a step agree on: whether it is skipped, the largest gradient and, if
// ranks own different tensors, the norm.  Each rank writes a message before the reduction and reads
// the reduced message after it.
//
// Non-finite values are sent as codes: libraries differ in the maximum of NaN, and infinity would
// hide the largest finite gradient.
#include "kernels/simt/reduce.h"
#include "kernels/step/loss_scale.h"
#include "kernels/step/step_args.h"
#include "kernels/tensors/norm.h"

namespace mp::MP_TARGET {

namespace {

constexpr uint32_t kNanBits = 0x7fc00000u;

MP_DEVICE void add_amax(RankMessage &message, float amax) {
  if (std::isnan(amax)) message.code = kRankFoundNan;
  if (std::isinf(amax)) message.code = max_of(message.code, kRankFoundInf);
  if (std::isfinite(amax)) message.amax = max_of(message.amax, amax);
}

/// Power-of-two factors of the three slots of a sum of squares: norms from 2^56 on, norms below
/// 2^-50, and all others.  With them, sums over 2^16 ranks neither overflow nor vanish in fp32.
MP_DEVICE double sum_factor(int place) {
  return place == 0 ? 0x1p-200 : place == 1 ? 0x1p200 : 1.0;
}
MP_DEVICE int place_of_sum(double sum) {
  if (!std::isfinite(sum)) return 2;
  return sum >= 0x1p112 ? 0 : sum < 0x1p-100 ? 1 : 2;
}

MP_KERNEL(kWarpSize, 1)
write_message(MP_PARAM(RankReductionArgs) args) {
  if (thread_index() != 0) return;
  RankMessage message{};
  if (!has_scale(*args.scaler)) message.code = kRankNoScale;
  if (*args.found_inf != 0.0f) message.code = kRankFoundInf;
  if (args.scaler_amax != nullptr) add_amax(message, *args.scaler_amax);
  add_amax(message, args.scaler->amax);
  if (args.grad_amax != nullptr && std::isfinite(*args.grad_amax))
    message.grad_amax = *args.grad_amax;
  if (args.sum_squares != nullptr) {
    const int place = place_of_sum(*args.sum_squares);
    message.sum_squares[place] = static_cast<float>(*args.sum_squares * sum_factor(place));
  }
  *args.message = message;
}

MP_KERNEL(kWarpSize, 1)
take_message(MP_PARAM(RankReductionArgs) args) {
  if (thread_index() != 0) return;
  RankMessage &message = *args.message;
  if (message.code >= kRankFoundInf) *args.found_inf = 1.0f;
  if (message.code == kRankFoundNan) message.amax = float_from_bits(kNanBits);
  if (args.clip.grad_scale == nullptr) return;
  double sum = 0.0;
  for (int place = 0; place < kRankSums; place++)
    sum += static_cast<double>(message.sum_squares[place]) / sum_factor(place);
  apply_clip(args.clip, sqrt(sum));
}

}  // namespace

void pack_rank_message(const Device &device, const RankReductionArgs &args, mp_stream_t stream) {
  launch("write_message", write_message, device, {1, kWarpSize}, stream, args);
}

void unpack_rank_message(const Device &device, const RankReductionArgs &args, mp_stream_t stream) {
  launch("take_message", take_message, device, {1, kWarpSize}, stream, args);
}

}  // namespace mp::MP_TARGET
