#include "embedding.h"

#include <cmath>

namespace mpdemo {

Embedding::Embedding(const Setup &setup, int32_t vocabulary, int64_t width)
    : Layer(setup, width), vocabulary_(vocabulary), table_(setup, vocabulary * width) {}

void Embedding::initialise(Random &random) {
  table_.initialise_uniform(random, std::sqrt(3.0));  // variance 1, as torch.nn.Embedding has it
}

mp_embedding_desc_t Embedding::desc(int64_t rows) const {
  return mp_embedding_desc_default(rows, vocabulary_, out(), dtype());
}

void Embedding::forward(const void *x, const Pass &pass) {
  const mp_embedding_desc_t d = desc(pass.rows);
  check(mp_embedding_forward(context(), &d, table_.data(), static_cast<const int32_t *>(x),
                             y().data(), kStream));
}

void Embedding::backward(const void *x, const Layer *, const Pass &pass) {
  // A row behind the end of its sequence has a dy of 0, and adds nothing.
  const mp_embedding_desc_t d = desc(pass.rows);
  check(mp_embedding_backward(context(), &d, static_cast<const int32_t *>(x), dy().data(),
                              table_.grad(), pass.found_inf, nullptr, pass.workspace.data(),
                              static_cast<size_t>(pass.workspace.bytes()), kStream));
}

std::vector<Parameter> Embedding::parameters() const {
  return {table_.parameter()};
}

size_t Embedding::workspace_bytes() const {
  const mp_embedding_desc_t d = desc(max_rows());
  size_t bytes = 0;
  check(mp_embedding_workspace_size(context(), &d, &bytes));
  return bytes;
}

}  // namespace mpdemo
