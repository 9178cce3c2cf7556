// Max pooling: the maximum of each window, and its gradient.
//
// A window's dy is added to the pixel at the place of its maximum.  Forward can store this place, a
// byte per output; otherwise backward recomputes it.  A pixel gathers dy of the windows whose
// maximum it is, in their order, so no atomics are needed.
#include "kernels/layers/pool_windows.h"

namespace mp::MP_TARGET {

namespace {

/// Places of the maxima of a run, one per element.
template <class T, class Place>
struct Places {
  static constexpr int kElems = Packed<T>::kElems;
  static constexpr int kWords = kElems * static_cast<int>(sizeof(Place)) / 4;
  static constexpr int kPerWord = kElems / kWords, kBits = 32 / kPerWord;

  MP_DEVICE Places() = default;
  MP_DEVICE explicit Places(const Largest<T, Place> &largest) {
    unroll<kWords>([&](int w) {
      if constexpr (kPerWord == 4)
        words.x[w] = bytes_of(largest.pair_of_places(2 * w)) |
                     bytes_of(largest.pair_of_places(2 * w + 1)) << 16;
      else
        words.x[w] = kPerWord == 2 ? largest.pair_of_places(w) : largest.place(w);
    });
  }

  template <bool kIsFast>
  MP_DEVICE void load(const Place *p, int valid) {
    if constexpr (kIsFast) {
      words = *reinterpret_cast<const Words *>(p);
    } else {
      unroll<kElems>([&](int i) {
        if (i % kPerWord == 0) words.x[i / kPerWord] = 0;
        if (i < valid) words.x[i / kPerWord] |= uint32_t{p[i]} << (kBits * (i % kPerWord));
      });
    }
  }
  template <bool kIsFast>
  MP_DEVICE void store(Place *p, int valid) const {
    if constexpr (kIsFast) {
      *reinterpret_cast<Words *>(p) = words;
    } else {
      unroll<kElems>([&](int i) {
        if (i < valid) p[i] = static_cast<Place>(words.x[i / kPerWord] >> (kBits * (i % kPerWord)));
      });
    }
  }

  /// Adds dy to the elements whose maximum is at `place`.
  MP_DEVICE void operator()(float (&dx)[kElems], const float (&dy)[kElems], uint32_t place) const {
    constexpr uint32_t kMask = ~0u >> (32 - kBits), kOnes = ~0u / kMask;  // 0x01010101 for bytes
    unroll<kElems>([&](int i) {
      const uint32_t differs = words.x[i / kPerWord] ^ place * kOnes;
      if ((differs & kMask << (kBits * (i % kPerWord))) == 0) dx[i] += dy[i];
    });
  }

  using Words = Pack<uint32_t, kWords>;
  Words words;

 private:
  /// Moves the bytes of two 16-bit places to the low half.
  static MP_DEVICE uint32_t bytes_of(uint32_t pair) { return (pair | pair >> 8) & 0xffffu; }
};

/// Returns the maximum of a window, with its place.
template <bool kIsFast, class T, class Place>
MP_DEVICE Largest<T, Place> largest_of(const PoolLaunch &args, const PoolItem &at) {
  const T *const x = static_cast<const T *>(args.x);
  Walk taps = taps_of(args, at);
  Largest<T, Place> largest(args.place(taps.i, taps.j));
  taps.visit<kIsFast ? kInFlight<9> : 1>(
      [&](int32_t, int32_t, int64_t offset) { return load_packed<kIsFast>(x + offset, at.valid); },
      [&](int32_t row, int32_t column, const Packed<T> &loaded) {
        largest.see(loaded, args.place(row, column));
      });
  return largest;
}

// ---------------------------------------------------------------------------- forward

template <class T>
MP_KERNEL(kPoolThreads, 3)
largest_of_windows(MP_PARAM(PoolLaunch) args) {
  const PoolItem at = args.tiles.own_item();
  if (at.valid <= 0) return;
  with_path(args.is_fast, [&](auto fast) {
    const auto largest = largest_of<fast, T, uint8_t>(args, at);
    const int64_t to = args.in_y(at.n, at.i, at.j) + at.channel;
    store_packed<fast>(static_cast<T *>(args.y) + to, largest.value(), at.valid);
    if (args.index != nullptr)
      Places<T, uint8_t>(largest).template store<fast>(args.index + to, at.valid);
  });
}

// ---------------------------------------------------------------------------- backward with places

template <class T>
MP_KERNEL(kPoolThreads, 2)
indexed_backward(MP_PARAM(PoolLaunch) args) {
  using Loaded = Places<T, uint8_t>;
  gather_patches<T>(
      args,
      [&](auto fast, int64_t offset, int valid) {
        Loaded places;
        places.template load<fast>(args.index + offset, valid);
        return places;
      },
      [](int32_t, int32_t, const Loaded &places) { return places; });
}

// ---------------------------------------------------------------------------- backward

// Windows overlap, so a block computes the places of all windows of a tile once, in shared memory.
// If there is not enough, it processes a part of the windows at a time.

constexpr int kFoundBytes = 16384;

struct TileLaunch : PoolLaunch {
  int32_t rows_at_once, columns_at_once;  ///< windows
  FastDivisor columns;                    ///< divides by columns_at_once

  /// @param place_bytes  size of a place
  TileLaunch(const PoolArgs &args, int place_bytes) : PoolLaunch(args, kPatch, false) {
    const int64_t per_run = int64_t{tiles.elems} * place_bytes;
    const int64_t windows = max_of<int64_t>(kFoundBytes / per_run >> tiles.log_runs, 1);
    const int64_t high = windows_of(height, tiles.log_height);
    const int64_t wide = windows_of(width, tiles.log_width);
    columns_at_once = static_cast<int32_t>(min_of(wide, windows));
    rows_at_once = static_cast<int32_t>(columns_at_once < wide ? 1 : min_of(high, windows / wide));
    columns = fast_divisor(columns_at_once);
  }

