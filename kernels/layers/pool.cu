// Pooling: the largest element or the mean of each window, and the gradient of both.
//
// A thread has 8 channels of one pixel.  Forward it visits the pixels of one window.  Backward it
// visits the windows that hold its pixel and gathers, so nothing is added atomically; where the
// largest pixel of a window is, is found again from x, with the same comparisons as forward.
#include "kernels/layers/args.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;

/// [begin, end) of something along one side of an image.
struct Span {
  int64_t begin, end;
};

/// One side of the image, the window and the outputs.
struct Side {
  int64_t size, window, pad, stride, outputs;

  /// Pixels inside the image that window `output` holds.
  MP_DEVICE Span pixels(int64_t output) const {
    const int64_t begin = output * stride - pad;
    return {max_of<int64_t>(begin, 0), min_of(begin + window, size)};
  }
  /// Windows that hold `pixel`.
  MP_DEVICE Span windows(int64_t pixel) const {
    const int64_t before = pixel + pad - window;  // the last window that starts here ends too early
    return {before < 0 ? 0 : in_strides(before) + 1, min_of(in_strides(pixel + pad) + 1, outputs)};
  }

 private:
  /// Sums of two int32, none negative: 32 bits hold them, and are divided much faster than 64.
  MP_DEVICE int64_t in_strides(int64_t pixels) const {
    return static_cast<uint32_t>(pixels) / static_cast<uint32_t>(stride);
  }
};

struct Shape {
  Side h, w;
  int64_t channels;
  int64_t runs;  ///< of kVec channels

  MP_DEVICE explicit Shape(const PoolArgs &args)
      : h{args.desc.h, args.desc.window_h, args.desc.pad_top, args.desc.stride_h, args.p},
        w{args.desc.w, args.desc.window_w, args.desc.pad_left, args.desc.stride_w, args.q},
        channels(args.desc.c),
        runs(ceil_div<int64_t>(args.desc.c, kVec)) {}

  /// Elements before pixel (i, j) of image n of x or dx, and of y or dy.
  MP_DEVICE int64_t in_x(int64_t n, int64_t i, int64_t j) const {
    return ((n * h.size + i) * w.size + j) * channels;
  }
  MP_DEVICE int64_t in_y(int64_t n, int64_t i, int64_t j) const {
    return ((n * h.outputs + i) * w.outputs + j) * channels;
  }
};

/// What one thread works on: channels [channel, channel + valid) of pixel (i, j) of image n.
struct Place {
  int64_t n, i, j, channel;
  int valid;
};

/// Calls visit(place) for all pixels of images that are `height` x `width`.
template <class Visit>
MP_DEVICE void for_each_place(const Shape &shape, int64_t n, int64_t height, int64_t width,
                              Visit visit) {
  const int64_t total = n * height * width * shape.runs;
  const int64_t step = grid_size() * kThreads;
  for (int64_t item = block_index() * kThreads + thread_index(); item < total; item += step) {
    const int64_t pixel = item / shape.runs;
    const int64_t channel = (item - pixel * shape.runs) * kVec;
    const int64_t row = pixel / width;
    const int64_t image = row / height;
    const int64_t valid = min_of<int64_t>(shape.channels - channel, kVec);
    visit(
        Place{image, row - image * height, pixel - row * width, channel, static_cast<int>(valid)});
  }
}

/// Calls visit(i, j) for the pixels of a rectangle, by rows.
template <class Visit>
MP_DEVICE void for_each_pixel(const Span &rows, const Span &cols, Visit visit) {
  for (int64_t i = rows.begin; i < rows.end; i++)
    for (int64_t j = cols.begin; j < cols.end; j++) visit(i, j);
}

/// The largest of a window, channel by channel, and which of its pixels that is: of equal ones the
/// first.  NaN is larger than everything but another NaN.
struct Largest {
  float value[kVec];
  int32_t pixel[kVec] = {};

  MP_DEVICE Largest(const PoolArgs &args, const Shape &shape, const Place &at, const Span &rows,
                    const Span &cols) {
    load_run(value, args.desc.dtype, args.x, shape.in_x(at.n, rows.begin, cols.begin) + at.channel,
             at.valid);
    int32_t number = 0;
    for_each_pixel(rows, cols, [&](int64_t i, int64_t j) {
      float x[kVec];
      load_run(x, args.desc.dtype, args.x, shape.in_x(at.n, i, j) + at.channel, at.valid);
      keep_larger8(value, pixel, x, number++);
    });
  }
};

