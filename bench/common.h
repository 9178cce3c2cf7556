// Shared parts of the bench and other programs: status checks, owners of handles and device memory,
// printf into a string.
#pragma once

#include "support/device.h"
#include "support/text.h"

namespace mpbench {

using mptools::Buffer;
using mptools::check;
using mptools::Context;
using mptools::make_buffer;
using mptools::make_context;
using mptools::make_list;
using mptools::Optimizer;
using mptools::Scaler;
using mptools::TensorList;
using mptools::text;
using mptools::write_file;

inline int64_t dtype_bytes(mp_dtype_t dtype) {
  return static_cast<int64_t>(mp_dtype_size(dtype));
}

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// Returns the size that a query of the library stores behind its other arguments.
template <typename Query, typename... Arguments>
int64_t bytes_from(Query query, Arguments... arguments) {
  size_t bytes = 0;
  check(query(arguments..., &bytes));
  return static_cast<int64_t>(bytes);
}

/// Every array starts at an address that mp_malloc could have returned.
constexpr int64_t kAlignment = 256;
inline int64_t aligned_bytes(int64_t bytes) {
  return ceil_div(bytes, kAlignment) * kAlignment;
}

}  // namespace mpbench
