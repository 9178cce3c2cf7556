// Declarations of the cuBLAS functions for pointer-array batches and groups, so that the bench
// builds without the CUDA toolkit.  check_cuda.cpp compares them with the toolkit's headers, if
// they are installed. Types and operations are numbered as in cublaslt_abi.h.
// Source of names and values: cuBLAS Library documentation, chapter "cuBLAS-like Extension".
#pragma once

#include "cublaslt_abi.h"

namespace mpbench::cublas {

using Status = int;  // cublasStatus_t; 0 is success
using Handle = struct cublasContext *;
using cublaslt::ComputeType;
using cublaslt::DataType;
using cublaslt::Operation;

enum Algo : int { kDefaultAlgo = -1 };

// Pointer arrays of the entries are in device memory, all other data in host memory.
#define MPBENCH_CUBLAS_FUNCTIONS(X)                                                            \
  X(Status, create, cublasCreate_v2, Handle *)                                                 \
  X(Status, destroy, cublasDestroy_v2, Handle)                                                 \
  X(Status, get_version, cublasGetVersion_v2, Handle, int *)                                   \
  X(Status, set_stream, cublasSetStream_v2, Handle, mp_stream_t)                               \
  X(Status, set_workspace, cublasSetWorkspace_v2, Handle, void *, size_t)                      \
  X(Status, gemm_batched, cublasGemmBatchedEx, Handle, Operation a, Operation b, int m, int n, \
    int k, const void *alpha, const void *const *a_items, DataType, int lda,                   \
    const void *const *b_items, DataType, int ldb, const void *beta, void *const *c_items,     \
    DataType, int ldc, int count, ComputeType, Algo)
MPBENCH_TABLE(Functions, MPBENCH_CUBLAS_FUNCTIONS)

// Since CUDA 12.5.
#define MPBENCH_CUBLAS_GROUPED_FUNCTIONS(X)                                                       \
  X(Status, gemm_grouped, cublasGemmGroupedBatchedEx, Handle, const Operation *a,                 \
    const Operation *b, const int *m, const int *n, const int *k, const void *alpha,              \
    const void *const *a_items, DataType, const int *lda, const void *const *b_items, DataType,   \
    const int *ldb, const void *beta, void *const *c_items, DataType, const int *ldc, int groups, \
    const int *group_sizes, ComputeType)
MPBENCH_TABLE(GroupedFunctions, MPBENCH_CUBLAS_GROUPED_FUNCTIONS)

}  // namespace mpbench::cublas
