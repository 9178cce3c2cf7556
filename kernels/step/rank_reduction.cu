// What the ranks of a step agree on: whether it is skipped, the largest gradient and, where every rank
// has tensors of its own, their norm.  Before the reduction each rank writes a message; after it, each
// takes what the message has become for its own.
//
// Libraries differ in what NaN does to a maximum, and infinity would hide the largest finite
// gradient, so that what is not finite travels as a code.
#include "kernels/simt/reduce.h"
#include "kernels/step/args.h"
#include "kernels/tensors/clip.h"

namespace mp::MP_TARGET {

namespace {

constexpr float kFinite = 0.0f, kFoundInf = 1.0f, kFoundNan = 2.0f;
constexpr uint32_t kNanBits = 0x7fc00000u;

MP_DEVICE void hear_amax(RankMessage &message, float amax) {
  if (std::isnan(amax)) message.code = kFoundNan;
  if (std::isinf(amax)) message.code = max_of(message.code, kFoundInf);
  if (std::isfinite(amax)) message.amax = max_of(message.amax, amax);
}

MP_KERNEL(kWarpSize, 1)
write_message(MP_PARAM(RankReductionArgs) args) {
  if (thread_index() != 0) return;
  RankMessage message{*args.found_inf != 0.0f ? kFoundInf : kFinite, 0.0f, 0.0f};
  if (args.measured_amax != nullptr) hear_amax(message, *args.measured_amax);
  if (args.scaler != nullptr) hear_amax(message, args.scaler->amax);
  if (args.sum_squares != nullptr) message.sum_squares = static_cast<float>(*args.sum_squares);
  *args.message = message;
}

MP_KERNEL(kWarpSize, 1)
take_message(MP_PARAM(RankReductionArgs) args) {
  if (thread_index() != 0) return;
  const RankMessage message = *args.message;
  if (message.code != kFinite) *args.found_inf = 1.0f;
  *args.amax = message.code == kFoundNan ? float_from_bits(kNanBits) : message.amax;
  if (args.sum_squares == nullptr) return;
  *args.norm = static_cast<float>(sqrt(static_cast<double>(message.sum_squares)));
  if (args.clip.grad_scale != nullptr) apply_clip(args.clip);
}

}  // namespace

void pack_rank_message(const Device &device, const RankReductionArgs &args, mp_stream_t stream) {
  launch("write_message", write_message, device, {1, kWarpSize}, stream, args);
}

void unpack_rank_message(const Device &device, const RankReductionArgs &args, mp_stream_t stream) {
  launch("take_message", take_message, device, {1, kWarpSize}, stream, args);
}

}  // namespace mp::MP_TARGET
