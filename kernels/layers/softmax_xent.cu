// Softmax cross-entropy, forward and backward, in fp32; the gradient includes the loss scale.
//
// The logits are read from global memory once.  A warp processes a row of up to kWarpClasses
// classes and keeps it in registers.  A block processes a longer row and keeps a copy in shared
// memory (softmax_xent_block.h).  Class weights, soft targets and log-probabilities have a separate
// kernel (softmax_xent_targets.h).  The thread that reads an element writes its gradient, so
// dlogits may be equal to logits.
#include "kernels/layers/softmax_xent.h"
#include "kernels/layers/softmax_xent_block.h"
#include "kernels/layers/softmax_xent_targets.h"

namespace mp::MP_TARGET {

// ---------------------------------------------------------------------------- row of a warp

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
    unroll<kRuns>([&](int r) {
      if (r * kWarpSize * kRun < row.classes) visit(x[r], r);
    });
  }

  /// Loads the row; elements past the last class are masked.
  MP_DEVICE void load(const XentRow<T> &row) {
    for_each_vector(row, [&](float(&run)[kRun], int r) {
      load_vector(run, row.logits + column(r), valid(row, r));
      unroll<kRun>([&](int i) { run[i] = i < valid(row, r) ? run[i] : kXentMasked; });
    });
  }

  MP_DEVICE float largest(const XentRow<T> &row) {
    float found = kXentMasked;
    for_each_vector(row, [&](float(&run)[kRun], int) {
      unroll<kRun>([&](int i) { found = max_number(found, run[i]); });
    });
    return warp_reduce<Max>(found);
  }

  /// Returns whether no class before the label has the same logit.
  MP_DEVICE bool label_is_first(const XentRow<T> &row) {
    int earlier = 0;
    for_each_vector(row, [&](float(&run)[kRun], int r) {
      unroll<kRun>(
          [&](int i) { earlier |= column(r) + i < row.label && run[i] == row.label_logit; });
    });
    return warp_reduce<Max>(earlier) == 0;
  }

  MP_DEVICE float sum_differences(const XentRow<T> &row) {
    float sum = 0.0f;
    for_each_vector(row, [&](float(&run)[kRun], int r) {
      unroll<kRun>([&](int i) { sum += i < valid(row, r) ? run[i] - row.label_logit : 0.0f; });
    });
    return warp_reduce<Sum>(sum);
  }

  /// Replaces logits by exp(logit - largest) and returns the sum without the label's.
  MP_DEVICE float exponentiate(const XentRow<T> &row, float largest) {
    float sum = 0.0f;
    for_each_vector(row, [&](float(&run)[kRun], int r) {
      unroll<kRun>([&](int i) { run[i] = power<T>(run[i] - largest); });
      sum += sum_of_others(run, row.label - column(r));
    });
    return warp_reduce<Sum>(sum);
  }

  MP_DEVICE void write_gradient(const XentRow<T> &row, const XentGradient &gradient,
                                AmaxTracker &tracker) {
    for_each_vector(row, [&](float(&run)[kRun], int r) {
      gradient.apply(run, row.label - column(r));
      store_vector(row.dlogits + column(r), run, valid(row, r));
      tracker.see<T>(run, valid(row, r));
    });
  }
  MP_DEVICE void write_zeros(const XentRow<T> &row) {
    for_each_vector(row, [&](float(&run)[kRun], int r) {
      unroll<kRun>([&](int i) { run[i] = 0.0f; });
      store_vector(row.dlogits + column(r), run, valid(row, r));
    });
  }
};

