// Row of logits in the registers of a warp.
#pragma once

#include "kernels/layers/softmax_xent.h"

namespace mp::MP_TARGET {

/// Logits of a lane: kRuns vectors of kRun classes.  Vector r of adjacent lanes is contiguous.
template <class T, int kRun, int kRuns>
struct WarpRow {
  float x[kRuns][kRun];

  static MP_DEVICE int column(int run) { return (run * kWarpSize + lane_index()) * kRun; }
  static MP_DEVICE int valid(const XentRow<T> &row, int run) {
    return max_of(min_of(static_cast<int>(row.classes) - column(run), kRun), 0);
  }

  /// Calls visit(x[r], r) for the vectors that are not empty in all lanes.
  template <class Visit>
  MP_DEVICE void for_each_vector(const XentRow<T> &row, Visit visit) {
    MP_UNROLL
    for (int r = 0; r < kRuns; r++)
      if (r * kWarpSize * kRun < row.classes) visit(x[r], r);
  }

  /// Loads the row; elements past the last class are masked.
  MP_DEVICE void load(const XentRow<T> &row) {
    for_each_vector(row, [&](float(&run)[kRun], int r) {
      load_vector(run, row.logits + column(r), valid(row, r));
      MP_UNROLL
      for (int i = 0; i < kRun; i++) run[i] = i < valid(row, r) ? run[i] : kXentMasked;
    });
  }

  MP_DEVICE float largest(const XentRow<T> &row) {
    float found = kXentMasked;
    for_each_vector(row, [&](float(&run)[kRun], int) {
      MP_UNROLL
      for (int i = 0; i < kRun; i++) found = max_number(found, run[i]);
    });
    return warp_reduce<Max>(found);
  }

  /// Returns whether no class before the label has the same logit.
  MP_DEVICE bool label_is_first(const XentRow<T> &row) {
    int earlier = 0;
    for_each_vector(row, [&](float(&run)[kRun], int r) {
      MP_UNROLL
      for (int i = 0; i < kRun; i++)
        earlier |= column(r) + i < row.label && run[i] == row.label_logit;
    });
    return warp_reduce<Max>(earlier) == 0;
  }

  MP_DEVICE float sum_differences(const XentRow<T> &row) {
    float sum = 0.0f;
    for_each_vector(row, [&](float(&run)[kRun], int r) {
      MP_UNROLL
      for (int i = 0; i < kRun; i++) sum += i < valid(row, r) ? run[i] - row.label_logit : 0.0f;
    });
    return warp_reduce<Sum>(sum);
  }

  /// Replaces logits by exp(logit - largest) and returns the sum without the label's.
  MP_DEVICE float exponentiate(const XentRow<T> &row, float largest) {
    float sum = 0.0f;
    for_each_vector(row, [&](float(&run)[kRun], int r) {
      MP_UNROLL
      for (int i = 0; i < kRun; i++) run[i] = power<T>(run[i] - largest);
      sum += sum_of_others(run, row.label - column(r));
    });
    return warp_reduce<Sum>(sum);
  }

  MP_DEVICE void write_gradient(const XentRow<T> &row, const XentGradient &gradient) {
    for_each_vector(row, [&](float(&run)[kRun], int r) {
      gradient.apply(run, row.label - column(r));
      store_vector(row.dlogits + column(r), run, valid(row, r));
    });
  }
  MP_DEVICE void write_zeros(const XentRow<T> &row) {
    for_each_vector(row, [&](float(&run)[kRun], int r) {
      MP_UNROLL
      for (int i = 0; i < kRun; i++) run[i] = 0.0f;
      store_vector(row.dlogits + column(r), run, valid(row, r));
    });
  }
};

}  // namespace mp::MP_TARGET
