// Pooling: maximum or mean of each window, and the gradients of both.
//
// A thread computes 8 channels of one pixel.  Forward it reads the pixels of one window.  Backward
// it gathers from all windows that contain its pixel, so no atomics are needed.
#include "kernels/layers/pool_windows.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;

/// Calls visit(coord) for this thread's share of the pixels of `height` x `width` images.
template <class Visit>
MP_DEVICE void for_each_coord(const Shape &shape, int64_t n, int64_t height, int64_t width,
                              Visit visit) {
  const int64_t total = n * height * width * shape.runs;
  const int64_t step = grid_size() * kThreads;
  for (int64_t item = block_index() * kThreads + thread_index(); item < total; item += step) {
    const int64_t pixel = item / shape.runs;
    const int64_t row = pixel / width, image = row / height;
    const auto channel = static_cast<int32_t>(item - pixel * shape.runs) * kVec;
    visit(PixelCoord{static_cast<int32_t>(image), static_cast<int32_t>(row - image * height),
                     static_cast<int32_t>(pixel - row * width), channel,
                     min_of(shape.channels - channel, kVec)});
  }
}

/// Returns the divisor of the mean of window (p, q).
MP_DEVICE float pixels_in_mean(const PoolArgs &args, const Shape &shape, int32_t p, int32_t q) {
  const int64_t count = args.desc.mode == MP_POOL_AVG_INCLUDE_PAD
                            ? int64_t{shape.h.padded_count(p)} * shape.w.padded_count(q)
                            : int64_t{shape.h.pixels(p).count()} * shape.w.pixels(q).count();
  return static_cast<float>(count);
}

// ---------------------------------------------------------------------------- forward

MP_KERNEL(kThreads, 4)
largest_of_windows(MP_PARAM(PoolArgs) args) {
  const Shape shape(args);
  for_each_coord(shape, args.desc.n, args.p, args.q, [&](const PixelCoord &at) {
    const Span rows = shape.h.pixels(at.i), cols = shape.w.pixels(at.j);
    const Largest largest(args, shape, at, rows, cols);
    store_vector(args.desc.dtype, args.y, shape.in_y(at.n, at.i, at.j) + at.channel, largest.value,
                 at.valid);
  });
}

/// Adds the pixels of a window by rows, with kAtOnce loads in flight to hide latency for small
/// outputs.
template <class T>
MP_DEVICE void add_window(const PoolArgs &args, const Shape &shape, const PixelCoord &at,
                          const Span &rows, const Span &cols, float (&sum)[kVec]) {
  constexpr int kAtOnce = 4;
  for (int32_t i = rows.begin; i < rows.end; i += rows.step) {
    for (int32_t left = cols.count(), j = cols.begin; left > 0;
         left -= kAtOnce, j += kAtOnce * cols.step) {
      float x[kAtOnce][kVec];
      load_rows(x, static_cast<const T *>(args.x) + shape.in_x(at.n, i, j) + at.channel,
                int64_t{cols.step} * shape.channels, 1, left, at.valid);
      add_rows(sum, x);
    }
  }
}

/// Computes the means; windows without dilation need fewer registers.
template <bool kIsDilated>
MP_KERNEL(kThreads, kIsDilated ? 2 : 3)
mean_of_windows(MP_PARAM(PoolArgs) args) {
  const Shape shape(args, kIsDilated);
  for_each_coord(shape, args.desc.n, args.p, args.q, [&](const PixelCoord &at) {
    const Span rows = shape.h.pixels(at.i), cols = shape.w.pixels(at.j);
    float sum[kVec] = {};
    with_type(args.desc.dtype, [&](auto type) {
      add_window<typename decltype(type)::type>(args, shape, at, rows, cols, sum);
    });
    const float count = pixels_in_mean(args, shape, at.i, at.j);
    MP_UNROLL
    for (int k = 0; k < kVec; k++) sum[k] /= count;
    store_vector(args.desc.dtype, args.y, shape.in_y(at.n, at.i, at.j) + at.channel, sum, at.valid);
  });
}

// ---------------------------------------------------------------------------- backward

