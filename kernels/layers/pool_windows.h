// Common parts of the pooling kernels: taps of a window, windows that contain a pixel, and the
// tiles of an image that blocks process.
//
// A thread processes 16 bytes of channels, called a run.  Positions in rectangles are visited by
// rows, with several loads in flight.  Divisors are known before the launch (FastDivisor).
#pragma once

#include <bit>

#include "kernels/layers/layer_args.h"
#include "kernels/simt/fast_math.h"
#include "kernels/simt/packed.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

constexpr int kPoolThreads = 256;

/// Launches of pool_max.cu.
void max_pool(const Device &device, const PoolArgs &args, mp_stream_t stream);
void max_pool_backward(const Device &device, const PoolArgs &args, mp_stream_t stream);

// ---------------------------------------------------------------------------- one side

/// Positions along a side, up to end - 1.
struct Range {
  int32_t begin, end;
  MP_DEVICE int32_t count() const { return max_of(end - begin, 0); }
  MP_DEVICE Range common(const Range &other) const {
    return {max_of(begin, other.begin), min_of(end, other.end)};
  }
};

/// Height or width of the image, the window and the outputs.  Pixels in the padding have negative
/// coordinates, or `size` and larger ones.
struct PoolSide {
  int32_t size, window, pad, pad_behind, outputs, stride, dilation;
  /// Pixels from the first to the last of a window.
  int32_t extent = static_cast<int32_t>(int64_t{window - 1} * dilation + 1);
  FastDivisor strides = fast_divisor(stride), dilations = fast_divisor(dilation);

  /// Returns the first pixel of a window.
  MP_DEVICE int32_t origin(int32_t output) const { return output * stride - pad; }
  /// Returns the taps of window `output` inside the image.
  MP_DEVICE Range taps(int32_t output) const {
    const int32_t first = origin(output);
    return {first < 0 ? taps_within(-first) : 0, taps_within(size - first)};
  }
  /// Returns the number of taps of window `output` inside the padded image.
  MP_DEVICE int32_t padded_count(int32_t output) const {
    return taps_within(size + pad_behind - origin(output));
  }
  /// Returns the windows whose extent contains a pixel from `first` to `last`.
  MP_DEVICE Range windows(int32_t first, int32_t last) const {
    const int32_t beyond = first + pad - extent;  // a window that starts here ends too early
    return {beyond < 0 ? 0 : strides.divide(beyond).quotient + 1,
            min_of(strides.divide(last + pad).quotient + 1, outputs)};
  }
  /// Returns the tap of window `output` at a pixel, or -1 if there is none.
  template <bool kIsDilated>
  MP_DEVICE int32_t tap(int32_t pixel, int32_t output) const {
    const int32_t distance = pixel - origin(output);
    if (distance < 0 || distance >= extent) return -1;
    if (!kIsDilated) return distance;
    const Quotient taps = dilations.divide(distance);
    return taps.remainder == 0 ? taps.quotient : -1;
  }

 private:
  /// Returns the number of taps in the first `pixels` >= 1 pixels of a window.
  MP_DEVICE int32_t taps_within(int32_t pixels) const {
    return pixels >= extent ? window : dilations.divide(pixels - 1).quotient + 1;
  }
};

// ---------------------------------------------------------------------------- tiles

/// Run of a pixel or output (i, j) of image n: channels [channel, channel + valid).
/// valid <= 0: the thread has none.
struct PoolItem {
  int32_t n, i, j, channel;
  int32_t valid;
};

/// Partition of images into tiles of at most kPoolThreads runs, one per block.  Extents of tiles
/// are powers of two.  2^31 tiles have at least 2^36 elements, more than any GPU holds.
struct PoolTiles {
  int32_t images, height, width, channels;
  int32_t elems;                                    ///< per run
  int log_images, log_height, log_width, log_runs;  ///< extents of a tile
  FastDivisor down, across, slabs;                  ///< tiles along height, width and channels
  int64_t count;

