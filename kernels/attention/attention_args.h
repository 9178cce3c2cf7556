// Arguments of the attention kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simt/compiler.h"
#include "mpcore/attention.h"

namespace mp {

/// Implementation of both passes.  Only `plain` supports every type, shape and alignment.
enum class AttentionKernel {
  plain,
  mma  ///< tensor cores through mma.sync
};

/// Arguments of both passes; each reads only some of the tensors.  In the descriptor, strides,
/// scale and head_dim_v have no default values.
struct AttentionArgs : mp_attention_tensors_t {
  mp_attention_desc_t desc;
  int32_t drop_threshold;  ///< T: bytes below it drop their score; 0: no dropout
  float *row_dots;         ///< workspace of the backward pass: D, in the layout of lse
  AttentionKernel kernel;
};

MP_HD bool is_packed(const mp_attention_desc_t &desc) {
  return desc.q_rows > 0;
}

/// Returns the number of elements of lse.
inline int64_t attention_lse_elems(const mp_attention_desc_t &desc) {
  return int64_t{desc.heads} * (is_packed(desc) ? desc.q_rows : desc.batch * desc.q_len);
}

}  // namespace mp