/// Computes the gradient of the mean; the statistics need a register more than 4 blocks have.
template <bool kHasStats>
MP_KERNEL(kThreads, kHasStats ? 3 : 4)
mean_backward(MP_PARAM(PoolArgs) args) {
  const Shape shape(args);
  AmaxTracker tracker(args.stats);
  for_each_coord(shape, args.desc.n, args.desc.h, args.desc.w, [&](const PixelCoord &at) {
    float dx[kVec] = {};
    for_each_window(shape, at, [&](int32_t p, int32_t q) {
      float dy[kVec];
      load_vector(dy, args.desc.dtype, args.dy, shape.in_y(at.n, p, q) + at.channel, at.valid);
      const float share = 1.0f / pixels_in_mean(args, shape, p, q);
      MP_UNROLL
      for (int k = 0; k < kVec; k++) dx[k] = fmaf(dy[k], share, dx[k]);
    });
    store_vector(args.desc.dtype, args.dx, shape.in_x(at.n, at.i, at.j) + at.channel, dx, at.valid);
    if (kHasStats) tracker.see(args.desc.dtype, dx, at.valid);
  });
  if (kHasStats) tracker.finish();
}

/// Computes the gradient of dilated max pooling; each pixel recomputes the maxima of its windows.
MP_KERNEL(kThreads, 3)
dilated_max_backward(MP_PARAM(PoolArgs) args) {
  const Shape shape(args);
  AmaxTracker tracker(args.stats);
  for_each_coord(shape, args.desc.n, args.desc.h, args.desc.w, [&](const PixelCoord &at) {
    float dx[kVec] = {};
    for_each_window(shape, at, [&](int32_t p, int32_t q) {
      const Span rows = shape.h.pixels(p), cols = shape.w.pixels(q);
      const Largest largest(args, shape, at, rows, cols);
      const int32_t number = rows.number(at.i) * cols.count() + cols.number(at.j);
      float dy[kVec];
      load_vector(dy, args.desc.dtype, args.dy, shape.in_y(at.n, p, q) + at.channel, at.valid);
      MP_UNROLL
      for (int k = 0; k < kVec; k++) dx[k] += largest.pixel[k] == number ? dy[k] : 0.0f;
    });
    store_vector(args.desc.dtype, args.dx, shape.in_x(at.n, at.i, at.j) + at.channel, dx, at.valid);
    tracker.see(args.desc.dtype, dx, at.valid);
  });
  tracker.finish();
}

// ---------------------------------------------------------------------------- backward, maximum

// The largest pixel of a window is recomputed from x with the comparisons of the forward pass.
// Windows overlap, so a block does this once for all pixels of a tile.  First each thread processes
// windows and stores the index of the largest pixel in shared memory.  Then each thread processes
// pixels and adds dy of the windows whose largest pixel they are, in the order of the windows and
// without atomics.

constexpr int kPixels = 2;        ///< pixels per thread, with 8 channels each
constexpr int kWindowRuns = 512;  ///< vectors of 8 channels of windows in smem
constexpr int kMaxRuns = 8;       ///< vectors of channels per tile: 128 bytes

struct LargestBackwardArgs {
  PoolArgs pool;
  int32_t runs, height, width;      ///< tile, powers of two: vectors of channels; pixels
  int64_t slabs, tiles_w, tiles_h;  ///< number of tiles; slabs: along channels, innermost
};

/// Tile of dx, from pixel (i, j) and channel kVec * run on, and the windows that contain its
/// pixels.
struct Tile {
  int32_t n, i, j, run;
  Span p, q;

  MP_DEVICE Tile(const LargestBackwardArgs &args, const Shape &shape, int64_t number) {
    const int64_t column = number / args.slabs, row = column / args.tiles_w;
    n = static_cast<int32_t>(row / args.tiles_h);
    i = static_cast<int32_t>(row - n * args.tiles_h) * args.height;
    j = static_cast<int32_t>(column - row * args.tiles_w) * args.width;
    run = static_cast<int32_t>(number - column * args.slabs) * args.runs;
    p = windows(shape.h, i, args.height);
    q = windows(shape.w, j, args.width);
  }

  /// Returns the number of windows.  32 bits suffice: 2^31 windows of as many pixels would take
  /// years.
  MP_DEVICE int32_t num_windows() const { return max_of(p.count(), 0) * max_of(q.count(), 0); }