 private:
  /// Returns an upper bound of the windows along one side of a tile, at least 1.
  static int64_t windows_of(const PoolSide &side, int log2_patches) {
    const int64_t pixels = int64_t{kPatch} << log2_patches;
    return (pixels - 1 + side.extent - 1) / side.stride + 1;
  }
};

template <class T, class Place>
class TileBackward {
  using Found = Places<T, Place>;

 public:
  static constexpr int kFound = kFoundBytes / static_cast<int>(sizeof(typename Found::Words));

  MP_DEVICE TileBackward(const TileLaunch &args, typename Found::Words (&found)[kFound])
      : args_(args), found_(found), first_(args.tiles.first_item()) {}

  template <bool kIsFast>
  MP_DEVICE void run(AmaxTracker &tracker) {
    const PoolItem own = args_.tiles.own_item();
    PatchGradient<T> patch(args_, own);
    const Range rows = windows(args_.height, first_.i, args_.tiles.log_height);
    const Range columns = windows(args_.width, first_.j, args_.tiles.log_width);
    for (int32_t p = rows.begin; p < rows.end; p += args_.rows_at_once) {
      for (int32_t q = columns.begin; q < columns.end; q += args_.columns_at_once) {
        const Range p_part = rows.common({p, p + args_.rows_at_once});
        const Range q_part = columns.common({q, q + args_.columns_at_once});
        block_sync();  // the previous windows may still be read
        find<kIsFast>(p_part, q_part);
        block_sync();
        if (own.valid > 0) gather<kIsFast>(patch, own, p_part, q_part);
      }
    }
    if (own.valid > 0) patch.template store<kIsFast>(tracker);
  }

 private:
  MP_DEVICE Range windows(const PoolSide &side, int32_t first, int log2_patches) const {
    const int32_t pixel = first * kPatch;
    return side.windows(pixel, min_of(pixel + (kPatch << log2_patches), side.size) - 1);
  }
  /// Returns the index in found_ of the window at an offset from the first of this part.
  MP_DEVICE int slot(int32_t down, int32_t across, int run) const {
    return ((down * args_.columns_at_once + across) << args_.tiles.log_runs) + run;
  }

  template <bool kIsFast>
  MP_DEVICE void find(const Range &rows, const Range &columns) const {
    const int log_runs = args_.tiles.log_runs;
    const int32_t slots = slot(rows.count(), 0, 0);
    for (int32_t s = thread_index(); s < slots; s += kPoolThreads) {
      const Quotient window = args_.columns.divide(s >> log_runs);
      const int32_t channel = first_.channel + (s & ((1 << log_runs) - 1)) * args_.tiles.elems;
      const int32_t valid = min_of(args_.desc.c - channel, args_.tiles.elems);
      if (window.remainder >= columns.count() || valid <= 0) continue;
      const PoolItem at{first_.n, rows.begin + window.quotient, columns.begin + window.remainder,
                        channel, valid};
      found_[s] = Found(largest_of<kIsFast, T, Place>(args_, at)).words;
    }
  }

  template <bool kIsFast>
  MP_DEVICE void gather(PatchGradient<T> &patch, const PoolItem &own, const Range &rows,
                        const Range &columns) const {
    const int run = (own.channel - first_.channel) / args_.tiles.elems;
    patch.template gather<kIsFast>(
        rows.common(patch.rows()), columns.common(patch.columns()),
        [&](int32_t p, int32_t q, int64_t) {
          Found places;
          places.words = found_[slot(p - rows.begin, q - columns.begin, run)];
          return places;
        },
        [](int32_t, int32_t, const Found &places) { return places; });
  }

  const TileLaunch &args_;
  typename Found::Words (&found_)[kFound];
  const PoolItem first_;  ///< first item of the tile
};

template <class T, class Place>
MP_KERNEL(kPoolThreads, 2)
largest_backward(MP_PARAM(TileLaunch) args) {
  using Tile = TileBackward<T, Place>;
  using Words = typename Places<T, Place>::Words;
  MP_SHARED(Words, found, [Tile::kFound]);
  AmaxTracker tracker(args.stats);
  with_path(args.is_fast, [&](auto fast) { Tile(args, found).template run<fast>(tracker); });
  tracker.finish();
}

}  // namespace

void max_pool(const Device &device, const PoolArgs &args, mp_stream_t stream) {
  with_type(args.desc.dtype, [&]<class T>(std::type_identity<T>) {
    launch_pool("pool_max", largest_of_windows<T>, device, PoolLaunch(args, 0), stream);
  });
}

void max_pool_backward(const Device &device, const PoolArgs &args, mp_stream_t stream) {
  const bool is_small = int64_t{args.desc.window_h} * args.desc.window_w <= 1 << 16;
  with_type(args.desc.dtype, [&]<class T>(std::type_identity<T>) {
    const auto launch_tiles = [&]<class Place>(std::type_identity<Place>) {
      launch_pool("pool_max_backward", largest_backward<T, Place>, device,
                  TileLaunch(args, sizeof(Place)), stream);
    };
    if (args.index != nullptr)
      launch_pool("pool_max_backward_indexed", indexed_backward<T>, device,
                  PoolLaunch(args, kPatch), stream);
    else if (is_small)
      launch_tiles(std::type_identity<uint16_t>{});
    else
      launch_tiles(std::type_identity<uint32_t>{});
  });
}

}  // namespace mp::MP_TARGET
