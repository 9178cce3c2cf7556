#include "layer_shapes.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace mpbench {
namespace {

constexpr struct {
  const char *suite, *extents, *forms;
} kSuites[] = {
    {"layers", "n h w c window stride pad", "batchnorm maxpool avgpool softmax_xent"},
    {"attention", "b l h kv d dv", "full causal window packed"},
    {"norm", "n g c", "layer layer+residual rms rms+residual"},
    {"linear_xent", "n w c", "labels"},
    {"gated", "n f k", "swiglu geglu"},
};

std::vector<std::string> words(const char *text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

double product(std::initializer_list<int64_t> factors) {
  double all = 1;
  for (const int64_t factor : factors) all *= static_cast<double>(factor);
  return all;
}

/// Visible pairs of a query and a key in a sequence.  A causal mask counts as half of all pairs, as
/// in the tables of other libraries.
double pairs(const std::string &form, int64_t length) {
  if (form == "full") return product({length, length});
  if (form != "window" || length <= kWindow) return product({length, length}) / 2;
  return product({kWindow, kWindow}) / 2 + product({length - kWindow, kWindow});
}

}  // namespace

int64_t LayerShape::operator[](std::string_view extent) const {
  for (const auto &[name, value] : extents)
    if (name == extent) return value;
  throw std::logic_error(suite + " has no extent " + std::string(extent));
}

std::string LayerShape::op() const {
  if (form == "softmax_xent") return form + (is_forward ? "" : ", gradient");
  return form + ' ' + pass();
}

std::string LayerShape::name() const {
  if (suite == "layers") {
    const auto number = [&](const char *extent) { return std::to_string((*this)[extent]); };
    if (form == "softmax_xent") return op() + ' ' + number("n") + 'x' + number("c");
    std::string name =
        op() + " n" + number("n") + ' ' + number("h") + 'x' + number("w") + 'x' + number("c");
    if (is_pool())
      name += ' ' + number("window") + 'x' + number("window") + " s" + number("stride") + " p" +
              number("pad");
    return name;
  }
  std::string name = pass() + (' ' + form);
  for (const auto &[letter, value] : extents) name += ' ' + letter + std::to_string(value);
  return name;
}

int64_t LayerShape::length(int64_t i) const {
  const int64_t b = (*this)["b"], l = (*this)["l"];
  return form == "packed" ? ceil_div(2 * l * (i + 1), b + 1) : l;
}

int64_t LayerShape::rows() const {
  int64_t rows = 0;
  for (int64_t i = 0; i < (*this)["b"]; ++i) rows += length(i);
  return rows;
}

int64_t LayerShape::x_elems() const {
  const LayerShape &of = *this;
  return of["n"] * of["h"] * of["w"] * of["c"];
}

int64_t LayerShape::y_elems() const {
  const LayerShape &of = *this;
  const auto out = [&](int64_t extent) {
    return (extent + 2 * of["pad"] - of["window"]) / of["stride"] + 1;
  };
  return of["n"] * out(of["h"]) * out(of["w"]) * of["c"];
}

double LayerShape::flop() const {
  const LayerShape &of = *this;
  if (suite == "layers" || suite == "norm") return 0;
  if (suite == "linear_xent") return (is_forward ? 2 : 6) * product({of["n"], of["w"], of["c"]});
  if (suite == "gated") return (is_forward ? 4 : 2) * product({of["n"], of["f"], of["k"]});
  double visible = 0;
  for (int64_t i = 0; i < of["b"]; ++i) visible += pairs(form, length(i));
  return (is_forward ? 2 : 5) * visible * product({of["h"], of["d"] + of["dv"]});
}

double LayerShape::min_bytes(mp_dtype_t dtype) const {
  const LayerShape &of = *this;
  const auto bytes = static_cast<double>(dtype_bytes(dtype));
  if (suite == "layers") {
    const auto x = static_cast<double>(x_elems()), y = static_cast<double>(y_elems());
    if (form == "softmax_xent") return bytes * (is_forward ? x : 2 * x);
    // Normalization requires the statistics of all of x, so it reads x (and dy) a second time.
    if (form == "batchnorm") return bytes * (is_forward ? 2 * x + y : 2 * x + 2 * y + x);
    const double positions = form == "maxpool" && !is_forward ? y : 0;  // of maxima
    return bytes * (x + y) + positions;
  }
  if (suite == "norm") {
    // Forward: x, y; with a residual also it and the sum.  Backward: r, dy, dx; also dsum.
    const int arrays = is_forward ? (has_residual() ? 4 : 2) : (has_residual() ? 4 : 3);
    return arrays * bytes * product({of["n"], of["g"], of["c"]});
  }
  if (suite == "linear_xent") {
    const double x = product({of["n"], of["w"]}), w = product({of["c"], of["w"]});
    return bytes * (is_forward ? x + w : 2 * x + w) + (is_forward ? 0 : 4 * w);
  }
  if (suite == "gated") {
    const double units = product({of["n"], of["f"]}), x = product({of["n"], of["k"]});
    const double weights = product({of["f"], of["k"]});
    return bytes * (is_forward ? x + 2 * weights + 3 * units : x + weights + 4 * units);
  }
  const double q = product({of["h"], of["d"]}), o = product({of["h"], of["dv"]});
  const double kv = product({of["kv"], of["d"] + of["dv"]});
  const double row = bytes * (is_forward ? q + kv + o : 2 * (q + kv + o));
  return static_cast<double>(rows()) * (row + 4 * product({of["h"]}));
}

LayerShape parse_layer(std::string_view suite, std::string_view line) {
  const auto *const known = std::find_if(std::begin(kSuites), std::end(kSuites),
                                         [&](const auto &one) { return one.suite == suite; });
  const std::vector<std::string> extents = words(known->extents), forms = words(known->forms);
  const std::vector<std::string_view> fields = split_line(line, extents.size() + 1);
  if (fields.size() != extents.size() + 2)
    throw std::runtime_error(std::string("a line must be ") + known->extents + " form comment");
  LayerShape shape{.suite = std::string(suite)};
  for (size_t i = 0; i < extents.size(); ++i)
    shape.extents.emplace_back(extents[i], parse_field(fields[i], extents[i] == "pad" ? 0 : 1));
  shape.form = fields[extents.size()];
  shape.comment = fields.back();
  if (std::find(forms.begin(), forms.end(), shape.form) == forms.end())
    throw std::runtime_error('"' + shape.form + "\": form must be one of " + known->forms);
  if (suite == "attention" && shape["h"] % shape["kv"] != 0)
    throw std::runtime_error("kv must divide h");
  if (suite == "layers") {
    const int64_t window = shape["window"], pad = shape["pad"];
    const int64_t h = shape["h"] + 2 * pad, w = shape["w"] + 2 * pad;
    if (!shape.is_pool() && (window != 1 || shape["stride"] != 1 || pad != 0))
      throw std::runtime_error("window, stride and pad must be 1, 1 and 0 without pooling");
    if (std::min(h, w) < window) throw std::runtime_error("the window exceeds the padded image");
    require_countable({shape["n"], h, w, shape["c"]});
  }
  return shape;
}

std::vector<LayerShape> LayerShape::of_line(std::string_view line, const ShapeSet &set) {
  std::vector<LayerShape> passes(2, parse_layer(set.suite, line));
  passes[0].set = passes[1].set = set.name;
  passes[1].is_forward = false;
  return passes;
}

}  // namespace mpbench
