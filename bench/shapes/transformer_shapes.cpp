#include "transformer_shapes.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace mpbench {
namespace {

constexpr struct {
  const char *suite, *extents, *forms;
} kSuites[] = {
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

int64_t TransformerShape::operator[](std::string_view extent) const {
  for (const auto &[name, value] : extents)
    if (name == extent) return value;
  throw std::logic_error(suite + " has no extent " + std::string(extent));
}

std::string TransformerShape::name() const {
  std::string name = pass() + (' ' + form);
  for (const auto &[letter, value] : extents) name += ' ' + letter + std::to_string(value);
  return name;
}

int64_t TransformerShape::length(int64_t i) const {
  const int64_t b = (*this)["b"], l = (*this)["l"];
  return form == "packed" ? ceil_div(2 * l * (i + 1), b + 1) : l;
}

int64_t TransformerShape::rows() const {
  int64_t rows = 0;
  for (int64_t i = 0; i < (*this)["b"]; ++i) rows += length(i);
  return rows;
}

double TransformerShape::flop() const {
  const TransformerShape &of = *this;
  if (suite == "norm") return 0;
  if (suite == "linear_xent") return (is_forward ? 2 : 6) * product({of["n"], of["w"], of["c"]});
  if (suite == "gated") return (is_forward ? 4 : 2) * product({of["n"], of["f"], of["k"]});
  double visible = 0;
  for (int64_t i = 0; i < of["b"]; ++i) visible += pairs(form, length(i));
  return (is_forward ? 2 : 5) * visible * product({of["h"], of["d"] + of["dv"]});
}

double TransformerShape::min_bytes(mp_dtype_t dtype) const {
  const TransformerShape &of = *this;
  const auto bytes = static_cast<double>(dtype_bytes(dtype));
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

TransformerShape parse_transformer(std::string_view suite, std::string_view line) {
  const auto *const known = std::find_if(std::begin(kSuites), std::end(kSuites),
                                         [&](const auto &one) { return one.suite == suite; });
  const std::vector<std::string> extents = words(known->extents), forms = words(known->forms);
  const std::vector<std::string_view> fields = split_line(line, extents.size() + 1);
  if (fields.size() != extents.size() + 2)
    throw std::runtime_error(std::string("a line must be ") + known->extents + " form comment");
  TransformerShape shape{.suite = std::string(suite)};
  for (size_t i = 0; i < extents.size(); ++i)
    shape.extents.emplace_back(extents[i], parse_field(fields[i]));
  shape.form = fields[extents.size()];
  shape.comment = fields.back();
  if (std::find(forms.begin(), forms.end(), shape.form) == forms.end())
    throw std::runtime_error('"' + shape.form + "\": form must be one of " + known->forms);
  if (suite == "attention" && shape["h"] % shape["kv"] != 0)
    throw std::runtime_error("kv must divide h");
  return shape;
}

std::vector<TransformerShape> TransformerShape::of_line(std::string_view line,
                                                        const ShapeSet &set) {
  std::vector<TransformerShape> passes(2, parse_transformer(set.suite, line));
  passes[0].set = passes[1].set = set.name;
  passes[1].is_forward = false;
  return passes;
}

}  // namespace mpbench
