#include "capi/graph/graph.h"

#include <functional>
#include <numeric>

namespace mp::graph {

namespace {

int64_t product(Extent::const_iterator begin, Extent::const_iterator end) {
  return std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
}

}  // namespace

int64_t Tensor::numel() const {
  return product(extent.begin(), extent.end());
}

int64_t Tensor::rows() const {
  return extent.empty() ? 1 : product(extent.begin(), extent.end() - 1);
}

size_t Tensor::bytes(bool of_copy) const {
  const mp_dtype_t type = of_copy ? copy_dtype : dtype;
  const size_t element = type == MP_DTYPE_NONE ? 1 : mp_dtype_size(type);
  return static_cast<size_t>(numel()) * element;
}

int32_t Graph::add(Node node) {
  const auto id = static_cast<int32_t>(nodes.size());
  for (const int32_t output : node.outputs)
    if (output != kNone) tensor(output).producer = id;
  nodes.push_back(std::move(node));
  return id;
}

std::string text_of(const Extent &extent) {
  std::string text = "[";
  for (const int64_t e : extent) text += (text.size() > 1 ? " " : "") + std::to_string(e);
  return text + "]";
}

}  // namespace mp::graph
