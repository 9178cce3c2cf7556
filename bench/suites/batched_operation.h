// Batched GEMMs as an operation, and the equivalent loop over cuBLASLt for a group.
#pragma once

#include "bench/peers/cublas.h"
#include "bench/shapes/batched_shapes.h"
#include "operation.h"

namespace mpbench {

Operation batched_operation(const Machine &machine, const BatchedShape &shape, mp_dtype_t dtype);

/// Returns a loop over cuBLASLt, as in programs without a grouped GEMM, and, if cuBLAS has it,
/// cublasGemmGroupedBatchedEx.
/// @param grouped  NULL: the loop only
/// @throws std::runtime_error if cuBLASLt has no algorithm for an entry.
PeerCalls group_calls(const CublasLt &loop, const Cublas *grouped, const BatchedShape &shape,
                      mp_dtype_t dtype);

}  // namespace mpbench
