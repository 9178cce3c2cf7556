// Common parts of the softmax cross-entropy kernels: a row, its loss, its gradient, and the number
// of rows that count.  The target q is (1 - label_smoothing) at the label plus share =
// label_smoothing / classes for all classes:
//
//     loss = -sum_j q[j] log p[j] = log(sum) - (x[label] - largest) - share sum_j (x[j] - x[label])
//     dlogits[j] = factor (p[j] - q[j]),  p[j] = exp(x[j] - largest) / sum
//     dlogits[label] = factor (label_smoothing - share - others / sum)
//
// z_loss adds z_loss lse^2 to the loss and 2 z_loss lse factor p[j] to the gradient, where
// lse = largest + log(sum).
//
// The smoothed part sums differences from the label's logit, which is known in advance: a common
// offset of all logits causes no rounding error.
//
// `others` is the sum without the label's exponential, accumulated separately: 1 - p[label] and
// log(1 + others) stay accurate in a row whose label has nearly all of the probability.  Without
// smoothing all terms are positive, so the relative error of the label's gradient is that of an
// exponential plus (a + 6) 2^-24, where a is the number of sequential additions.  The other 6
// operations are an addition in `sum`, a quotient, two products, S weight and a rounding.
#pragma once

#include <limits>
#include <type_traits>

#include "kernels/layers/layer_args.h"
#include "kernels/simt/fast_math.h"
#include "kernels/simt/reduce.h"
#include "kernels/simt/vector.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

constexpr float kXentMasked = -std::numeric_limits<float>::infinity();  // logit of probability 0

/// Returns exp(difference), difference <= 0.  The error of fast_exp is negligible next to the
/// rounding of 16-bit gradients; fp32 logits have half as many elements per byte, which leaves time
/// for expf.
template <class T>
MP_DEVICE float power(float difference) {
  if constexpr (std::is_same_v<T, float>)
    return expf(difference);
  else
    return fast_exp(difference);
}

/// True if labels are the probabilities of all classes.
MP_DEVICE bool is_soft(const XentArgs &args) {
  return args.desc.dtype_labels <= kLastFloatType;
}
MP_DEVICE int64_t label_of(const XentArgs &args, int64_t row) {
  return load_integer(args.desc.dtype_labels, args.labels, row);
}
MP_DEVICE bool ignores(const XentArgs &args) {
  return (args.desc.flags & MP_XENT_FLAG_IGNORE_LABEL) != 0;
}
MP_DEVICE bool is_ignored(const XentArgs &args, int64_t label) {
  return ignores(args) && label == args.desc.ignore_label;
}

/// Row of logits, with its label and gradient.
template <class T>
struct XentRow {
  int64_t number, classes;
  const T *logits;
  T *dlogits;     ///< NULL: no gradient
  int64_t label;  ///< -1: not a class
  bool ignored;
  float label_logit;  ///< NaN if the label is not a class; the loss is then NaN

  MP_DEVICE XentRow(const XentArgs &args, int64_t number)
      : number(number),
        classes(args.desc.classes),
        logits(static_cast<const T *>(args.x) + number * args.desc.ld_logits),
        dlogits(args.dx == nullptr ? nullptr
                                   : static_cast<T *>(args.dx) + number * args.desc.ld_dlogits),
        label(label_of(args, number)),
        ignored(is_ignored(args, label)),
        label_logit(kNaN) {
    if (label < 0 || label >= classes) label = -1;
    if (!ignored && label >= 0) label_logit = to_float(logits[label]);
  }
};

/// Sums over the classes of a row.
struct XentSums {
  float largest;      ///< largest logit
  float others;       ///< sum of exp(logit - largest) without the label
  float powers;       ///< sum of exp(logit - largest)
  float differences;  ///< sum of logit - label_logit; only with label smoothing
};

/// Returns the sum of the exponentials of adjacent classes without the label's.
/// @param label  index of the label relative to the first class; may be out of range
template <int kRun>
MP_DEVICE float sum_of_others(const float (&powers)[kRun], int64_t label) {
  float sum = 0.0f;
  if (static_cast<uint64_t>(label) >= kRun) {
    unroll<kRun>([&](int i) { sum += powers[i]; });
  } else {
    unroll<kRun>([&](int i) { sum += i == static_cast<int>(label) ? 0.0f : powers[i]; });
  }
  return sum;
}

/// Returns log sum_j exp(x[j]).
MP_DEVICE float lse_of(const XentSums &sums) {
  return sums.largest + logf(sums.powers);
}

/// Factors that all rows share.
struct XentFactors {
  float of_row;  ///< S weight / rows that count
  float share;   ///< label smoothing per class
};

/// Returns the unweighted loss of a row.
template <class T>
MP_DEVICE float loss_of(const XentArgs &args, const XentFactors &factors, const XentRow<T> &row,
                        const XentSums &sums) {
  const float difference = row.label_logit - sums.largest;
  float loss = difference == 0.0f ? log1pf(sums.others) : logf(sums.powers) - difference;
  // A masked label already has an infinite loss; its differences may be NaN.
  if (factors.share > 0.0f && row.label_logit != kXentMasked)
    loss -= factors.share * sums.differences;
  if (args.desc.z_loss > 0.0f) {
    const float lse = lse_of(sums);
    loss = fmaf(args.desc.z_loss * lse, lse, loss);
  }
  return loss;
}