  /// @param joins_images  true: tiles of small images contain several of them
  PoolTiles(int32_t images, int32_t height, int32_t width, int32_t channels, int32_t elems,
            bool joins_images)
      : images(images), height(height), width(width), channels(channels), elems(elems) {
    const auto log2_ceil = [](int64_t x) {
      return static_cast<int>(std::bit_width(static_cast<uint64_t>(x - 1)));
    };
    const int64_t runs = ceil_div<int64_t>(channels, elems);
    int left = log2_ceil(kPoolThreads);
    log_runs = min_of(log2_ceil(runs), 3);  // 128 bytes
    left -= log_runs;
    log_height = min_of(log2_ceil(height), left / 2);
    log_width = min_of(log2_ceil(width), left - log_height);
    log_height = min_of(log2_ceil(height), left - log_width);
    left -= log_height + log_width;
    const int more_runs = min_of(log2_ceil(runs) - log_runs, left);
    log_runs += more_runs;
    log_images = joins_images ? min_of(log2_ceil(images), left - more_runs) : 0;
    const int64_t slab_tiles = tiles_along(runs, log_runs);
    const int64_t width_tiles = tiles_along(width, log_width);
    const int64_t height_tiles = tiles_along(height, log_height);
    down = fast_divisor(height_tiles);
    across = fast_divisor(width_tiles);
    slabs = fast_divisor(slab_tiles);
    count = slab_tiles * width_tiles * height_tiles * tiles_along(images, log_images);
  }

  /// Returns the item of the first thread of a block.
  MP_DEVICE PoolItem first_item() const {
    const Quotient slab = slabs.divide(static_cast<int32_t>(block_index()));
    const Quotient column = across.divide(slab.quotient);
    const Quotient row = down.divide(column.quotient);
    return item(row.quotient << log_images, row.remainder << log_height,
                column.remainder << log_width, (slab.remainder << log_runs) * elems);
  }
  /// Returns this thread's item.
  MP_DEVICE PoolItem own_item() const {
    const PoolItem first = first_item();
    int index = thread_index();
    const auto take = [&](int log2) {
      const int low = index & ((1 << log2) - 1);
      index >>= log2;
      return low;
    };
    const int channel = first.channel + take(log_runs) * elems, j = first.j + take(log_width);
    const int i = first.i + take(log_height);
    const bool has_image = index >> log_images == 0;  // a tile can have fewer runs than threads
    return item(has_image ? first.n + index : images, i, j, channel);
  }
  MP_DEVICE PoolItem item(int32_t n, int32_t i, int32_t j, int32_t channel) const {
    const bool exists = n < images && i < height && j < width;
    return {n, i, j, channel, exists ? min_of(channels - channel, elems) : 0};
  }

 private:
  static int64_t tiles_along(int64_t extent, int log2) { return ((extent - 1) >> log2) + 1; }
};

// ---------------------------------------------------------------------------- launch

/// Arguments of all pooling kernels.
struct PoolLaunch : PoolArgs {
  PoolSide height, width;
  PoolTiles tiles;
  /// True if all runs are aligned and complete and, in gradients, windows are not dilated.  Other
  /// launches load one run at a time.
  bool is_fast;

  /// @param patch  height and width of the part of the image that a thread computes; 0: one output
  PoolLaunch(const PoolArgs &args, int patch, bool joins_images = true)
      : PoolArgs(args),
        height{.size = desc.h,
               .window = desc.window_h,
               .pad = desc.pad_top,
               .pad_behind = desc.pad_bottom,
               .outputs = p,
               .stride = desc.stride_h,
               .dilation = desc.dilation_h},
        width{.size = desc.w,
              .window = desc.window_w,
              .pad = desc.pad_left,
              .pad_behind = desc.pad_right,
              .outputs = q,
              .stride = desc.stride_w,
              .dilation = desc.dilation_w},
        tiles(desc.n, patch == 0 ? p : ceil_div(desc.h, patch),
              patch == 0 ? q : ceil_div(desc.w, patch), desc.c,
              static_cast<int32_t>(16 / mp_dtype_size(desc.dtype)), joins_images) {
    const auto address = [](const void *p) { return reinterpret_cast<uintptr_t>(p); };
    is_fast = desc.c % tiles.elems == 0 && address(index) % 8 == 0 &&
              (address(x) | address(y) | address(dx) | address(dy)) % 16 == 0 &&
              (patch == 0 || (height.dilation == 1 && width.dilation == 1));
  }

