// Pooling: launches of both modes; average pooling, the mean of each window, and its gradient.
#include "kernels/layers/pool_windows.h"

namespace mp::MP_TARGET {

namespace {

/// Returns the divisor of the mean of window (p, q).
MP_DEVICE float pixels_in_mean(const PoolLaunch &args, int32_t p, int32_t q) {
  const PoolSide &h = args.height, &w = args.width;
  const int64_t count = args.desc.mode == MP_POOL_AVG_INCLUDE_PAD
                            ? int64_t{h.padded_count(p)} * w.padded_count(q)
                            : int64_t{h.taps(p).count()} * w.taps(q).count();
  return static_cast<float>(count);
}

template <class T>
MP_KERNEL(kPoolThreads, 3)
mean_of_windows(MP_PARAM(PoolLaunch) args) {
  const PoolItem at = args.tiles.own_item();
  if (at.valid <= 0) return;
  with_path(args.is_fast, [&](auto fast) {
    const T *const x = static_cast<const T *>(args.x);
    float mean[Packed<T>::kElems] = {};
    taps_of(args, at).template visit<decltype(fast)::value ? kInFlight<9> : 1>(
        [&](int32_t, int32_t, int64_t offset) { return load_packed<fast>(x + offset, at.valid); },
        [&](int32_t, int32_t, const Packed<T> &loaded) {
          unroll<Packed<T>::kElems>([&](int k) { mean[k] += loaded[k]; });
        });
    const float count = pixels_in_mean(args, at.i, at.j);
    unroll<Packed<T>::kElems>([&](int k) { mean[k] /= count; });
    store_packed<fast>(static_cast<T *>(args.y) + args.in_y(at.n, at.i, at.j) + at.channel,
                       packed<T>(mean), at.valid);
  });
}

template <class T>
MP_KERNEL(kPoolThreads, 2)
mean_backward(MP_PARAM(PoolLaunch) args) {
  constexpr int kElems = Packed<T>::kElems;
  gather_patches<T>(
      args, [](auto, int64_t, int) { return nullptr; },
      [&](int32_t p, int32_t q, std::nullptr_t) {
        const float share = 1.0f / pixels_in_mean(args, p, q);
        return [=](float(&dx)[kElems], const float(&dy)[kElems], uint32_t) {
          unroll<kElems>([&](int k) { dx[k] = fmaf(dy[k], share, dx[k]); });
        };
      });
}

}  // namespace

void pool_forward(const Device &device, const PoolArgs &args, mp_stream_t stream) {
  if (args.desc.mode == MP_POOL_MAX) return max_pool(device, args, stream);
  with_type(args.desc.dtype, [&]<class T>(std::type_identity<T>) {
    launch_pool("pool_avg", mean_of_windows<T>, device, PoolLaunch(args, 0), stream);
  });
}

void pool_backward(const Device &device, const PoolArgs &args, mp_stream_t stream) {
  if (args.desc.mode == MP_POOL_MAX) return max_pool_backward(device, args, stream);
  with_type(args.desc.dtype, [&]<class T>(std::type_identity<T>) {
    launch_pool("pool_avg_backward", mean_backward<T>, device, PoolLaunch(args, kPatch), stream);
  });
}

}  // namespace mp::MP_TARGET
