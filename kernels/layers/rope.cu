// Rotary position embedding.
//
// A thread rotates the same kVec pairs of up to kHeadsAtOnce heads of a token, so that it computes
// their sines and cosines once.  These are correctly rounded in almost all cases, from fp64: fp32
// would need a reduction of large angles with several words.  Every element is read and written by
// one thread, so y may be x.
#include <cmath>

#include "kernels/layers/layer_args.h"
#include "kernels/simt/reproducible_math.h"
#include "kernels/tensors/runs.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kHeadsAtOnce = 8;

struct RotateArgs {
  RopeArgs call;
  int64_t groups;    ///< groups of heads per token
  int pair_columns;  ///< pairs, rounded up to full vectors; the remaining elements follow
  int rest;          ///< elements after rotary_dim that are copied or tracked
  float inv_freq[kMaxRotaryDim / 2];  ///< used if the caller has none
};

/// Sines and cosines of adjacent pairs of a token.
struct Rotation {
  float sin[kVec], cos[kVec];

  MP_DEVICE Rotation(const RotateArgs &args, int64_t row, int first, int pairs) {
    const RopeArgs &call = args.call;
    const float position = call.positions != nullptr ? static_cast<float>(call.positions[row])
                                                     : static_cast<float>(row % call.desc.period);
    const bool is_inverse = (call.desc.flags & MP_ROPE_FLAG_INVERSE) != 0;
    unroll<kVec>([&](int i) {
      float frequency = 0.0f;
      if (i < pairs)
        frequency = call.inv_freq != nullptr ? call.inv_freq[first + i] : args.inv_freq[first + i];
      const reproducible::SinCos of_angle = reproducible::sin_cos(position * frequency);
      cos[i] = of_angle.cos;
      sin[i] = is_inverse ? -of_angle.sin : of_angle.sin;
    });
  }

  MP_DEVICE void rotate(float (&a)[kVec], float (&b)[kVec]) const {
    unroll<kVec>([&](int i) {
      const float x = a[i];
      a[i] = fmaf(x, cos[i], -(b[i] * sin[i]));
      b[i] = fmaf(b[i], cos[i], x * sin[i]);
    });
  }
};

/// Rotates `pairs` pairs, from pair `first` on, of the head that begins at x.
template <class T, bool kIsInterleaved>
MP_DEVICE void rotate_head(const Rotation &rotation, const T *x, T *y, int half, int first,
                           int pairs, AmaxTracker &tracker) {
  if constexpr (kIsInterleaved) {
    float both[2 * kVec], a[kVec], b[kVec];
    load_vector(both, x + 2 * first, 2 * pairs);
    unroll<kVec>([&](int i) { a[i] = both[2 * i], b[i] = both[2 * i + 1]; });
    rotation.rotate(a, b);
    unroll<kVec>([&](int i) { both[2 * i] = a[i], both[2 * i + 1] = b[i]; });
    store_vector(y + 2 * first, both, 2 * pairs);
    tracker.see<T>(both, 2 * pairs);
  } else {
    float halves[2][kVec];
    load_rows(halves, x + first, half, 1, 2, pairs);
    rotation.rotate(halves[0], halves[1]);
    store_vector(y + first, halves[0], pairs);
    store_vector(y + half + first, halves[1], pairs);
    tracker.see<T>(halves[0], pairs);
    tracker.see<T>(halves[1], pairs);
  }
}

template <class T, bool kIsInterleaved>
MP_KERNEL(kRowRunThreads, 8)
rotate_rows(MP_PARAM(RotateArgs) args) {
  wait_for_previous_kernel();
  const mp_rope_desc_t &desc = args.call.desc;
  const int half = desc.rotary_dim / 2;
  AmaxTracker tracker(args.call.stats);
  const auto for_each_head = [&](int64_t item, int64_t row, auto visit) {
    const int64_t first = (item - row * args.groups) * kHeadsAtOnce;
    const int64_t end = min_of<int64_t>(first + kHeadsAtOnce, desc.heads);
    for (int64_t head = first; head < end; head++) {
      const int64_t at = row * desc.x_row + head * desc.x_head;
      visit(static_cast<const T *>(args.call.x) + at, static_cast<T *>(args.call.y) + at);
    }
  };
  for_each_row_run(
      desc.rows * args.groups, args.pair_columns + args.rest,
      [&](int64_t item, int64_t column, int valid) {
        const int64_t row = item / args.groups;
        if (column < args.pair_columns) {
          const int first = static_cast<int>(column), pairs = min_of(half - first, kVec);
          const Rotation rotation(args, row, first, pairs);
          for_each_head(item, row, [&](const T *x, T *y) {
            rotate_head<T, kIsInterleaved>(rotation, x, y, half, first, pairs, tracker);
          });
          return;
        }
        const int64_t at = desc.rotary_dim + column - args.pair_columns;
        for_each_head(item, row, [&](const T *x, T *y) {
          float copied[kVec];
          load_vector(copied, x + at, valid);
          if (x != y) store_vector(y + at, copied, valid);
          tracker.see<T>(copied, valid);
        });
      });
  tracker.finish();
}

}  // namespace

void rope(const Device &device, const RopeArgs &call, mp_stream_t stream) {
  const mp_rope_desc_t &desc = call.desc;
  RotateArgs args{};
  args.call = call;
  args.groups = ceil_div<int64_t>(desc.heads, kHeadsAtOnce);
  args.pair_columns = ceil_div(desc.rotary_dim / 2, kVec) * kVec;
  const bool has_stats = call.stats.found_inf != nullptr || call.stats.amax != nullptr;
  if (call.x != call.y || has_stats) args.rest = desc.head_dim - desc.rotary_dim;
  // Computed by the CPU, so that both targets use the same values.
  if (call.inv_freq == nullptr)
    for (int i = 0; i < desc.rotary_dim / 2; i++)
      args.inv_freq[i] =
          static_cast<float>(std::pow(static_cast<double>(desc.base), -2.0 * i / desc.rotary_dim));
  with_type(desc.dtype, [&]<class T>(std::type_identity<T>) {
    const bool is_interleaved = (desc.flags & MP_ROPE_FLAG_INTERLEAVED) != 0;
    launch_row_runs("rope", is_interleaved ? rotate_rows<T, true> : rotate_rows<T, false>, device,
                    desc.rows * args.groups, args.pair_columns + args.rest, kBlocksOfFullSm, args,
                    stream);
  });
}

}  // namespace mp::MP_TARGET
