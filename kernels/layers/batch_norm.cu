// Batch normalization, forward.
//
// Training: measure_pieces computes a mean and a sum of squared deviations per channel and part of
// the rows, finish_statistics combines them, and a second pass over x normalizes the rows.
// Inference has the second pass only.
//
// A thread computes exact deviations from the mean of 4 rows at a time.  All other statistics are
// combined as in Chan, Golub & LeVeque, Algorithms for Computing the Sample Variance, 1983,
// formulas 2.1.
#include "kernels/layers/batch_norm.h"

namespace mp::MP_TARGET {

namespace {

[[maybe_unused]] constexpr int kThreads = ColumnPartition::kThreads;
constexpr int kRowsAtOnce = 4;       // rows whose statistics a thread sums at once
constexpr int kRowsToNormalize = 4;  // rows that a thread normalizes at once; more would spill

// ---------------------------------------------------------------------------- statistics

/// Moments of `count` samples.
template <class Real>
struct Moments {
  Real count, mean, squares;  ///< squares: sum of (x - mean)^2

  MP_DEVICE Moments operator+(const Moments &b) const {
    if (b.count == 0) return *this;
    const Real total = count + b.count, share = b.count / total, delta = b.mean - mean;
    return {total, mean + delta * share, squares + b.squares + delta * (delta * (count * share))};
  }
};

/// Moments of the rows of one thread; all its channels have the same count.
struct ThreadMoments {
  float count = 0.0f;
  float mean[kVec] = {}, squares[kVec] = {};

