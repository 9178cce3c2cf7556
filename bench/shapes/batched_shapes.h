// Many GEMMs in one call: batches with strides or with pointers, groups of different shapes, and groups whose
// shapes the device alone knows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shapes.h"

namespace mpbench {

enum class BatchForm { kStrided, kPointers, kGrouped, kRagged };

/// "strided"
const char *name_of(BatchForm form);

/// Each item has an m of its own.
inline bool is_group(BatchForm form) {
  return form == BatchForm::kGrouped || form == BatchForm::kRagged;
}

/// Where an item of a batch begins, in elements, in the arrays that hold all of them.
struct ItemOffsets {
  int64_t first, second, out;
};

struct BatchedShape {
  BatchForm form;
  int64_t count;
  Shape gemm;  ///< of each; of a group m is the mean

  /// e.g. "strided 384 x NT 1024x1024x64"
  std::string name() const;
  std::string label() const { return shape_label(gemm.set, name(), gemm.comment); }
  std::string kind() const;
  /// m of item i.
  int64_t rows_of(int64_t i) const;
  /// Of all.
  int64_t rows() const;
  double flop() const;
  double effort_flop() const;
  /// Of each item and, as the last, where all of them end.
  std::vector<ItemOffsets> offsets() const;
};

/// Of a batch with its strides; of a batch with pointers without them; of the items of a group; of a ragged
/// one with all rows.
mp_gemm_desc_t make_desc(const BatchedShape &shape, mp_dtype_t dtype);

/// Every operand once.
double min_bytes(const BatchedShape &shape, mp_dtype_t dtype);

/// "form,count,m,n,k,layout,comment"
BatchedShape parse_batched(std::string_view line);

/// The shapes that the options ask for.
/// @throws std::runtime_error if a file is missing or malformed.
std::vector<BatchedShape> read_batched_shapes(const Options &options, bool on_host);

}  // namespace mpbench
