// Layers around GEMMs and convolutions: batch normalization, pooling, softmax cross-entropy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/common.h"
#include "shape_file.h"

namespace mpbench {

enum class Layer { kBatchNorm, kMaxPool, kAvgPool, kSoftmaxXent };
enum class LayerPass { kForward, kBackward };

struct LayerShape {
  std::string set = {};  ///< name in sets.h
  Layer layer;
  LayerPass pass;
  int64_t n, h, w, c;
  int32_t window, stride, pad;  ///< for pooling only
  std::string comment;

  /// Returns the passes of the layer.
  static std::vector<LayerShape> of_line(std::string_view line, const ShapeSet &set);
  bool is_pool() const { return layer == Layer::kMaxPool || layer == Layer::kAvgPool; }
  /// Pass, e.g. "maxpool forward"; a loss computes its gradient in the same call: "softmax_xent
  /// forward, gradient".
  std::string op() const;
  /// Size, e.g. "n256 112x112x64 3x3 s2 p1", "8192x50257".
  std::string size() const;
  std::string name() const { return op() + ' ' + size(); }
  std::string label() const { return shape_label(set, name(), comment); }
  std::string kind() const { return op(); }
  int64_t x_elems() const { return n * h * w * c; }
  int64_t y_elems() const;
  /// Bytes of the larger arrays, counted once for every pass over them that the algorithm requires.
  double min_bytes(mp_dtype_t dtype) const;
  /// Operations that take the same time on the host target, which computes every element.
  double effort_flop() const { return 100 * min_bytes(MP_FP16); }
};

/// Parses "layer,n,h,w,c,window,stride,pad,comment" as a forward pass.
LayerShape parse_layer(std::string_view line);

}  // namespace mpbench
