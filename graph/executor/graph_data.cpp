#include "graph/executor/graph_data.h"

#include <limits>

namespace mp::graph {

namespace {

/// Returns the product of the first `rank` dimensions.
int64_t product(const Tensor &t, size_t rank) {
  int64_t count = 1;
  for (size_t i = 0; i < rank; ++i)
    MP_REQUIRE(multiply_add(count, t.extent[i], 0, &count), MP_ERROR_INVALID_ARGUMENT, t.name,
               " has shape ", text_of(t.extent), ": number of elements exceeds 2^63 - 1");
  return count;
}

}  // namespace

int64_t Tensor::numel() const {
  return product(*this, extent.size());
}

int64_t Tensor::rows() const {
  return extent.empty() ? 1 : product(*this, extent.size() - 1);
}

size_t Tensor::bytes(bool of_copy) const {
  const mp_dtype_t type = of_copy ? copy_dtype : dtype;
  const size_t element = type == MP_DTYPE_NONE ? 1 : mp_dtype_size(type);
  return checked_bytes(static_cast<size_t>(numel()), element);
}

size_t checked_bytes(size_t a, size_t b, size_t c) {
  constexpr size_t kMax = std::numeric_limits<int64_t>::max();
  int64_t bytes = 0;
  const bool fits = a <= kMax && b <= kMax && c <= kMax &&
                    multiply_add(static_cast<int64_t>(a), static_cast<int64_t>(b),
                                 static_cast<int64_t>(c), &bytes);
  MP_REQUIRE(fits, MP_ERROR_INVALID_ARGUMENT,
             "graph: size of all tensors in bytes exceeds 2^63 - 1");
  return static_cast<size_t>(bytes);
}

int32_t Graph::add(Node node) {
  const auto id = static_cast<int32_t>(nodes.size());
  if (!node.is_backward) node.number = id;
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