/// Returns weight * loss, or 0 if the weight is 0 and the loss infinite.
MP_DEVICE float weighted(float weight, float loss) {
  return weight == 0.0f && loss == loss ? 0.0f : weight * loss;
}

/// Conversion of exp(logit - largest) to the gradient.  If the loss is NaN, all gradients are NaN,
/// so that the step is skipped and does not use the rest of the row.
struct XentGradient {
  float slope;      ///< factor (1 + 2 z_loss lse) / sum
  float at_label;   ///< gradient of the label's logit
  float elsewhere;  ///< -factor share

  MP_DEVICE XentGradient(const XentArgs &args, const XentFactors &factors, const XentSums &sums,
                         float loss) {
    const float factor = loss == loss ? factors.of_row : loss;
    slope = factor * (1.0f / sums.powers);
    at_label = fmaf(-slope, sums.others, factor * (args.desc.label_smoothing - factors.share));
    elsewhere = -factor * factors.share;
    if (args.desc.z_loss > 0.0f) {
      const float growth = 2.0f * args.desc.z_loss * lse_of(sums);
      at_label = fmaf(growth, fmaf(-slope, sums.others, factor), at_label);
      slope = fmaf(slope, growth, slope);
    }
  }

  MP_DEVICE float operator()(float power, bool is_label) const {
    return is_label ? at_label : fmaf(power, slope, elsewhere);
  }

  /// Replaces the exponentials of adjacent classes by their gradients.
  /// @param label  index of the label relative to the first class; may be out of range
  template <int kRun>
  MP_DEVICE void apply(float (&powers)[kRun], int64_t label) const {
    if (static_cast<uint64_t>(label) >= kRun) {
      unroll<kRun>([&](int i) { powers[i] = (*this)(powers[i], false); });
    } else {
      unroll<kRun>([&](int i) { powers[i] = (*this)(powers[i], i == static_cast<int>(label)); });
    }
  }
};

MP_DEVICE void store_ignored(const XentArgs &args, int64_t row) {
  args.row_loss[row] = 0.0f;
  if (args.lse != nullptr) args.lse[row] = 0.0f;
}

/// @param loss  unweighted
MP_DEVICE void store_row(const XentArgs &args, int64_t row, const XentSums &sums, float loss,
                         bool is_predicted) {
  args.row_loss[row] = weighted(args.desc.weight, loss);
  if (args.lse != nullptr) args.lse[row] = lse_of(sums);
  if (is_predicted && loss == loss) atomic_add(args.correct, 1);
}

// ---------------------------------------------------------------------------- rows that count

/// Up to this number of rows, each worker counts all rows itself, which is faster than a launch.
constexpr int64_t kRowsCountedByAll = 512;
/// Maximum number of workers, the blocks or warps that share the rows.  Worker i begins with row i.
constexpr int64_t kMaxXentWorkers = 65536;

/// Returns what a row adds to the divisor of the loss.  An invalid label has no weight; the loss of
/// its row is NaN.
MP_DEVICE double row_weight(const XentArgs &args, int64_t row) {
  if (is_soft(args)) return 1.0;
  const int64_t label = label_of(args, row);
  if (is_ignored(args, label)) return 0.0;
  if (args.class_weights == nullptr) return 1.0;
  return label >= 0 && label < args.desc.classes ? static_cast<double>(args.class_weights[label])
                                                 : 0.0;
}

/// Returns the sum of the row weights.  Must be called by all threads of the block.
template <int kThreads>
MP_DEVICE float summed_weights(const XentArgs &args) {
  double own = 0.0;
  for (int64_t i = thread_index(); i < args.desc.rows; i += kThreads) own += row_weight(args, i);
  return static_cast<float>(block_reduce<kThreads, Sum>(own));
}

/// Returns the divisor of the loss, for a worker whose first row is `first`: *count, or the number
/// of rows that count.  There is no workspace: if an earlier launch has counted the rows, their
/// number is in row_loss[first], which no other worker writes.  Must be called by all threads of
/// the worker.
/// @tparam kThreads  threads of the worker: kWarpSize for a warp, else a block
template <int kThreads>
MP_DEVICE float divisor_of(const XentArgs &args, int64_t first) {
  constexpr bool kIsWarp = kThreads == kWarpSize;
  const int64_t rows = args.desc.rows;
  if (args.count != nullptr) return *args.count;
  if (!ignores(args) || args.dx == nullptr) return static_cast<float>(rows);
  if (rows > kRowsCountedByAll) {
    const float counted = first < rows ? args.row_loss[first] : 0.0f;
    kIsWarp ? warp_sync() : block_sync();  // all have read it before the row's loss overwrites it
    return counted;
  }
  int own = 0;
  for (int64_t i = kIsWarp ? lane_index() : thread_index(); i < rows; i += kThreads)
    own += !is_ignored(args, label_of(args, i));
  if constexpr (kIsWarp)
    return static_cast<float>(warp_reduce<Sum>(own));
  else
    return static_cast<float>(block_reduce<kThreads, Sum>(own));
}

template <int kThreads>
MP_DEVICE XentFactors factors_of(const XentArgs &args, int64_t first) {
  const float scale = args.loss_scale != nullptr ? *args.loss_scale : 1.0f;
  return {scale * args.desc.weight / divisor_of<kThreads>(args, first),
          args.desc.label_smoothing / static_cast<float>(args.desc.classes)};
}

}  // namespace mp::MP_TARGET
