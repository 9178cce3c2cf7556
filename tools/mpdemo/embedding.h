// A table of vectors on mp_embedding_*, one for each symbol: what a layer of sequences reads a text through.
#pragma once

#include <cstdint>
#include <vector>

#include "layer.h"

namespace mpdemo {

class Embedding : public Layer {
 public:
  /// x is an integer per row, and y its vector.
  Embedding(const Setup &setup, int32_t vocabulary, int64_t width);

  void initialise(Random &random) override;
  void forward(const void *x, const Pass &pass) override;
  void backward(const void *x, const Layer *below, const Pass &pass) override;
  std::vector<Parameter> parameters() const override;
  size_t workspace_bytes() const override;

 private:
  mp_embedding_desc_t desc(int64_t rows) const;

  int32_t vocabulary_;
  Weight table_;
};

}  // namespace mpdemo
