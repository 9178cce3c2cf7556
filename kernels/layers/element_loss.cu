// Element-wise losses, their mean or sum, and their gradients.
//
// Each block sums a chunk of the elements into the workspace, and one block adds these sums.  With
// ignored targets, an earlier launch counts the other elements of each chunk, because the gradient
// depends on their total number.  Chunks depend on the number of elements only.
#include "kernels/layers/softmax_xent.h"
#include "kernels/simt/logistic.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = LossArgs::kAtOnce / kVec;

struct ChunkedArgs : LossArgs {
  int64_t chunk, chunks;  ///< elements per chunk, and number of chunks

  MP_DEVICE bool ignores() const { return (desc.flags & MP_LOSS_FLAG_IGNORE_TARGET) != 0; }
  MP_DEVICE bool is_ignored(float t) const {
    const float ignored = desc.ignore_target;
    return ignores() && (t == ignored || (t != t && ignored != ignored));
  }
};

// ---------------------------------------------------------------------------- one element

struct ElementLoss {
  float loss, slope;  ///< value at (x, t), and derivative with respect to x

  MP_DEVICE ElementLoss(const mp_loss_desc_t &desc, float x, float t) {
    const mp_loss_kind_t kind = desc.kind;
    if (kind == MP_LOSS_BCE_WITH_LOGITS) {
      of_logit(x == kInfinity ? kNaN : x, t);
      return;
    }
    if (kind == MP_LOSS_LINEAR) {
      loss = x * t;
      slope = t;
      return;
    }
    const float difference = x - t;
    if (kind == MP_LOSS_MSE) {
      loss = difference * difference;
      slope = 2.0f * difference;
      return;
    }
    if (kind != MP_LOSS_L1) {
      const float near = max_of(min_of(difference, desc.delta), -desc.delta);
      slope = kind == MP_LOSS_HUBER ? near : near / desc.delta;
      loss = slope * (difference - 0.5f * near);
      if (is_nonfinite(difference)) slope = kNaN;
      return;
    }
    const float sign = difference > 0.0f ? 1.0f : difference < 0.0f ? -1.0f : 0.0f;
    loss = fabsf(difference);
    slope = is_nonfinite(difference) ? kNaN : sign;
  }

 private:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();

  /// Computes BCE with u = 1 - t for x >= 0, else t.  The loss is |x| u + log(1 + e^-|x|), and the
  /// derivative is u - sigmoid(-|x|) with the sign of x.  Nothing cancels for t = 0 or 1, because
  /// one of the terms is then 0.
  MP_DEVICE void of_logit(float x, float t) {
    const bool is_positive = x >= 0.0f;
    const float u = is_positive ? 1.0f - t : t;
    const float e = exp_of_negative(-fabsf(x));
    loss = (u == 0.0f ? 0.0f : fabsf(x) * u) + log1pf(e);
    slope = is_positive ? u - e / (1.0f + e) : e / (1.0f + e) - u;
  }
};

// ---------------------------------------------------------------------------- kernels

/// Calls visit(first element, count) for this thread's vectors in the chunk of this block.
template <class Visit>
MP_DEVICE void for_each_vector(const ChunkedArgs &args, Visit visit) {
  const int64_t begin = block_index() * args.chunk;
  const int64_t end = min_of(begin + args.chunk, args.desc.count);
  for (int64_t i = begin + thread_index() * kVec; i < end; i += kThreads * kVec)
    visit(i, static_cast<int>(min_of<int64_t>(end - i, kVec)));
}

MP_KERNEL(kThreads, 2)
count_targets(MP_PARAM(ChunkedArgs) args) {
  int64_t own = 0;
  for_each_vector(args, [&](int64_t i, int valid) {
    float t[kVec];
    load_vector(t, args.desc.dtype_target, args.target, i, valid);
    for (int k = 0; k < valid; k++) own += !args.is_ignored(t[k]);
  });
  const int64_t counted = block_reduce<kThreads, Sum>(own);
  if (thread_index() == 0) args.workspace[block_index()].counted = counted;
}

/// Returns the sum of a member over all partial results, in every thread.
template <class T>
MP_DEVICE T sum_of_chunks(const ChunkedArgs &args, T LossPartial::*member) {
  T own = 0;
  for (int64_t i = thread_index(); i < args.chunks; i += kThreads) own += args.workspace[i].*member;
  return block_reduce<kThreads, Sum>(own);
}

/// Returns the number of elements that are not ignored.
MP_DEVICE double counted_of(const ChunkedArgs &args) {
  return static_cast<double>(args.ignores() ? sum_of_chunks(args, &LossPartial::counted)
                                            : args.desc.count);
}

MP_KERNEL(kThreads, 2)
losses_of_chunk(MP_PARAM(ChunkedArgs) args) {
  const float weight = args.desc.weight;
  float factor = args.loss_scale != nullptr ? *args.loss_scale * weight : weight;
  if (args.desc.reduction == MP_LOSS_REDUCTION_MEAN && args.dprediction != nullptr)
    factor /= static_cast<float>(counted_of(args));
  double sum = 0.0;
  AmaxTracker tracker(args.stats);
  for_each_vector(args, [&](int64_t i, int valid) {
    float x[kVec] = {}, t[kVec], w[kVec], loss[kVec], slope[kVec];
    if (args.prediction != nullptr) load_vector(x, args.desc.dtype, args.prediction, i, valid);
    load_vector(t, args.desc.dtype_target, args.target, i, valid);
    if (args.weights != nullptr) load_vector(w, args.weights + i, valid);
    unroll<kVec>([&](int k) {
      const float own_weight = args.weights != nullptr ? w[k] : 1.0f;
      const bool is_out = k >= valid || own_weight == 0.0f || args.is_ignored(t[k]);
      const ElementLoss element(args.desc, x[k], t[k]);
      loss[k] = is_out ? 0.0f : weighted(weight * own_weight, element.loss);
      slope[k] = is_out ? 0.0f : weighted(factor * own_weight, element.slope);
      sum += static_cast<double>(loss[k]);
    });
    if (args.element_loss != nullptr) store_vector(args.element_loss + i, loss, valid);
    if (args.dprediction == nullptr) return;
    store_vector(args.desc.dtype, args.dprediction, i, slope, valid);
    tracker.see(args.desc.dtype, slope, valid);
  });
  tracker.finish();
  sum = block_reduce<kThreads, Sum>(sum);
  if (thread_index() == 0) args.workspace[block_index()].loss = sum;
}

MP_KERNEL(kThreads, 1)
finish_loss(MP_PARAM(ChunkedArgs) args) {
  const double sum = sum_of_chunks(args, &LossPartial::loss);
  const double divisor = args.desc.reduction == MP_LOSS_REDUCTION_MEAN ? counted_of(args) : 1.0;
  if (thread_index() == 0) *args.loss = static_cast<float>(sum / divisor);
}

}  // namespace

void element_loss(const Device &device, const LossArgs &call, mp_stream_t stream) {
  const ChunkedArgs args{call, call.chunk_elems(), call.num_chunks()};
  if ((call.desc.flags & MP_LOSS_FLAG_IGNORE_TARGET) != 0)
    launch("loss_count", count_targets, device, {args.chunks, kThreads}, stream, args);
  launch("loss_elements", losses_of_chunk, device, {args.chunks, kThreads}, stream, args);
  if (call.loss != nullptr) launch("loss_sum", finish_loss, device, {1, kThreads}, stream, args);
}

}  // namespace mp::MP_TARGET