MP_DEVICE float pixels_in_mean(const PoolArgs &args, const Span &rows, const Span &cols) {
  const int64_t count = args.desc.mode == MP_POOL_AVG_INCLUDE_PAD
                            ? int64_t{args.desc.window_h} * args.desc.window_w
                            : (rows.end - rows.begin) * (cols.end - cols.begin);
  return static_cast<float>(count);
}

// ---------------------------------------------------------------------------- forward

MP_KERNEL(kThreads, 4)
largest_of_windows(MP_PARAM(PoolArgs) args) {
  const Shape shape(args);
  for_each_place(shape, args.desc.n, args.p, args.q, [&](const Place &at) {
    const Span rows = shape.h.pixels(at.i), cols = shape.w.pixels(at.j);
    const Largest largest(args, shape, at, rows, cols);
    store_run(args.desc.dtype, args.y, shape.in_y(at.n, at.i, at.j) + at.channel, largest.value,
              at.valid);
  });
}

MP_KERNEL(kThreads, 4)
mean_of_windows(MP_PARAM(PoolArgs) args) {
  const Shape shape(args);
  for_each_place(shape, args.desc.n, args.p, args.q, [&](const Place &at) {
    const Span rows = shape.h.pixels(at.i), cols = shape.w.pixels(at.j);
    float sum[kVec] = {};
    for_each_pixel(rows, cols, [&](int64_t i, int64_t j) {
      float x[kVec];
      load_run(x, args.desc.dtype, args.x, shape.in_x(at.n, i, j) + at.channel, at.valid);
      MP_UNROLL
      for (int k = 0; k < kVec; k++) sum[k] += x[k];
    });
    const float count = pixels_in_mean(args, rows, cols);
    MP_UNROLL
    for (int k = 0; k < kVec; k++) sum[k] /= count;
    store_run(args.desc.dtype, args.y, shape.in_y(at.n, at.i, at.j) + at.channel, sum, at.valid);
  });
}

// ---------------------------------------------------------------------------- backward

/// Calls add(dx, dy, rows, cols) for each window that holds the pixel, and stores dx; rows and cols
/// are the window's.
template <class Add>
MP_DEVICE void gather(const PoolArgs &args, const Shape &shape, const Place &at, Add add) {
  float dx[kVec] = {};
  for_each_pixel(shape.h.windows(at.i), shape.w.windows(at.j), [&](int64_t p, int64_t q) {
    float dy[kVec];
    load_run(dy, args.desc.dtype, args.dy, shape.in_y(at.n, p, q) + at.channel, at.valid);
    add(dx, dy, shape.h.pixels(p), shape.w.pixels(q));
  });
  store_run(args.desc.dtype, args.dx, shape.in_x(at.n, at.i, at.j) + at.channel, dx, at.valid);
}

MP_KERNEL(kThreads, 2)
largest_backward(MP_PARAM(PoolArgs) args) {
  const Shape shape(args);
  for_each_place(shape, args.desc.n, args.desc.h, args.desc.w, [&](const Place &at) {
    gather(args, shape, at,
           [&](float(&dx)[kVec], const float(&dy)[kVec], const Span &rows, const Span &cols) {
             const Largest largest(args, shape, at, rows, cols);
             const int64_t here = (at.i - rows.begin) * (cols.end - cols.begin) + at.j - cols.begin;
             MP_UNROLL
             for (int k = 0; k < kVec; k++) dx[k] += largest.pixel[k] == here ? dy[k] : 0.0f;
           });
  });
}

MP_KERNEL(kThreads, 4)
mean_backward(MP_PARAM(PoolArgs) args) {
  const Shape shape(args);
  for_each_place(shape, args.desc.n, args.desc.h, args.desc.w, [&](const Place &at) {
    gather(args, shape, at,
           [&](float(&dx)[kVec], const float(&dy)[kVec], const Span &rows, const Span &cols) {
             const float share = 1.0f / pixels_in_mean(args, rows, cols);
             MP_UNROLL
             for (int k = 0; k < kVec; k++) dx[k] = fmaf(dy[k], share, dx[k]);
           });
  });
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
  launch_over("pool_avg", mean_of_windows, device, args, pixels, stream);
}

void pool_backward(const Device &device, const PoolArgs &args, mp_stream_t stream) {
  const int64_t pixels = int64_t{args.desc.n} * args.desc.h * args.desc.w;
  if (args.desc.mode == MP_POOL_MAX)
    return launch_over("pool_max_backward", largest_backward, device, args, pixels, stream);
  launch_over("pool_avg_backward", mean_backward, device, args, pixels, stream);
}

}  // namespace mp::MP_TARGET