  /// Returns the offset of pixel (i, j) of image n in x or dx; in_y: in y, dy or index.
  MP_DEVICE int64_t in_x(int32_t n, int32_t i, int32_t j) const {
    return ((int64_t{n} * desc.h + i) * desc.w + j) * desc.c;
  }
  MP_DEVICE int64_t in_y(int32_t n, int32_t i, int32_t j) const {
    return ((int64_t{n} * p + i) * q + j) * desc.c;
  }
  /// Returns the number of a tap of a window.
  MP_DEVICE uint32_t place(int32_t row, int32_t column) const {
    return static_cast<uint32_t>(row * desc.window_w + column);
  }
};

template <class Args>
void launch_pool(const char *name, void (*kernel)(MP_PARAM(Args)), const Device &device,
                 const Args &args, mp_stream_t stream) {
  launch(name, kernel, device, {args.tiles.count, kPoolThreads}, stream, args);
}

/// Calls f(true_type) or f(false_type).
template <class F>
MP_DEVICE void with_path(bool is_fast, const F &f) {
  if (is_fast)
    f(std::true_type{});
  else
    f(std::false_type{});
}

// ---------------------------------------------------------------------------- rectangles

/// Position in a rectangle that is visited by rows, with its offset in memory.
class Walk {
 public:
  int32_t i, j;
  int64_t offset;

  /// @param first           offset of the first position
  /// @param step, row_step  distances of adjacent columns and rows
  MP_DEVICE Walk(const Range &rows, const Range &columns, int64_t first, int64_t step,
                 int64_t row_step)
      : i(rows.begin),
        j(columns.begin),
        offset(first),
        count_(pin_to_register(rows.count() * columns.count())),
        columns_{pin_to_register(columns.begin), pin_to_register(columns.end)},
        step_(pin_to_register(step)),
        next_row_(pin_to_register(row_step - (columns.count() - 1) * step)) {}

  /// Calls use(i, j, load(i, j, offset)) for each position.  kAtOnce loads are in flight: beyond
  /// the end, the last is repeated without use, because branches would separate the loads.
  template <int kAtOnce, class Load, class Use>
  MP_DEVICE void visit(Load load, Use use) {
    for (int32_t left = count_; left > 0; left -= kAtOnce) {
      decltype(load(i, j, offset)) loaded[kAtOnce];
      int32_t rows[kAtOnce], columns[kAtOnce];
      unroll<kAtOnce>([&](int k) {
        rows[k] = i, columns[k] = j;
        loaded[k] = load(i, j, offset);
        advance(k + 1 < left);
      });
      unroll<kAtOnce>([&](int k) {
        if (k == 0 || k < left) use(rows[k], columns[k], loaded[k]);
      });
    }
  }

 private:
  /// Moves to the next position if `moves`.
  MP_DEVICE void advance(bool moves) {
    const bool is_last = j + 1 == columns_.end;
    const int64_t step = is_last ? next_row_ : step_;
    const int32_t next = is_last ? columns_.begin : j + 1;
    offset += moves ? step : 0;
    i += moves && is_last ? 1 : 0;
    j = moves ? next : j;
  }

  int32_t count_;  ///< 32 bits suffice: 2^31 positions would take minutes
  Range columns_;
  int64_t step_, next_row_;
};

/// Returns a walk over the taps of output (at.i, at.j) inside the image, in x.
MP_DEVICE Walk taps_of(const PoolLaunch &args, const PoolItem &at) {
  const PoolSide &h = args.height, &w = args.width;
  const Range rows = h.taps(at.i), columns = w.taps(at.j);
  const int32_t i = h.origin(at.i) + rows.begin * h.dilation;
  const int32_t j = w.origin(at.j) + columns.begin * w.dilation;
  return {rows, columns, args.in_x(at.n, i, j) + at.channel, int64_t{w.dilation} * args.desc.c,
          int64_t{h.dilation} * args.desc.w * args.desc.c};
}

// ---------------------------------------------------------------------------- gradients

constexpr int kPatch = 2;  ///< pixels along each side of a patch

