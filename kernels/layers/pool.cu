// Pooling: maximum or mean of each window, gradient of the mean, and gradient of the maximum for
// dilated windows.
//
// A thread computes 8 channels of one pixel.  Forward it reads the pixels of one window.  Backward
// it gathers from all windows that contain its pixel, so no atomics are needed.
#include "kernels/layers/pool_windows.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;

/// Calls visit(place) for this thread's share of the pixels of `height` x `width` images.
template <class Visit>
MP_DEVICE void for_each_place(const Shape &shape, int64_t n, int64_t height, int64_t width,
                              Visit visit) {
  const int64_t total = n * height * width * shape.runs;
  const int64_t step = grid_size() * kThreads;
  for (int64_t item = block_index() * kThreads + thread_index(); item < total; item += step) {
    const int64_t pixel = item / shape.runs;
    const int64_t row = pixel / width, image = row / height;
    const auto channel = static_cast<int32_t>(item - pixel * shape.runs) * kVec;
    visit(Place{static_cast<int32_t>(image), static_cast<int32_t>(row - image * height),
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
  for_each_place(shape, args.desc.n, args.p, args.q, [&](const Place &at) {
    const Span rows = shape.h.pixels(at.i), cols = shape.w.pixels(at.j);
    const Largest largest(args, shape, at, rows, cols);
    store_vector(args.desc.dtype, args.y, shape.in_y(at.n, at.i, at.j) + at.channel, largest.value,
                 at.valid);
  });
}

/// Adds the pixels of a window by rows, with kAtOnce loads in flight to hide latency for small
/// outputs.
template <class T>
MP_DEVICE void add_window(const PoolArgs &args, const Shape &shape, const Place &at,
                          const Span &rows, const Span &cols, float (&sum)[kVec]) {
  constexpr int kAtOnce = 4;
  for (int32_t i = rows.begin; i < rows.end; i += rows.step) {
    for (int32_t left = cols.count(), j = cols.begin; left > 0;
         left -= kAtOnce, j += kAtOnce * cols.step) {
      float x[kAtOnce][kVec];
      load_rows(x, static_cast<const T *>(args.x) + shape.in_x(at.n, i, j) + at.channel,
                int64_t{cols.step} * shape.channels, 1, left, at.valid);
      MP_UNROLL
      for (int r = 0; r < kAtOnce; r++) {
        MP_UNROLL
        for (int k = 0; k < kVec; k++) sum[k] += x[r][k];
      }
    }
  }
}

/// Computes the means; windows without dilation need fewer registers.
template <bool kIsDilated>
MP_KERNEL(kThreads, kIsDilated ? 2 : 3)
mean_of_windows(MP_PARAM(PoolArgs) args) {
  const Shape shape(args, kIsDilated);
  for_each_place(shape, args.desc.n, args.p, args.q, [&](const Place &at) {
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

MP_KERNEL(kThreads, 4)
mean_backward(MP_PARAM(PoolArgs) args) {
  const Shape shape(args);
  for_each_place(shape, args.desc.n, args.desc.h, args.desc.w, [&](const Place &at) {
    float dx[kVec] = {};
    for_each_window(shape, at, [&](int32_t p, int32_t q) {
      float dy[kVec];
      load_vector(dy, args.desc.dtype, args.dy, shape.in_y(at.n, p, q) + at.channel, at.valid);
      const float share = 1.0f / pixels_in_mean(args, shape, p, q);
      MP_UNROLL
      for (int k = 0; k < kVec; k++) dx[k] = fmaf(dy[k], share, dx[k]);
    });
    store_vector(args.desc.dtype, args.dx, shape.in_x(at.n, at.i, at.j) + at.channel, dx, at.valid);
  });
}

/// Computes the gradient of dilated max pooling; each pixel recomputes the maxima of its windows.
MP_KERNEL(kThreads, 3)
dilated_max_backward(MP_PARAM(PoolArgs) args) {
  const Shape shape(args);
  for_each_place(shape, args.desc.n, args.desc.h, args.desc.w, [&](const Place &at) {
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
  });
}

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
  launch_over("pool_avg_backward", mean_backward, device, args, pixels, stream);
}

}  // namespace mp::MP_TARGET
