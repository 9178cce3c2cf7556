// Layers of transformers: attention, normalization, the output layer with its loss, gated units.
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
///     attention    b sequences of l rows, h query heads, kv heads of k and v, d and dv elements
///     norm         n rows of g vectors of c elements
///     linear_xent  n rows of w elements, c classes
///     gated        n rows, f columns of the result, k elements of the product
///
/// `form` is the mask of an attention ("full", "causal", "window", or "packed": causal sequences of
/// different lengths, with the mean l), kind of a norm, labels of a loss, or activation.
struct TransformerShape {
  std::string suite, set = {};
  bool is_forward = true;  ///< the backward pass of a loss computes it and all gradients
  std::vector<std::pair<std::string, int64_t>> extents = {};
  std::string form = {}, comment = {};

  /// Returns the passes of the layer.
  static std::vector<TransformerShape> of_line(std::string_view line, const ShapeSet &set);
  int64_t operator[](std::string_view extent) const;
  const char *pass() const { return is_forward ? "forward" : "backward"; }
  /// Name, e.g. "forward causal b8 l2048 h16 kv16 d128 dv128".
  std::string name() const;
  std::string label() const { return shape_label(set, name(), comment); }
  std::string kind() const { return suite + ' ' + pass() + ' ' + form; }
  bool has_residual() const { return form.ends_with("+residual"); }
  /// Length of sequence i of an attention; they add up to about b l.
  int64_t length(int64_t i) const;
  /// Rows of all sequences.
  int64_t rows() const;
  /// Operations of the products; 0 for a normalization.  Attention: 4 b h l l d for a full mask,
  /// half as many for a causal one, 2.5 times as many in the backward pass.
  double flop() const;
  /// Bytes of the larger arrays, each counted once.
  double min_bytes(mp_dtype_t dtype) const;
  /// Operations that take the same time on the host target, which computes every element.
  double effort_flop() const { return 4 * flop() + 100 * min_bytes(MP_FP16); }
};

/// Keys that a query of form "window" sees before its diagonal.
constexpr int64_t kWindow = 1024;

/// Parses the extents of `suite`, then "form,comment", as a forward pass.
TransformerShape parse_transformer(std::string_view suite, std::string_view line);

}  // namespace mpbench