 private:
  static MP_DEVICE Span windows(const Side &side, int32_t first, int32_t pixels) {
    const int32_t last = min_of(first + pixels, side.size) - 1;
    return {side.windows(first).begin, side.windows(last).end};
  }
};

/// Index of the largest pixel per window and channel, in halves: adjacent lanes access adjacent 16
/// bytes.
using FourNumbers = Pack<int32_t, kQuad>;
using Found = FourNumbers[2][kWindowRuns];

class LargestBackward {
 public:
  MP_DEVICE LargestBackward(const LargestBackwardArgs &args, const Shape &shape, int64_t number,
                            Found &found)
      : args_(args), shape_(shape), tile_(args, shape, number), found_(found) {}

  MP_DEVICE void run(AmaxTracker &tracker) {
    float dx[kPixels][kVec] = {};
    const int32_t windows = tile_.num_windows(), at_once = kWindowRuns / args_.runs;
    for (int32_t first = 0; first < windows; first += at_once) {
      const int32_t count = min_of(at_once, windows - first);
      block_sync();  // the previous windows may still be read
      find(first, count);
      block_sync();
      MP_UNROLL
      for (int item = 0; item < kPixels; item++) add(dx[item], pixel(item), first, count);
    }
    MP_UNROLL
    for (int item = 0; item < kPixels; item++) store(dx[item], pixel(item), tracker);
  }

 private:
  /// Returns this thread's vector of channels in the tile, the same for all its pixels and windows.
  MP_DEVICE int run_in_tile() const { return thread_index() % args_.runs; }

  MP_DEVICE PixelCoord place(int32_t i, int32_t j) const {
    const int32_t channel = (tile_.run + run_in_tile()) * kVec;
    return {tile_.n, i, j, channel, min_of(shape_.channels - channel, kVec)};
  }
  /// Returns a pixel of dx, with valid = 0 if it is outside the image.
  MP_DEVICE PixelCoord pixel(int item) const {
    const int number = (thread_index() + item * kThreads) / args_.runs;
    PixelCoord at = place(tile_.i + number / args_.width, tile_.j + number % args_.width);
    if (at.i >= shape_.h.size || at.j >= shape_.w.size) at.valid = 0;
    return at;
  }

  MP_DEVICE void find(int32_t first, int32_t count) const {
    for (int32_t slot = thread_index(); slot < count * args_.runs; slot += kThreads) {
      const int32_t window = first + slot / args_.runs;
      const int32_t down = window / tile_.q.count();
      const PixelCoord at =
          place(tile_.p.begin + down, tile_.q.begin + window - down * tile_.q.count());
      if (at.valid <= 0) continue;
      const Largest largest(args_.pool, shape_, at, shape_.h.pixels(at.i), shape_.w.pixels(at.j));
      MP_UNROLL
      for (int half = 0; half < 2; half++) {
        FourNumbers &four = found_[half][slot];
        MP_UNROLL
        for (int k = 0; k < kQuad; k++) four.x[k] = largest.pixel[half * kQuad + k];
      }
    }
  }

  MP_DEVICE void add(float (&dx)[kVec], const PixelCoord &at, int32_t first, int32_t count) const {
    if (at.valid <= 0) return;
    for_each_pixel(shape_.h.windows(at.i), shape_.w.windows(at.j), [&](int32_t p, int32_t q) {
      const int32_t window = (p - tile_.p.begin) * tile_.q.count() + q - tile_.q.begin - first;
      if (window < 0 || window >= count) return;
      float dy[kVec];
      load_vector(dy, args_.pool.desc.dtype, args_.pool.dy, shape_.in_y(at.n, p, q) + at.channel,
                  at.valid);
      add_window(dx, dy, number_in(p, q, at), window * args_.runs + run_in_tile());
    });
  }

  /// Returns the index of a pixel in a window, like Largest::pixel.
  MP_DEVICE int32_t number_in(int32_t p, int32_t q, const PixelCoord &at) const {
    const Span rows = shape_.h.pixels(p), cols = shape_.w.pixels(q);
    return rows.number(at.i) * cols.count() + cols.number(at.j);
  }

