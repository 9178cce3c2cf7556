// Rows of mp_softmax_xent with a target q[j] >= 0 per class: soft targets, class weights, and the
// negative log-likelihood of log-probabilities.
//
// Q is the sum of q, x[m] the largest logit, and `others` the sum of exp(x[j] - x[m]) without m:
//
//     loss = sum_j q[j] (lse - x[j]) = Q log(1 + others) + sum_j q[j] (x[m] - x[j])
//     dlogits[j] = factor (Q p[j] - q[j])
//     dlogits[m] = factor ((Q - q[m]) p[m] - q[m] others / (1 + others))
//
// z_loss adds z_loss lse^2 to the loss and 2 z_loss lse to Q in the gradient, unless Q is 0.
//
// Q - q[m] is a sum without q[m].  Terms have one sign, so nothing cancels in a row whose target
// has nearly all of the probability.  A block reads its row three times, the last two from caches.
#pragma once

#include "kernels/layers/softmax_xent.h"

namespace mp::MP_TARGET {

/// True if x are log-probabilities: negative log-likelihood.
MP_DEVICE bool is_nll(const XentArgs &args) {
  return (args.desc.flags & MP_XENT_FLAG_LOG_PROBABILITIES) != 0;
}

/// Target of each class, from a label or from soft targets.
struct XentTarget {
  const XentArgs &args;
  int64_t row, label;  ///< label: -1 for soft targets
  float at_label, share;

  MP_DEVICE XentTarget(const XentArgs &args, int64_t row)
      : args(args),
        row(row),
        label(is_soft(args) ? -1 : label_of(args, row)),
        at_label(1.0f - args.desc.label_smoothing),
        share(args.desc.label_smoothing / static_cast<float>(args.desc.classes)) {}

  MP_DEVICE bool is_valid() const {
    return is_soft(args) || (label >= 0 && label < args.desc.classes);
  }
  MP_DEVICE float operator()(int64_t j) const {
    float q[1] = {j == label ? 1.0f : 0.0f};
    if (is_soft(args))
      load_vector(q, args.desc.dtype_labels, args.labels, row * args.desc.ld_labels + j, 1);
    const float smoothed = share > 0.0f ? fmaf(at_label, q[0], share) : q[0];
    return args.class_weights != nullptr ? args.class_weights[j] * smoothed : smoothed;
  }
};

/// A row of x, each of whose classes is read by the same thread in every pass.
template <class T, int kThreads>
struct XentTargetRow {
  const XentArgs &args;
  const T *x;
  T *dx;
  XentTarget target;
  int64_t top = 0;                  ///< first class with the largest x; none: `classes`
  float total = 0.0f, rest = 0.0f;  ///< sum of targets, and the sum without that of `top`
  float distance = 0.0f;            ///< sum of target (x[top] - x), or of -target x
  XentSums sums{};

  MP_DEVICE XentTargetRow(const XentArgs &args, int64_t row)
      : args(args),
        x(static_cast<const T *>(args.x) + row * args.desc.ld_logits),
        dx(args.dx == nullptr ? nullptr : static_cast<T *>(args.dx) + row * args.desc.ld_dlogits),
        target(args, row) {}

  template <class Visit>
  MP_DEVICE void for_each_class(Visit visit) const {
    for (int64_t j = thread_index(); j < args.desc.classes; j += kThreads) visit(j);
  }

  MP_DEVICE void find_top() {
    sums.largest = kXentMasked;
    for_each_class([&](int64_t j) { sums.largest = max_number(sums.largest, to_float(x[j])); });
    sums.largest = block_reduce<kThreads, Max>(sums.largest);
    top = args.desc.classes;
    for_each_class([&](int64_t j) {
      if (to_float(x[j]) == sums.largest) top = min_of(top, j);
    });
    top = block_reduce<kThreads, Min>(top);
  }

  MP_DEVICE void sum_classes() {
    for_each_class([&](int64_t j) {
      const float own = to_float(x[j]), q = target(j);
      if (j != top) sums.others += power<T>(own - sums.largest);
      if (j != top) rest += q;
      if (q != 0.0f) distance += q * (is_nll(args) ? -own : sums.largest - own);
    });
    sums.others = block_reduce<kThreads, Sum>(sums.others);
    rest = block_reduce<kThreads, Sum>(rest);
    distance = block_reduce<kThreads, Sum>(distance);
    total = top < args.desc.classes ? rest + target(top) : rest;
    sums.powers = target.is_valid() ? sums.others + power<T>(sums.largest - sums.largest) : kNaN;
  }

  /// Returns the unweighted loss: NaN if the label is invalid, or x is NaN or positive infinity.
  MP_DEVICE float loss() const {
    if (sums.powers != sums.powers) return kNaN;
    if (is_nll(args)) return distance;
    const float lse = args.desc.z_loss > 0.0f && total > 0.0f ? lse_of(sums) : 0.0f;
    return fmaf(args.desc.z_loss * lse, lse, total * log1pf(sums.others) + distance);
  }

  MP_DEVICE float gradient(int64_t j, float factor) const {
    const float q = target(j), inverse = 1.0f / sums.powers;
    if (is_nll(args)) return -factor * q;
    const float growth = args.desc.z_loss > 0.0f ? 2.0f * args.desc.z_loss * lse_of(sums) : 0.0f;
    if (j == top) return factor * ((rest + growth) * inverse - q * (sums.others * inverse));
    return factor * ((total + growth) * (power<T>(to_float(x[j]) - sums.largest) * inverse) - q);
  }
};

template <class T, int kThreads>
MP_DEVICE void do_row_of_targets(const XentArgs &args, int64_t number, float factor,
                                 AmaxTracker &tracker) {
  XentTargetRow<T, kThreads> row(args, number);
  const bool is_gradient = args.dx != nullptr;
  if (!is_soft(args) && is_ignored(args, row.target.label)) {
    if (thread_index() == 0) store_ignored(args, number);
    if (is_gradient) row.for_each_class([&](int64_t j) { row.dx[j] = round_to<T>(0.0f); });
    return;
  }
  row.find_top();
  row.sum_classes();
  const float loss = row.loss();
  if (thread_index() == 0) {
    const bool predicted = args.correct != nullptr && row.top == row.target.label;
    store_row(args, number, row.sums, loss, predicted);
  }
  if (!is_gradient) return;
  if (loss != loss) factor = loss;
  if (row.total == 0.0f && loss == loss) factor = 0.0f;
  row.for_each_class([&](int64_t j) {
    const float value = row.gradient(j, factor);
    row.dx[j] = round_to<T>(value);
    tracker.see<T>(value);
  });
}

}  // namespace mp::MP_TARGET
