// Shapes of batched GEMMs: strided batches, pointer arrays, groups with different shapes, and
// groups whose shapes are in device memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shapes.h"

namespace mpbench {

constexpr int64_t kMaxBatch = 1'000'000;  ///< the offsets of all matrices are listed

enum class BatchForm { kStrided, kPointers, kGrouped, kRagged };

/// Name, e.g. "strided".
const char *name_of(BatchForm form);

/// True if each entry has its own m.
inline bool is_group(BatchForm form) {
  return form == BatchForm::kGrouped || form == BatchForm::kRagged;
}

/// Offsets of one entry, in elements, in the arrays that hold all entries.
struct ItemOffsets {
  int64_t first, second, out;
};

struct BatchedShape {
  BatchForm form;
  int64_t count;
  Shape gemm;  ///< one entry; m of a group is the mean

  static std::vector<BatchedShape> of_line(std::string_view line, const ShapeSet &set);
  /// Name, e.g. "strided 384 x NT 1024x1024x64".
  std::string name() const;
  std::string label() const { return shape_label(gemm.set, name(), gemm.comment); }
  std::string kind() const;
  /// Returns m of entry i.
  int64_t rows_of(int64_t i) const;
  /// Total number of rows.
  int64_t rows() const;
  double flop() const;
  double effort_flop() const;
  /// Offsets of each entry, and, as the last element, the total sizes.
  std::vector<ItemOffsets> offsets() const;
};

/// Descriptor of a strided batch with its strides; of a pointer array without strides; of the
/// entries of a group; of a ragged GEMM with all rows.
mp_gemm_desc_t make_desc(const BatchedShape &shape, mp_dtype_t dtype);

/// Bytes of all operands, each counted once.
double min_bytes(const BatchedShape &shape, mp_dtype_t dtype);

/// Parses "form,count,m,n,k,layout,comment".
BatchedShape parse_batched(std::string_view line);

}  // namespace mpbench