/// Gradient of kPatch x kPatch pixels, which share the loads of their windows.
template <class T>
class PatchGradient {
 public:
  static constexpr int kElems = Packed<T>::kElems;

  /// @param at  run of the patch; i and j are in patches
  MP_DEVICE PatchGradient(const PoolLaunch &args, const PoolItem &at)
      : args_(args),
        at_{at.n, pin_to_register(at.i * kPatch), pin_to_register(at.j * kPatch),
            pin_to_register(at.channel), at.valid} {}

  /// Returns the windows that contain pixels of the patch.
  MP_DEVICE Range rows() const { return windows(args_.height, at_.i); }
  MP_DEVICE Range columns() const { return windows(args_.width, at_.j); }

  /// Loads dy and load(p, q, offset in y) of windows, by rows.  For each pixel of such a window,
  /// calls the result of rule_of(p, q, loaded) with (dx, dy, place of the pixel in the window).
  template <bool kIsFast, class Load, class RuleOf>
  MP_DEVICE void gather(const Range &rows, const Range &columns, Load load, RuleOf rule_of) {
    struct Loaded {
      Packed<T> dy;
      decltype(load(0, 0, int64_t{0})) more;
    };
    const T *const dy = static_cast<const T *>(args_.dy);
    const int64_t channels = args_.desc.c;
    Walk walk(rows, columns, args_.in_y(at_.n, rows.begin, columns.begin) + at_.channel, channels,
              args_.q * channels);
    walk.visit<kIsFast ? kInFlight<sizeof(Loaded) <= 32 ? 4 : 2> : 1>(
        [&](int32_t p, int32_t q, int64_t offset) {
          return Loaded{load_packed<kIsFast>(dy + offset, at_.valid), load(p, q, offset)};
        },
        [&](int32_t p, int32_t q, const Loaded &loaded) {
          const auto add = rule_of(p, q, loaded.more);
          float gradient[kElems];
          widen(gradient, loaded.dy);
          int32_t row[kPatch], column[kPatch];
          unroll<kPatch>([&](int k) {
            row[k] = args_.height.tap<!kIsFast>(at_.i + k, p);
            column[k] = args_.width.tap<!kIsFast>(at_.j + k, q);
          });
          unroll<kPatch * kPatch>([&](int k) {
            const int32_t r = row[k / kPatch], s = column[k % kPatch];
            if (r >= 0 && s >= 0) add(dx_[k], gradient, args_.place(r, s));
          });
        });
  }

  template <bool kIsFast>
  MP_DEVICE void store(AmaxTracker &tracker) const {
    unroll<kPatch * kPatch>([&](int k) {
      const int32_t i = at_.i + k / kPatch, j = at_.j + k % kPatch;
      if (i >= args_.desc.h || j >= args_.desc.w) return;
      store_packed<kIsFast>(static_cast<T *>(args_.dx) + args_.in_x(at_.n, i, j) + at_.channel,
                            packed<T>(dx_[k]), at_.valid);
      tracker.see<T>(dx_[k], at_.valid);
    });
  }

 private:
  static MP_DEVICE Range windows(const PoolSide &side, int32_t first) {
    return side.windows(first, min_of(first + kPatch, side.size) - 1);
  }

  const PoolLaunch &args_;
  const PoolItem at_;
  float dx_[kPatch * kPatch][kElems] = {};
};

/// Computes dx from all windows.
/// @param load     (fast path or not, offset in y, valid): what rule_of needs besides dy
/// @param rule_of  see PatchGradient::gather
template <class T, class Load, class RuleOf>
MP_DEVICE void gather_patches(const PoolLaunch &args, const Load &load, const RuleOf &rule_of) {
  AmaxTracker tracker(args.stats);
  const PoolItem at = args.tiles.own_item();
  if (at.valid > 0) {
    with_path(args.is_fast, [&](auto fast) {
      PatchGradient<T> patch(args, at);
      patch.template gather<fast>(
          patch.rows(), patch.columns(),
          [&](int32_t, int32_t, int64_t offset) { return load(fast, offset, at.valid); }, rule_of);
      patch.template store<fast>(tracker);
    });
  }
  tracker.finish();
}

}  // namespace mp::MP_TARGET
