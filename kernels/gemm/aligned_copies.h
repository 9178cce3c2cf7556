// Copies of A and B whose rows begin at multiples of 16 bytes: TMA reads no others, and WMMA kernels load others element
// by element.  Pure: selection prices them and asks for their workspace, the launch makes them.
#pragma once

#include "kernels/gemm/problem.h"

namespace mp {

/// Of one operand.
struct AlignedCopy {
  int64_t rows, cols;
  int64_t count;  ///< matrices
  int64_t ld;     ///< of the copy, whose matrices follow one another
  size_t bytes;   ///< in workspace, a multiple of 256; 0 = read where it is
};

struct AlignedCopies {
  AlignedCopy a, b;
  size_t bytes() const { return a.bytes + b.bytes; }
  double mb() const { return static_cast<double>(bytes()) * 1e-6; }
  int launches() const { return (a.bytes != 0) + (b.bytes != 0); }
};

/// Of operands whose ld or stride is no multiple of 8.  None for operands behind pointers, of FP32, or too large to be
/// counted: nothing could read the copies.
AlignedCopies aligned_copies(const GemmProblem &);

/// The problem that reads the copies, which are at the head of the workspace: A's, then B's.
GemmProblem with_copies(const GemmProblem &, const AlignedCopies &, void *workspace);

}  // namespace mp
