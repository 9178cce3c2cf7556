#include "layer_shapes.h"

namespace mpbench {
namespace {

constexpr struct {
  const char *name;
  Layer layer;
} kLayers[] = {{"batchnorm", Layer::kBatchNorm},
               {"maxpool", Layer::kMaxPool},
               {"avgpool", Layer::kAvgPool},
               {"softmax_xent", Layer::kSoftmaxXent}};

int64_t out_extent(const LayerShape &shape, int64_t extent) {
  return (extent + 2 * shape.pad - shape.window) / shape.stride + 1;
}

}  // namespace

std::string LayerShape::op() const {
  const bool is_forward = pass == LayerPass::kForward;
  for (const auto &[name, known] : kLayers) {
    if (known != layer) continue;
    if (layer == Layer::kSoftmaxXent) return std::string(name) + (is_forward ? "" : ", gradient");
    return std::string(name) + (is_forward ? " forward" : " backward");
  }
  return {};
}

std::string LayerShape::size() const {
  const auto number = [](int64_t value) { return std::to_string(value); };
  if (layer == Layer::kSoftmaxXent) return number(n) + 'x' + number(c);
  std::string size = 'n' + number(n) + ' ' + number(h) + 'x' + number(w) + 'x' + number(c);
  if (is_pool())
    size +=
        ' ' + number(window) + 'x' + number(window) + " s" + number(stride) + " p" + number(pad);
  return size;
}

int64_t LayerShape::y_elems() const {
  return is_pool() ? n * out_extent(*this, h) * out_extent(*this, w) * c : x_elems();
}

double LayerShape::min_bytes(mp_dtype_t dtype) const {
  const bool is_forward = pass == LayerPass::kForward;
  const auto x = static_cast<double>(x_elems()), y = static_cast<double>(y_elems());
  double elems = 0, more_bytes = 0;
  switch (layer) {
    case Layer::kBatchNorm:
      // Normalization requires the statistics of all of x, so it reads x (and dy) a second time.
      elems = is_forward ? 2 * x + y : 2 * x + 2 * y + x;
      break;
    case Layer::kMaxPool:
      elems = x + y;
      more_bytes = is_forward ? 0 : y;  // positions of maxima
      break;
    case Layer::kAvgPool:
      elems = x + y;
      break;
    case Layer::kSoftmaxXent:
      elems = is_forward ? x : 2 * x;
      break;
  }
  return elems * static_cast<double>(dtype_bytes(dtype)) + more_bytes;
}

LayerShape parse_layer(std::string_view line) {
  const std::vector<std::string_view> fields = split_line(line, 8);
  if (fields.size() != 9)
    throw std::runtime_error("a line must be layer,n,h,w,c,window,stride,pad,comment");
  const auto number = [&](size_t field, int64_t least) {
    return parse_field(fields[field], least);
  };
  for (const auto &[name, layer] : kLayers) {
    if (fields[0] != name) continue;
    const int64_t least = layer == Layer::kMaxPool || layer == Layer::kAvgPool ? 1 : 0;
    LayerShape shape{.layer = layer,
                     .pass = LayerPass::kForward,
                     .n = number(1, 1),
                     .h = number(2, 1),
                     .w = number(3, 1),
                     .c = number(4, 1),
                     .window = static_cast<int32_t>(number(5, least)),
                     .stride = static_cast<int32_t>(number(6, least)),
                     .pad = static_cast<int32_t>(number(7, 0)),
                     .comment = std::string(fields[8])};
    if (least > 0 && std::min(shape.h, shape.w) + 2 * shape.pad < shape.window)
      throw std::runtime_error("the window exceeds the padded image");
    require_countable({shape.n, shape.h + 2 * shape.pad, shape.w + 2 * shape.pad, shape.c});
    return shape;
  }
  throw std::runtime_error("\"" + std::string(fields[0]) +
                           "\": layer must be batchnorm, maxpool, avgpool or softmax_xent");
}

std::vector<LayerShape> LayerShape::of_line(std::string_view line, const ShapeSet &set) {
  std::vector<LayerShape> passes(2, parse_layer(line));
  passes[0].set = passes[1].set = set.name;
  passes[1].pass = LayerPass::kBackward;
  return passes;
}

}  // namespace mpbench
