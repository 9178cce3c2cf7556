// Common parts of the pooling kernels: windows that contain a pixel, and pixels of a window.
#pragma once

#include "kernels/layers/layer_args.h"
#include "kernels/simt/vector.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

/// Positions begin, begin + step, ... below end, along one side of an image.
struct Span {
  int32_t begin, end;
  int32_t step = 1;
  MP_DEVICE int32_t count() const {
    return step == 1 ? end - begin : begin < end ? (end - begin - 1) / step + 1 : 0;
  }
  /// Returns the index of position `i` in the span.
  MP_DEVICE int32_t number(int32_t i) const { return step == 1 ? i - begin : (i - begin) / step; }
};

/// Height or width of the image, the window and the outputs.
struct Side {
  int32_t size, window, pad, pad_behind, stride, dilation, outputs;

  MP_DEVICE Side(int32_t size, int32_t window, int32_t pad, int32_t pad_behind, int32_t stride,
                 int32_t dilation, int32_t outputs)
      : size(size),
        window(window),
        pad(pad),
        pad_behind(pad_behind),
        stride(stride),
        dilation(dilation),
        outputs(outputs),
        extent(static_cast<int32_t>(int64_t{window - 1} * dilation + 1)) {}

  /// Returns the pixels of window `output` inside the image.
  MP_DEVICE Span pixels(int32_t output) const {
    const int64_t begin = int64_t{output} * stride - pad, end = begin + extent;
    const int64_t before = begin >= 0 ? 0 : dilation == 1 ? -begin : round_up(-begin, dilation);
    return {static_cast<int32_t>(begin + before), static_cast<int32_t>(min_of<int64_t>(end, size)),
            dilation};
  }
  /// Returns the number of pixels of window `output` inside the padded image.
  MP_DEVICE int32_t padded_count(int32_t output) const {
    const int64_t begin = int64_t{output} * stride - pad;
    const int64_t room = int64_t{size} + pad_behind - begin;
    return extent <= room ? window : static_cast<int32_t>((room - 1) / dilation + 1);
  }
  /// Returns the windows that contain `pixel`, for a dilation of 1.
  MP_DEVICE Span windows(int32_t pixel) const {
    const uint32_t end = static_cast<uint32_t>(pixel) + static_cast<uint32_t>(pad);
    const uint32_t reach =
        static_cast<uint32_t>(extent);  // a window that starts this far before `end` ends too early
    return {end < reach ? 0 : in_strides(end - reach) + 1, min_of(in_strides(end) + 1, outputs)};
  }
  /// Returns the window whose pixel number `tap` is `pixel`, or -1 if there is none.
  MP_DEVICE int32_t window_at(int32_t pixel, int32_t tap) const {
    const int64_t begin = int64_t{pixel} + pad - int64_t{tap} * dilation;
    if (begin < 0 || begin % stride != 0 || begin / stride >= outputs) return -1;
    return static_cast<int32_t>(begin / stride);
  }

 private:
  int32_t extent;  ///< pixels from the first to the last of a window

  static MP_DEVICE int64_t round_up(int64_t x, int32_t multiple) {
    return (x + multiple - 1) / multiple * multiple;
  }
  /// Divides by the stride.  `pixels` is a sum of two nonnegative int32, so it fits into uint32_t.
  MP_DEVICE int32_t in_strides(uint32_t pixels) const {
    return static_cast<int32_t>(pixels / static_cast<uint32_t>(stride));
  }
};

struct Shape {
  Side h, w;
  int32_t channels;
  int32_t runs;  ///< vectors of kVec channels

  /// @param is_dilated  false: dilations are the constant 1
  MP_DEVICE explicit Shape(const PoolArgs &args, bool is_dilated = true)
      : h(args.desc.h, args.desc.window_h, args.desc.pad_top, args.desc.pad_bottom,
          args.desc.stride_h, is_dilated ? args.desc.dilation_h : 1, args.p),
        w(args.desc.w, args.desc.window_w, args.desc.pad_left, args.desc.pad_right,
          args.desc.stride_w, is_dilated ? args.desc.dilation_w : 1, args.q),
        channels(args.desc.c),
        runs(static_cast<int32_t>(ceil_div<int64_t>(args.desc.c, kVec))) {}

  /// Returns the offset of pixel (i, j) of image n in x or dx; in_y: in y or dy.
  MP_DEVICE int64_t in_x(int32_t n, int32_t i, int32_t j) const {
    return ((int64_t{n} * h.size + i) * w.size + j) * channels;
  }
  MP_DEVICE int64_t in_y(int32_t n, int32_t i, int32_t j) const {
    return ((int64_t{n} * h.outputs + i) * w.outputs + j) * channels;
  }
};

/// Work of a thread: channels [channel, channel + valid) of pixel (i, j) of image n.
struct PixelCoord {
  int32_t n, i, j, channel;
  int32_t valid;
};

/// Calls visit(i, j) for the pixels of a rectangle, by rows.
template <class Visit>
MP_DEVICE void for_each_pixel(const Span &rows, const Span &cols, Visit visit) {
  for (int32_t i = rows.begin; i < rows.end; i += rows.step)
    for (int32_t j = cols.begin; j < cols.end; j += cols.step) visit(i, j);
}

/// Calls visit(p, q) for the windows that contain a pixel, by rows.
template <class Visit>
MP_DEVICE void for_each_window(const Shape &shape, const PixelCoord &pixel, Visit visit) {
  if (shape.h.dilation == 1 && shape.w.dilation == 1)
    return for_each_pixel(shape.h.windows(pixel.i), shape.w.windows(pixel.j), visit);
  for (int32_t r = shape.h.window; r-- > 0;) {
    const int32_t p = shape.h.window_at(pixel.i, r);
    for (int32_t s = p >= 0 ? shape.w.window : 0; s-- > 0;) {
      const int32_t q = shape.w.window_at(pixel.j, s);
      if (q >= 0) visit(p, q);
    }
  }
}

/// Largest element of a window per channel, and the index of its pixel: the first one if several
/// are equal.  NaN is larger than everything but another NaN.
struct Largest {
  float value[kVec];
  int32_t pixel[kVec] = {};

  MP_DEVICE Largest(const PoolArgs &args, const Shape &shape, const PixelCoord &at,
                    const Span &rows, const Span &cols) {
    MP_UNROLL
    for (float &v : value) v = -INFINITY;
    int32_t number = 0;
    for_each_pixel(rows, cols, [&](int32_t i, int32_t j) {
      float x[kVec];
      load_vector(x, args.desc.dtype, args.x, shape.in_x(at.n, i, j) + at.channel, at.valid);
      keep_larger8(value, pixel, x, number++);
    });
  }
};

}  // namespace mp::MP_TARGET
