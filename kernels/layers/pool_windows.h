// What the kernels of pooling have in common: which windows hold a pixel, and which pixels a window.
#pragma once

#include "kernels/layers/args.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// [begin, end) of something along one side of an image.
struct Span {
  int32_t begin, end;
  MP_DEVICE int32_t count() const { return end - begin; }
};

/// One side of the image, the window and the outputs.
struct Side {
  int32_t size, window, pad, stride, outputs;

  /// Pixels inside the image that window `output` holds.
  MP_DEVICE Span pixels(int32_t output) const {
    const int64_t begin = int64_t{output} * stride - pad;
    return {static_cast<int32_t>(max_of<int64_t>(begin, 0)),
            static_cast<int32_t>(min_of<int64_t>(begin + window, size))};
  }
  /// Windows that hold `pixel`.
  MP_DEVICE Span windows(int32_t pixel) const {
    const uint32_t end = static_cast<uint32_t>(pixel) + static_cast<uint32_t>(pad);
    const uint32_t reach =
        static_cast<uint32_t>(window);  // what starts so far before ends too early
    return {end < reach ? 0 : in_strides(end - reach) + 1, min_of(in_strides(end) + 1, outputs)};
  }

 private:
  /// Of sums of two int32, none negative: 32 bits hold them.
  MP_DEVICE int32_t in_strides(uint32_t pixels) const {
    return static_cast<int32_t>(pixels / static_cast<uint32_t>(stride));
  }
};

struct Shape {
  Side h, w;
  int32_t channels;
  int32_t runs;  ///< of kVec channels

  MP_DEVICE explicit Shape(const PoolArgs &args)
      : h{args.desc.h, args.desc.window_h, args.desc.pad_top, args.desc.stride_h, args.p},
        w{args.desc.w, args.desc.window_w, args.desc.pad_left, args.desc.stride_w, args.q},
        channels(args.desc.c),
        runs(static_cast<int32_t>(ceil_div<int64_t>(args.desc.c, kVec))) {}

  /// Elements before pixel (i, j) of image n of x or dx, and of y or dy.
  MP_DEVICE int64_t in_x(int32_t n, int32_t i, int32_t j) const {
    return ((int64_t{n} * h.size + i) * w.size + j) * channels;
  }
  MP_DEVICE int64_t in_y(int32_t n, int32_t i, int32_t j) const {
    return ((int64_t{n} * h.outputs + i) * w.outputs + j) * channels;
  }
};

/// What one thread works on: channels [channel, channel + valid) of pixel (i, j) of image n.
struct Place {
  int32_t n, i, j, channel;
  int32_t valid;
};

/// Calls visit(i, j) for the pixels of a rectangle, by rows.
template <class Visit>
MP_DEVICE void for_each_pixel(const Span &rows, const Span &cols, Visit visit) {
  for (int32_t i = rows.begin; i < rows.end; i++)
    for (int32_t j = cols.begin; j < cols.end; j++) visit(i, j);
}

/// The largest of a window, channel by channel, and which of its pixels that is: of equal ones the
/// first.  NaN is larger than everything but another NaN.
struct Largest {
  float value[kVec];
  int32_t pixel[kVec] = {};

  MP_DEVICE Largest(const PoolArgs &args, const Shape &shape, const Place &at, const Span &rows,
                    const Span &cols) {
    MP_UNROLL
    for (float &v : value) v = -INFINITY;
    int32_t number = 0;
    for_each_pixel(rows, cols, [&](int32_t i, int32_t j) {
      float x[kVec];
      load_run(x, args.desc.dtype, args.x, shape.in_x(at.n, i, j) + at.channel, at.valid);
      keep_larger8(value, pixel, x, number++);
    });
  }
};

/// The gradient of the largest: pool_max_backward.cu.
void launch_largest_backward(const Device &, const PoolArgs &, mp_stream_t);

}  // namespace mp::MP_TARGET