  MP_DEVICE void add_window(float (&dx)[kVec], const float (&dy)[kVec], int32_t number,
                            int32_t slot) const {
    MP_UNROLL
    for (int half = 0; half < 2; half++) {
      const FourNumbers four = found_[half][slot];
      MP_UNROLL
      for (int k = 0; k < kQuad; k++)
        dx[half * kQuad + k] += four.x[k] == number ? dy[half * kQuad + k] : 0.0f;
    }
  }

  MP_DEVICE void store(const float (&dx)[kVec], const PixelCoord &at, AmaxTracker &tracker) const {
    if (at.valid <= 0) return;
    store_vector(args_.pool.desc.dtype, args_.pool.dx, shape_.in_x(at.n, at.i, at.j) + at.channel,
                 dx, at.valid);
    tracker.see(args_.pool.desc.dtype, dx, at.valid);
  }

  const LargestBackwardArgs &args_;
  const Shape &shape_;
  const Tile tile_;
  Found &found_;
};

MP_KERNEL(kThreads, 3)
largest_backward(MP_PARAM(LargestBackwardArgs) args) {
  MP_SHARED(FourNumbers, found, [2][kWindowRuns]);
  const Shape shape(args.pool);
  const int64_t tiles = args.pool.desc.n * args.tiles_h * args.tiles_w * args.slabs;
  AmaxTracker tracker(args.pool.stats);
  for (int64_t number = block_index(); number < tiles; number += grid_size())
    LargestBackward(args, shape, number, found).run(tracker);
  tracker.finish();
}

/// Launches the gradient for dilations of 1.
void launch_largest_backward(const Device &device, const PoolArgs &pool, mp_stream_t stream) {
  const mp_pool2d_desc_t &desc = pool.desc;
  LargestBackwardArgs args{};
  args.pool = pool;
  const int64_t runs = ceil_div<int64_t>(desc.c, kVec);
  args.runs = 1;
  while (args.runs < min_of<int64_t>(runs, kMaxRuns)) args.runs *= 2;
  args.height = args.width = 1;
  while (args.height * args.width * args.runs < kThreads * kPixels)
    (args.height < args.width ? args.height : args.width) *= 2;
  args.slabs = ceil_div<int64_t>(runs, args.runs);
  args.tiles_w = ceil_div(desc.w, args.width);
  args.tiles_h = ceil_div(desc.h, args.height);
  const int64_t tiles = int64_t{desc.n} * args.tiles_h * args.tiles_w * args.slabs;
  launch("pool_max_backward", largest_backward, device, {min_of(tiles, kMaxBlocks), kThreads},
         stream, args);
}

// ---------------------------------------------------------------------------- launch

bool is_dilated(const PoolArgs &args) {
  return args.desc.dilation_h > 1 || args.desc.dilation_w > 1;
}

void launch_over(const char *name, void (*kernel)(MP_PARAM(PoolArgs)), const Device &device,
                 const PoolArgs &args, int64_t pixels, mp_stream_t stream) {
  const int64_t runs = pixels * ceil_div<int64_t>(args.desc.c, kVec);
  const int64_t blocks = min_of(ceil_div<int64_t>(runs, kThreads), kMaxBlocks);
  launch(name, kernel, device, {blocks, kThreads}, stream, args);
}

}  // namespace

void pool_forward(const Device &device, const PoolArgs &args, mp_stream_t stream) {
  const int64_t pixels = int64_t{args.desc.n} * args.p * args.q;
  if (args.desc.mode == MP_POOL_MAX)
    return launch_over("pool_max", largest_of_windows, device, args, pixels, stream);
  launch_over("pool_avg", is_dilated(args) ? mean_of_windows<true> : mean_of_windows<false>, device,
              args, pixels, stream);
}

void pool_backward(const Device &device, const PoolArgs &args, mp_stream_t stream) {
  const bool is_max = args.desc.mode == MP_POOL_MAX;
  if (is_max && !is_dilated(args)) return launch_largest_backward(device, args, stream);
  const int64_t pixels = int64_t{args.desc.n} * args.desc.h * args.desc.w;
  if (is_max)
    return launch_over("pool_max_backward_dilated", dilated_max_backward, device, args, pixels,
                       stream);
  const bool has_stats = args.stats.found_inf != nullptr || args.stats.amax != nullptr;
  launch_over("pool_avg_backward", has_stats ? mean_backward<true> : mean_backward<false>, device,
              args, pixels, stream);
}

}  // namespace mp::MP_TARGET
