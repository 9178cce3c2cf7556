// What the kernels of softmax cross-entropy share: a row, its loss, its gradient, and how many rows
// count.  With q the target, (1 - label_smoothing) at the label plus share = label_smoothing / classes
// everywhere:
//
//     loss = -sum_j q[j] log p[j] = log(sum) - (x[label] - largest) - share sum_j (x[j] - x[label])
//     dlogits[j] = factor (p[j] - q[j]),  p[j] = exp(x[j] - largest) / sum
//
// The sum of the smoothed part is taken of differences to the label's logit: a number that is known
// beforehand, and a common offset of all logits leaves no rounding there.
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
  float powers;       ///< exp(logit - largest)
  float differences;  ///< logit - the label's; only with label smoothing
};

/// What all rows have in common.
struct XentFactors {
  float of_row;  ///< S weight / rows that count
  float share;   ///< of label smoothing, for each class
};

template <class T>
MP_DEVICE float loss_of(const XentArgs &args, const XentFactors &factors, const XentRow<T> &row,
                        const XentSums &sums) {
  float loss = logf(sums.powers) - (row.label_logit - sums.largest);
  // A masked label has an infinite loss already, and differences of infinities.
  if (args.label_smoothing > 0.0f && row.label_logit != kXentMasked)
    loss -= factors.share * sums.differences;
  return args.weight * loss;
}

/// From exp(logit - largest) to the gradient.  All are NaN where the loss is: the step is to be skipped,
/// not to continue with the rest of the row.
struct XentGradient {
  float slope;     ///< factor / sum
  float at_label;  ///< -factor q
  float elsewhere;

  MP_DEVICE XentGradient(const XentArgs &args, const XentFactors &factors, const XentSums &sums,
                         float loss) {
    const float factor = loss == loss ? factors.of_row : loss;
    slope = factor * (1.0f / sums.powers);
    at_label = -factor * (1.0f - args.label_smoothing + factors.share);
    elsewhere = -factor * factors.share;
  }

  MP_DEVICE float operator()(float power, bool is_label) const {
    return fmaf(power, slope, is_label ? at_label : elsewhere);
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