  /// Adds the rows x[r] with r < num_rows; num_rows >= 1.  Their mean is computed relative to the
  /// first row, because a sum of equal numbers could round or overflow.  delta is multiplied by
  /// count * share, which is 0 for the first group, before it is squared: delta^2 could overflow.
  MP_DEVICE void add(const float (&x)[kRowsAtOnce][kVec], int num_rows) {
    const float rows = static_cast<float>(num_rows);
    const float one_share = 1.0f / rows, share = rows / (count + rows);
    unroll<kVec>([&](int i) {
      float above[kRowsAtOnce] = {}, sum = 0.0f, deviations = 0.0f;
      MP_UNROLL
      for (int r = 1; r < kRowsAtOnce; r++) {
        above[r] = r < num_rows ? x[r][i] - x[0][i] : 0.0f;
        sum += above[r];
      }
      const float offset = sum * one_share;
      unroll<kRowsAtOnce>([&](int r) {
        const float deviation = r < num_rows ? above[r] - offset : 0.0f;
        deviations = fmaf(deviation, deviation, deviations);
      });
      const float delta = (x[0][i] + offset) - mean[i];
      mean[i] = fmaf(delta, share, mean[i]);
      squares[i] += fmaf(delta * (count * share), delta, deviations);
    });
    count += rows;
  }
};

MP_DEVICE ThreadMoments measure_rows(const PassArgs &args, const Part &part) {
  const RowsOfThread rows = rows_of_thread(args.partition, args.call.desc.channels, part);
  ThreadMoments moments;
  const auto measure = [&]<class T>(std::type_identity<T>, auto whole) {
    for (int64_t row = rows.first; row < part.end; row += kRowsAtOnce * rows.stride) {
      float x[kRowsAtOnce][kVec];
      load_rows<T, whole>(x, args.call.desc, args.call.x, rows, row, part.end);
      int num_rows = 0;
      unroll<kRowsAtOnce>([&](int r) { num_rows += row + r * rows.stride < part.end; });
      moments.add(x, num_rows);
    }
  };
  with_rows(args.call.desc, rows, measure, args.call.x);
  return moments;
}

MP_KERNEL(kThreads, 2)
measure_pieces(MP_PARAM(PassArgs) args) {
  const int64_t channels = args.call.desc.channels;
  for_each_part(args.partition, args.call.desc.rows, [&](const Part &part) {
    const ThreadMoments own = measure_rows(args, part);
    Moments<float> moments[kVec];
    unroll<kVec>([&](int i) { moments[i] = {own.count, own.mean[i], own.squares[i]}; });
    combine_rows(moments, args.partition, channels, part.tile,
                 [&](int64_t channel, const Moments<float> &all) {
                   args.first(part.chunk, channel) = all.mean;
                   args.second(part.chunk, channel) = all.squares;
                 });
  });
}

/// Sets running = (1 - momentum) running + momentum value.  A running value that is not finite
/// would never recover, so `value` replaces it.
MP_DEVICE void update_running(float *running, int64_t channel, float momentum, float value) {
  if (running == nullptr || momentum == 0.0f) return;
  const float old = running[channel];
  running[channel] = is_nonfinite(old) ? value : fmaf(momentum, value, (1.0f - momentum) * old);
}

MP_KERNEL(kThreads, 1)
finish_statistics(MP_PARAM(PassArgs) args) {
  const BatchNormArgs &call = args.call;
  const mp_batchnorm_desc_t &desc = call.desc;
  combine_chunks<Moments<double>>(
      args.partition.chunks, desc.channels,
      [&](int64_t chunk, int64_t channel) {
        const int64_t begin = chunk * args.partition.rows_per_chunk;
        const int64_t count = min_of(args.partition.rows_per_chunk, desc.rows - begin);
        return Moments<double>{static_cast<double>(count), args.first(chunk, channel),
                               args.second(chunk, channel)};
      },
      [&](int64_t channel, const Moments<double> &all) {
        const float var = static_cast<float>(all.squares / all.count);
        const float mean = static_cast<float>(all.mean);
        call.saved_mean[channel] = mean;
        call.saved_inv_std[channel] = inverse_std(var, desc.epsilon);
        // A single sample has no unbiased variance; its variance, 0 or NaN, then decides instead.
        const float unbiased =
            desc.rows > 1 ? static_cast<float>(all.squares / (all.count - 1.0)) : var;
        if (is_nonfinite(mean) || is_nonfinite(unbiased)) return;
        update_running(call.running_mean, channel, desc.momentum, mean);
        if (desc.rows > 1) update_running(call.running_var, channel, desc.momentum, unbiased);
      });
}

// ---------------------------------------------------------------------------- normalization

struct NormalizeArgs : PassArgs {
  bool is_inference;  ///< running statistics replace the saved ones
};

template <bool kIsAffine>
MP_KERNEL(kThreads, kIsAffine ? 2 : 1)
normalise(MP_PARAM(NormalizeArgs) args) {
  const mp_batchnorm_desc_t &desc = args.call.desc;
  const bool has_relu = desc.activation == MP_ACT_RELU;
  for_each_part<PartOrder::last_to_first>(args.partition, desc.rows, [&](const Part &part) {
    const RowsOfThread rows = rows_of_thread(args.partition, desc.channels, part);
    const Normalization normalized(args.call, rows, args.is_inference, kIsAffine);
    const auto normalize_rows = [&]<class T>(std::type_identity<T>, auto whole) {
      for (int64_t row = rows.first; row < part.end; row += kRowsToNormalize * rows.stride) {
        float x[kRowsToNormalize][kVec];
        load_rows<T, whole>(x, desc, args.call.x, rows, row, part.end);
        unroll<kRowsToNormalize, kVec>([&](int r, int i) {
          const float z = normalized.z(x[r][i], i);
          x[r][i] = has_relu ? relu(z) : z;
        });
        store_rows<T>(x, desc, args.call.y, rows, row, part.end);
      }
    };
    with_rows(desc, rows, normalize_rows, args.call.x);
  });
}

void launch_normalize(const Device &device, const BatchNormArgs &call, bool is_inference,
                      mp_stream_t stream) {
  const NormalizeArgs args{{call, elementwise_partition(call.desc)}, is_inference};
  const bool is_affine = call.gamma != nullptr && call.beta != nullptr;
  launch_parts("batch_norm_normalise", is_affine ? normalise<true> : normalise<false>, device, args,
               stream);
}

}  // namespace

void batch_norm_training(const Device &device, const BatchNormArgs &args, mp_stream_t stream) {
  const PassArgs statistics{args, {args.desc.rows, args.desc.channels}};
  launch_parts("batch_norm_measure", measure_pieces, device, statistics, stream);
  launch_combine("batch_norm_finish", finish_statistics, device, args.desc.channels, statistics,
                 stream);
  launch_normalize(device, args, false, stream);
}

void batch_norm_inference(const Device &device, const BatchNormArgs &args, mp_stream_t stream) {
  BatchNormArgs call = args;
  call.saved_mean = args.running_mean;
  call.saved_inv_std = args.running_var;
  launch_normalize(device, call, true, stream);
}

}  // namespace mp::MP_TARGET