namespace {

constexpr int64_t kFewClasses = kWarpSize;  // one element per lane
constexpr int64_t kWarpClasses = 1024;
constexpr int kWarpThreads = 128, kMeanThreads = 512;

// ---------------------------------------------------------------------------- one warp per row

template <class T, int kRun, int kRuns>
MP_DEVICE void do_row_of_warp(const XentArgs &args, int64_t number, const XentFactors &factors,
                              AmaxTracker &tracker) {
  const XentRow<T> row(args, number);
  WarpRow<T, kRun, kRuns> logits;
  if (row.ignored) {
    if (lane_index() == 0) store_ignored(args, number);
    if (row.dlogits != nullptr) logits.write_zeros(row);
    return;
  }
  logits.load(row);
  XentSums sums{logits.largest(row), 0.0f, 0.0f, 0.0f};
  const bool predicted =
      args.correct != nullptr && row.label_logit == sums.largest && logits.label_is_first(row);
  if (args.desc.label_smoothing > 0.0f) sums.differences = logits.sum_differences(row);
  sums.others = logits.exponentiate(row, sums.largest);
  sums.powers = sums.others + power<T>(row.label_logit - sums.largest);
  const float loss = loss_of(args, factors, row, sums);
  warp_sync();  // every lane has read the label's logit before it may be overwritten
  if (lane_index() == 0) store_row(args, number, sums, loss, predicted);
  if (row.dlogits != nullptr)
    logits.write_gradient(row, XentGradient(args, factors, sums, loss), tracker);
}

template <class T, int kRun, int kRuns>
MP_KERNEL(kWarpThreads, 6)
xent_warp_per_row(MP_PARAM(XentArgs) args) {
  constexpr int kWarps = kWarpThreads / kWarpSize;
  const int64_t first = block_index() * kWarps + warp_index();
  const XentFactors factors = factors_of<kWarpSize>(args, first);
  AmaxTracker tracker(args.stats);
  for (int64_t i = first; i < args.desc.rows; i += grid_size() * kWarps)
    do_row_of_warp<T, kRun, kRuns>(args, i, factors, tracker);
  tracker.finish();
}

// ---------------------------------------------------------------------------- one block per row

template <class T, int kThreads>
MP_DEVICE void do_row_of_block(const XentBlockArgs &args, int64_t number,
                               const XentFactors &factors, T *copy, AmaxTracker &tracker) {
  const XentRow<T> row(args, number);
  BlockRow<T, kThreads> logits(args, row, copy);
  if (row.ignored) {
    if (thread_index() == 0) store_ignored(args, number);
    if (row.dlogits != nullptr) logits.write_zeros();
    return;
  }
  const XentSums sums = logits.measure();
  const bool predicted =
      args.correct != nullptr && row.label_logit == sums.largest && logits.label_is_first();
  const float loss = loss_of(args, factors, row, sums);
  if (thread_index() == 0) store_row(args, number, sums, loss, predicted);
  if (row.dlogits != nullptr)
    logits.write_gradient(XentGradient(args, factors, sums, loss), sums.largest, tracker);
}

template <class T, int kThreads>
MP_KERNEL(kThreads, 1024 / kThreads)
xent_block_per_row(MP_PARAM(XentBlockArgs) args) {
  MP_DYN_SHARED(T, copy);
  const XentFactors factors = factors_of<kThreads>(args, block_index());
  AmaxTracker tracker(args.stats);
  for (int64_t i = block_index(); i < args.desc.rows; i += grid_size())
    do_row_of_block<T, kThreads>(args, i, factors, copy, tracker);
  tracker.finish();
}

// ---------------------------------------------------------------------------- a target per class

/// One block per row.  count_rows has stored the divisor in row_loss, unless `count` is given.
template <class T, int kThreads>
MP_KERNEL(kThreads, 768 / kThreads)
xent_targets(MP_PARAM(XentArgs) args) {
  const float scale = args.loss_scale != nullptr ? *args.loss_scale : 1.0f;
  const float divisor = args.count != nullptr ? *args.count
                        : args.dx != nullptr  ? args.row_loss[block_index()]
                                              : 1.0f;
  block_sync();  // all have read the divisor before the row's loss overwrites it
  AmaxTracker tracker(args.stats);
  for (int64_t i = block_index(); i < args.desc.rows; i += grid_size())
    do_row_of_targets<T, kThreads>(args, i, scale * args.desc.weight / divisor, tracker);
  tracker.finish();
}

// ---------------------------------------------------------------------------- all rows

/// Adds the sum of the row weights to *args.sum, or stores it for every worker of these kernels.
MP_KERNEL(kMeanThreads, 1)
count_rows(MP_PARAM(XentArgs) args) {
  const float counted = summed_weights<kMeanThreads>(args);
  const int64_t workers = args.sum != nullptr ? 0 : min_of(args.desc.rows, kMaxXentWorkers);
  for (int64_t i = thread_index(); i < workers; i += kMeanThreads) args.row_loss[i] = counted;
  if (args.sum != nullptr && thread_index() == 0) *args.sum += counted;
}

MP_KERNEL(kMeanThreads, 1)
mean_loss(MP_PARAM(XentArgs) args) {
  double sum = 0.0, counted = 0.0;
  for (int64_t i = thread_index(); i < args.desc.rows; i += kMeanThreads) {
    sum += static_cast<double>(args.row_loss[i]);
    counted += row_weight(args, i);
  }
  sum = block_reduce<kMeanThreads, Sum>(sum);
  counted = block_reduce<kMeanThreads, Sum>(counted);
  if (thread_index() != 0) return;
  const double divisor = args.count != nullptr ? static_cast<double>(*args.count) : counted;
  *args.loss = static_cast<float>(sum / divisor);
}

template <class T, int kRun, int kRuns>
void launch_warps(const Device &device, const XentArgs &args, mp_stream_t stream) {
  constexpr int64_t kWarps = kWarpThreads / kWarpSize;
  const int64_t blocks = ceil_div(min_of(args.desc.rows, kMaxXentWorkers), kWarps);
  launch("softmax_xent", xent_warp_per_row<T, kRun, kRuns>, device, {blocks, kWarpThreads}, stream,
         args);
}

template <class T, int kThreads>
void launch_blocks(const Device &device, const XentArgs &args, mp_stream_t stream) {
  const int64_t copy_bytes =
      args.dx != nullptr ? xent_copy_bytes<T>(args.desc.classes, device.smem_per_block) : 0;
  launch("softmax_xent", xent_block_per_row<T, kThreads>, device,
         {min_of(args.desc.rows, kMaxXentWorkers), kThreads, static_cast<size_t>(copy_bytes)},
         stream, XentBlockArgs{args, copy_bytes / kVectorBytes});
}

template <class T>
void launch_targets(const Device &device, const XentArgs &args, mp_stream_t stream) {
  constexpr int kFew = 64, kMany = 256;
  const bool is_long = args.desc.classes > 1024;
  launch("softmax_xent", is_long ? xent_targets<T, kMany> : xent_targets<T, kFew>, device,
         {min_of(args.desc.rows, kMaxXentWorkers), is_long ? kMany : kFew}, stream, args);
}

/// Selects the kernel by the shape only, as launch_targets does, because the kernel determines the
/// order of the sums.
template <class T>
void launch_rows(const Device &device, const XentArgs &args, mp_stream_t stream) {
  if (args.desc.classes <= kFewClasses)
    launch_warps<T, 1, 1>(device, args, stream);
  else if (args.desc.classes <= kWarpClasses)
    launch_warps<T, 8, kWarpClasses / (8 * kWarpSize)>(device, args, stream);
  else if (args.desc.classes <= kSmallBlockClasses)
    launch_blocks<T, kSmallBlock>(device, args, stream);
  else
    launch_blocks<T, kLargeBlock>(device, args, stream);
}

}  // namespace

void xent_mean(const Device &device, const XentArgs &args, mp_stream_t stream) {
  launch("mean_loss", mean_loss, device, {1, kMeanThreads}, stream, args);
}

void xent_count(const Device &device, const XentArgs &args, mp_stream_t stream) {
  launch("count_rows", count_rows, device, {1, kMeanThreads}, stream, args);
}

void softmax_xent(const Device &device, const XentArgs &args, mp_stream_t stream) {
  const bool has_targets = args.has_targets();
  const bool needs_count = has_targets || ((args.desc.flags & MP_XENT_FLAG_IGNORE_LABEL) != 0 &&
                                           args.desc.rows > kRowsCountedByAll);
  if (needs_count && args.count == nullptr && args.dx != nullptr) xent_count(device, args, stream);
  with_type(args.desc.dtype, [&]<class T>(std::type_identity<T>) {
    (has_targets ? launch_targets<T> : launch_rows<T>)(device, args, stream);
  });
  if (args.loss != nullptr) xent_mean(device, args, stream);
}

}  // namespace mp::MP_TARGET
