// Arrays and calls of a layer of a transformer.
#pragma once

#include <string>

#include "bench/shapes/transformer_shapes.h"
#include "layer_data.h"

namespace mpbench {

class TransformerData : public LayerData {
 public:
  TransformerData(const Machine &machine, const TransformerShape &shape, mp_dtype_t dtype);

  /// Compares the output of an attention's forward pass; same contract as Problem::difference_to.
  std::string difference_to(const Work &peer_of_first_set) const;

 private:
  TransformerShape shape_;
  mp_dtype_t dtype_;
};

/// Indices of the arrays of an attention.
enum AttentionArray : size_t { kQ, kK, kV, kO, kLse, kDO, kDq, kDk, kDv, kEnds };

/// Descriptor of an attention; packed ends are in device memory.
mp_attention_desc_t attention_desc(const TransformerShape &shape, mp_dtype_t dtype);

}  // namespace mpbench
