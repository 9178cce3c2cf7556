// Copies of A and B with 16-byte aligned rows.  TMA requires aligned rows, and WMMA kernels load
// others element by element.  Pure: selection predicts time and workspace, the launch makes the
// copies.
#pragma once

#include "kernels/gemm/problem.h"

namespace mp {

/// Copy of one operand.
struct AlignedCopy {
  int64_t rows, cols;
  int64_t count;  ///< number of matrices
  int64_t ld;     ///< leading dimension of the copy, whose matrices are contiguous
  size_t bytes;   ///< workspace, a multiple of 256; 0 = read in place
};

struct AlignedCopies {
  AlignedCopy a, b;
  size_t bytes() const { return a.bytes + b.bytes; }
  double mb() const { return static_cast<double>(bytes()) * 1e-6; }
  int launches() const { return (a.bytes != 0) + (b.bytes != 0); }
};

/// Returns the copies of operands whose ld or stride is not a multiple of 8.  FP32, operands behind
/// pointers and sizes that overflow are not copied, because no kernel could read the copies.
AlignedCopies aligned_copies(const GemmProblem &);

/// Returns the problem that reads the copies from the start of the workspace: A's, then B's.
GemmProblem with_copies(const GemmProblem &, const AlignedCopies &, void *workspace);

}  // namespace mp
