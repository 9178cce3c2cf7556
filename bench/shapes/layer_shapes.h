// Layers: batch normalization, pooling and the loss of image networks; attention, normalization,
// the output layer with its loss, and gated units of transformers.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/common.h"
#include "shape_file.h"

namespace mpbench {

/// One pass of a layer.  The extents of each suite, in the order of its file:
///
///     layers       n images of h x w pixels with c channels; window, stride and pad of pooling; a
///                  loss has n rows of c classes
///     attention    b sequences of l rows, h query heads, kv heads of k and v, d and dv elements
///     norm         n rows of g vectors of c elements
///     linear_xent  n rows of w elements, c classes
///     gated        n rows, f columns of the result, k elements of the product
///
/// `form` is the kind of one of the `layers`, the mask of an attention ("full", "causal", "window",
/// or "packed": causal sequences of different lengths, with the mean l), the kind of a norm, the
/// labels of a loss, or the activation.
struct LayerShape {
  std::string suite, set = {};
  bool is_forward = true;  ///< the backward pass of a loss computes it and all gradients
  std::vector<std::pair<std::string, int64_t>> extents = {};
  std::string form = {}, comment = {};

  /// Returns the passes of the layer.
  static std::vector<LayerShape> of_line(std::string_view line, const ShapeSet &set);
  int64_t operator[](std::string_view extent) const;
  const char *pass() const { return is_forward ? "forward" : "backward"; }
  /// Pass of one of the `layers`, e.g. "maxpool forward"; a loss computes its gradient in the same
  /// call: "softmax_xent, gradient".
  std::string op() const;
  /// Name, e.g. "forward causal b8 l2048 h16 kv16 d128 dv128"; of one of the `layers` e.g. "maxpool
  /// forward n256 112x112x64 3x3 s2 p1", "softmax_xent 8192x50257".
  std::string name() const;
  std::string label() const { return shape_label(set, name(), comment); }
  std::string kind() const { return suite + ' ' + pass() + ' ' + form; }
  bool is_pool() const { return form.ends_with("pool"); }
  /// Elements of x and y of one of the `layers`.
  int64_t x_elems() const;
  int64_t y_elems() const;
  bool has_residual() const { return form.ends_with("+residual"); }
  /// Length of sequence i of an attention; they add up to about b l.
  int64_t length(int64_t i) const;
  /// Rows of all sequences.
  int64_t rows() const;
  /// Operations of the products; 0 if there are none.  Attention: 4 b h l l d for a full mask,
  /// half as many for a causal one, 2.5 times as many in the backward pass.
  double flop() const;
  /// Bytes of the larger arrays, counted once for every pass over them that the algorithm requires.
  double min_bytes(mp_dtype_t dtype) const;
  /// Operations that take the same time on the host target, which computes every element.
  double effort_flop() const { return 4 * flop() + 100 * min_bytes(MP_FP16); }
};

/// Keys that a query of form "window" sees before its diagonal.
constexpr int64_t kWindow = 1024;

/// Parses the extents of `suite`, then "form,comment", as a forward pass.
LayerShape parse_layer(std::string_view suite, std::string_view line);

}  // namespace mpbench
