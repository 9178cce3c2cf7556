// Shapes of the convolution benchmark: a line of a file is a layer, of which each pass is timed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "mpcore.h"
#include "shapes.h"

namespace mpbench {

constexpr mp_conv_op_t kConvPasses[] = {MP_CONV_FPROP, MP_CONV_DGRAD, MP_CONV_WGRAD};

/// One of the three passes of a layer.
struct ConvShape {
  std::string set = {};  ///< name in sets.h
  mp_conv_op_t op;
  int32_t n, h, w, c, k, r, s;
  int32_t pad_h, pad_w, stride_h, stride_w;
  int64_t layers;  ///< number of the network's layers with this shape; 0 = unknown
  std::string comment;

  const char *pass() const {
    return op == MP_CONV_FPROP ? "fprop" : op == MP_CONV_DGRAD ? "dgrad" : "wgrad";
  }
  int64_t p() const { return (h + 2 * int64_t{pad_h} - r) / stride_h + 1; }
  int64_t q() const { return (w + 2 * int64_t{pad_w} - s) / stride_w + 1; }

  /// Returns the passes of the layer.
  static std::vector<ConvShape> of_line(std::string_view line, const ShapeSet &set);
  /// Name, e.g. "fprop n32 56x56x64 k64 3x3 s1 p1"; unequal strides and pads are written "s2x1".
  std::string name() const {
    const auto by = [](int32_t a, int32_t b) {
      return a == b ? std::to_string(a) : std::to_string(a) + 'x' + std::to_string(b);
    };
    return pass() + (" n" + std::to_string(n)) + ' ' + std::to_string(h) + 'x' + std::to_string(w) +
           'x' + std::to_string(c) + " k" + std::to_string(k) + ' ' + std::to_string(r) + 'x' +
           std::to_string(s) + " s" + by(stride_h, stride_w) + " p" + by(pad_h, pad_w);
  }

  std::string label() const { return shape_label(set, name(), comment); }
  std::string kind() const { return set + ' ' + pass(); }

  double x_elems() const { return product({n, h, w, c}); }
  double y_elems() const { return product({n, p(), q(), k}); }
  double filter_elems() const { return product({k, r, s, c}); }
  /// Operations of the direct algorithm, including those on padding; equal for every pass.
  double flop() const { return 2.0 * product({n, p(), q(), k, r, s, c}); }
  /// A layer with few channels takes as long as one with a tile's width of channels.
  double effort_flop() const {
    constexpr int32_t kTile = 64;
    return 2.0 * product({n, p(), q(), std::max(k, kTile), r, s, std::max(c, kTile)});
  }

 private:
  static double product(std::initializer_list<int64_t> factors) {
    double all = 1;
    for (const int64_t factor : factors) all *= static_cast<double>(factor);
    return all;
  }
};

/// Descriptor of the problem; `out` MP_DTYPE_NONE means `dtype`.
inline mp_conv2d_desc_t make_desc(const ConvShape &shape, mp_dtype_t dtype, mp_dtype_t out) {
  mp_conv2d_desc_t desc =
      mp_conv2d_desc_default(shape.n, shape.h, shape.w, shape.c, shape.k, shape.r, shape.s, dtype);
  if (out != MP_DTYPE_NONE) desc.dtype_out = out;
  desc.pad_top = desc.pad_bottom = shape.pad_h;
  desc.pad_left = desc.pad_right = shape.pad_w;
  desc.stride_h = shape.stride_h;
  desc.stride_w = shape.stride_w;
  return desc;
}

/// Bytes of all tensors, each counted once.
inline double min_bytes(const ConvShape &shape, const mp_conv2d_desc_t &desc) {
  const double out = shape.op == MP_CONV_FPROP   ? shape.y_elems()
                     : shape.op == MP_CONV_DGRAD ? shape.x_elems()
                                                 : shape.filter_elems();
  const double all = shape.x_elems() + shape.y_elems() + shape.filter_elems();
  return (all - out) * static_cast<double>(dtype_bytes(desc.dtype)) +
         out * static_cast<double>(dtype_bytes(desc.dtype_out));
}

/// Parses "w,h,c,n,k,filter_w,filter_h,pad_w,pad_h,stride_w,stride_h[,layers,comment]", a layer;
/// its pass is set to fprop.
inline ConvShape parse_conv(std::string_view line) {
  const std::vector<std::string_view> fields = split_line(line, 12);
  if (fields.size() != 11 && fields.size() != 13)
    throw std::runtime_error(
        "a line must be w,h,c,n,k,filter_w,filter_h,pad_w,pad_h,stride_w,stride_h[,layers,"
        "comment]");
  const auto number = [&](size_t field, int64_t least) {
    return static_cast<int32_t>(parse_field(fields[field], least));
  };
  const bool is_annotated = fields.size() == 13;
  ConvShape shape{.op = MP_CONV_FPROP,
                  .n = number(3, 1),
                  .h = number(1, 1),
                  .w = number(0, 1),
                  .c = number(2, 1),
                  .k = number(4, 1),
                  .r = number(6, 1),
                  .s = number(5, 1),
                  .pad_h = number(8, 0),
                  .pad_w = number(7, 0),
                  .stride_h = number(10, 1),
                  .stride_w = number(9, 1),
                  .layers = is_annotated ? parse_field(fields[11], 0) : 0,
                  .comment = is_annotated ? std::string(fields[12]) : std::string()};
  if (shape.h + 2 * int64_t{shape.pad_h} < shape.r || shape.w + 2 * int64_t{shape.pad_w} < shape.s)
    throw std::runtime_error("the filter exceeds the padded image");
  const int64_t height = shape.h + 2 * int64_t{shape.pad_h},
                width = shape.w + 2 * int64_t{shape.pad_w};
  require_countable({shape.n, height, width, std::max(shape.c, shape.k)});
  require_countable({shape.k, shape.r, shape.s, shape.c});
  return shape;
}

}  // namespace mpbench
