// What the kernels of softmax cross-entropy share: a row, its loss, its gradient, and how many rows
// count.  With q the target, (1 - label_smoothing) at the label plus share = label_smoothing / classes
// everywhere:
//
//     loss = -sum_j q[j] log p[j] = log(sum) - (x[label] - largest) - share sum_j (x[j] - x[label])
//     dlogits[j] = factor (p[j] - q[j]),  p[j] = exp(x[j] - largest) / sum
//     dlogits[label] = factor (label_smoothing - share - others / sum)
//
// The sum of the smoothed part is taken of differences to the label's logit: a number that is known
// beforehand, and a common offset of all logits leaves no rounding there.
//
// `others` is the sum without the label's exponential, added up by itself: 1 - p[label] and
// log(1 + others) lose nothing in a row whose label has nearly all of the probability.  Without
// smoothing all terms are positive, so that the relative error of the label's gradient is that of
// an exponential, plus (a + 6) 2^-24 where a is the number of additions one after the other: one of
// them in `sum`, a quotient, two products, S weight, and a rounding.
#pragma once

#include <limits>
#include <type_traits>

#include "kernels/layers/args.h"
#include "kernels/simt/fast_math.h"
#include "kernels/simt/reduce.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

constexpr float kXentNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kXentMasked = -std::numeric_limits<float>::infinity();  // logit of probability 0

/// exp(logit - shift), never of a positive number.  Next to a gradient that is rounded to 16 bits the error
/// of fast_exp does not show; fp32 logits have half as many elements per byte, and time for expf.
template <class T>
MP_DEVICE float power(float difference) {
  if constexpr (std::is_same_v<T, float>)
    return expf(difference);
  else
    return fast_exp(difference);
}

template <class T>
struct XentRow {
  int64_t number, classes;
  const T *logits;
  T *dlogits;  ///< or NULL
  int64_t label;
  bool ignored;
  float label_logit;  ///< NaN where the label is none of the classes: so is the loss

  MP_DEVICE XentRow(const XentArgs &args, int64_t number)
      : number(number),
        classes(args.classes),
        logits(static_cast<const T *>(args.logits) + number * args.ld_logits),
        dlogits(args.dlogits == nullptr
                    ? nullptr
                    : static_cast<T *>(args.dlogits) + number * args.ld_dlogits),
        label(args.labels[number]),
        ignored(args.ignores && label == args.ignore_label),
        label_logit(kXentNaN) {
    if (!ignored && label >= 0 && label < classes) label_logit = to_float(logits[label]);
  }
};

/// Over the classes of a row.
struct XentSums {
  float largest;      ///< logit
  float others;       ///< exp(logit - largest), but not that of the label
  float powers;       ///< exp(logit - largest)
  float differences;  ///< logit - the label's; only with label smoothing
};

/// The sum of the powers of neighbouring classes but the label's.
/// @param label  the label, counted from the first of them; any number
template <int kRun>
MP_DEVICE float sum_of_others(const float (&powers)[kRun], int64_t label) {
  float sum = 0.0f;
  if (static_cast<uint64_t>(label) >= kRun) {
    MP_UNROLL
    for (int i = 0; i < kRun; i++) sum += powers[i];
  } else {
    MP_UNROLL
    for (int i = 0; i < kRun; i++) sum += i == static_cast<int>(label) ? 0.0f : powers[i];
  }
  return sum;
}

/// What all rows have in common.
struct XentFactors {
  float of_row;  ///< S weight / rows that count
  float share;   ///< of label smoothing, for each class
};

/// The loss of a row before it is weighted.
template <class T>
MP_DEVICE float loss_of(const XentFactors &factors, const XentRow<T> &row, const XentSums &sums) {
  const float difference = row.label_logit - sums.largest;
  float loss = difference == 0.0f ? log1pf(sums.others) : logf(sums.powers) - difference;
  // A masked label has an infinite loss already, and differences of infinities.
  if (factors.share > 0.0f && row.label_logit != kXentMasked)
    loss -= factors.share * sums.differences;
  return loss;
}

/// A weight of 0 leaves nothing of an infinite loss.
MP_DEVICE float weighted(float weight, float loss) {
  return weight == 0.0f && loss == loss ? 0.0f : weight * loss;
}

/// From exp(logit - largest) to the gradient.  All are NaN where the loss is: the step is to be skipped,
/// not to continue with the rest of the row.
struct XentGradient {
  float slope;      ///< factor / sum
  float at_label;   ///< the gradient itself
  float elsewhere;  ///< -factor share

  MP_DEVICE XentGradient(const XentArgs &args, const XentFactors &factors, const XentSums &sums,
                         float loss) {
    const float factor = loss == loss ? factors.of_row : loss;
    slope = factor * (1.0f / sums.powers);
    at_label = fmaf(-slope, sums.others, factor * (args.label_smoothing - factors.share));
    elsewhere = -factor * factors.share;
  }

  MP_DEVICE float operator()(float power, bool is_label) const {
    return is_label ? at_label : fmaf(power, slope, elsewhere);
  }

  /// The powers of neighbouring classes become their gradients.
  /// @param label  the label, counted from the first of them; any number
  template <int kRun>
  MP_DEVICE void apply(float (&powers)[kRun], int64_t label) const {
    if (static_cast<uint64_t>(label) >= kRun) {
      MP_UNROLL
      for (int i = 0; i < kRun; i++) powers[i] = (*this)(powers[i], false);
    } else {
      MP_UNROLL
      for (int i = 0; i < kRun; i++) powers[i] = (*this)(powers[i], i == static_cast<int>(label));
    }
  }
};

// ---------------------------------------------------------------------------- rows that count

/// Up to so many rows each worker counts for itself, which is quicker than a launch.
constexpr int64_t kRowsCountedByAll = 512;
/// Blocks or warps that share the rows.  Each starts with the row of its own number.
constexpr int64_t kMaxXentWorkers = 65536;

MP_DEVICE bool counts(const XentArgs &args, int64_t row) {
  return !args.ignores || args.labels[row] != args.ignore_label;
}

/// The rows that count, for a worker whose first row is `first`.  There is no workspace: where they were
/// counted by a launch before this one, their number lies in row_loss[first], which no other worker
/// writes.  To be called by all threads of the worker.
/// @tparam kThreads  of the worker: kWarpSize for a warp, otherwise it is a block
template <int kThreads>
MP_DEVICE float rows_that_count(const XentArgs &args, int64_t first) {
  constexpr bool kIsWarp = kThreads == kWarpSize;
  if (!args.ignores || args.dlogits == nullptr) return static_cast<float>(args.rows);
  if (args.rows > kRowsCountedByAll) {
    const float counted = first < args.rows ? args.row_loss[first] : 0.0f;
    kIsWarp ? warp_sync()
            : block_sync();  // all have read it before it becomes the loss of that row
    return counted;
  }
  int own = 0;
  for (int64_t i = kIsWarp ? lane_index() : thread_index(); i < args.rows; i += kThreads)
    own += counts(args, i);
  if constexpr (kIsWarp)
    return static_cast<float>(warp_reduce<Sum>(own));
  else
    return static_cast<float>(block_reduce<kThreads, Sum>(own));
}

template <int kThreads>
MP_DEVICE XentFactors factors_of(const XentArgs &args, int64_t first) {
  const float scale = args.loss_scale != nullptr ? *args.loss_scale : 1.0f;
  return {scale * args.weight / rows_that_count<kThreads>(args, first),
          args.label_smoothing / static_cast<float>(args.classes)};
}

}  // namespace mp::MP_TARGET
