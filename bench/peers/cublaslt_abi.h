// Declarations of the cuBLASLt functions for GEMMs with an epilogue or a batch, so that the bench
// builds without the CUDA toolkit.  check_cuda.cpp compares them with the toolkit's headers, if
// they are installed.
// Source of names and values: cuBLAS Library documentation, chapter "Using the cuBLASLt API".
#pragma once

#include <cstddef>
#include <cstdint>

#include "dynamic_library.h"
#include "mpcore.h"

namespace mpbench::cublaslt {

using Status = int;  // cublasStatus_t; 0 is success
using Handle = struct cublasLtContext *;
using MatmulDesc = struct MatmulDescOpaque *;
using MatrixLayout = struct MatrixLayoutOpaque *;
using Preference = struct PreferenceOpaque *;

enum DataType : int { kReal32F = 0, kReal16F = 2, kReal16BF = 14 };
/// kCompute32F: fp32 without tf32.
enum ComputeType : int { kCompute32F = 68, kCompute32FFastTf32 = 77 };
enum Operation : int { kOpN = 0, kOpT = 1 };
enum MatmulDescAttribute : int {
  kTransA = 3,
  kTransB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kAuxPointer = 11,
  kAuxLd = 12
};
/// The bias and its gradient are one column of the column-major D; aux is the input of GELU.
enum Epilogue : int {
  kDefault = 1,
  kBias = 4,
  kReluBias = 6,
  kGeluAuxBias = 164,
  kDgeluBgrad = 208
};
enum MatrixLayoutAttribute : int { kBatchCount = 5, kStridedBatchOffset = 6 };
enum PreferenceAttribute : int { kMaxWorkspaceBytes = 1, kReductionSchemes = 3 };
/// Allowed split-k reductions: partial sums are added in fp32.
enum ReductionScheme : uint32_t { kInComputeType = 2 };

inline DataType data_type(mp_dtype_t dtype) {
  return dtype == MP_FP16 ? kReal16F : dtype == MP_BF16 ? kReal16BF : kReal32F;
}
inline Operation operation(mp_op_t op) {
  return op == MP_OP_T ? kOpT : kOpN;
}

struct Algo {
  uint64_t data[8];
};

struct HeuristicResult {
  Algo algo;
  size_t workspace_bytes;
  Status state;
  float waves_count;
  int reserved[4];
};

#define MPBENCH_CUBLASLT_FUNCTIONS(X)                                                          \
  X(Status, create, cublasLtCreate, Handle *)                                                  \
  X(Status, destroy, cublasLtDestroy, Handle)                                                  \
  X(size_t, get_version, cublasLtGetVersion)                                                   \
  X(Status, matmul_desc_create, cublasLtMatmulDescCreate, MatmulDesc *, ComputeType,           \
    DataType scale_type)                                                                       \
  X(Status, matmul_desc_destroy, cublasLtMatmulDescDestroy, MatmulDesc)                        \
  X(Status, matmul_desc_set_attribute, cublasLtMatmulDescSetAttribute, MatmulDesc,             \
    MatmulDescAttribute, const void *, size_t)                                                 \
  X(Status, matrix_layout_create, cublasLtMatrixLayoutCreate, MatrixLayout *, DataType,        \
    uint64_t rows, uint64_t cols, int64_t ld)                                                  \
  X(Status, matrix_layout_destroy, cublasLtMatrixLayoutDestroy, MatrixLayout)                  \
  X(Status, matrix_layout_set_attribute, cublasLtMatrixLayoutSetAttribute, MatrixLayout,       \
    MatrixLayoutAttribute, const void *, size_t)                                               \
  X(Status, preference_create, cublasLtMatmulPreferenceCreate, Preference *)                   \
  X(Status, preference_destroy, cublasLtMatmulPreferenceDestroy, Preference)                   \
  X(Status, preference_set_attribute, cublasLtMatmulPreferenceSetAttribute, Preference,        \
    PreferenceAttribute, const void *, size_t)                                                 \
  X(Status, algo_get_heuristic, cublasLtMatmulAlgoGetHeuristic, Handle, MatmulDesc,            \
    MatrixLayout a, MatrixLayout b, MatrixLayout c, MatrixLayout d, Preference, int requested, \
    HeuristicResult *, int *returned)                                                          \
  X(Status, matmul, cublasLtMatmul, Handle, MatmulDesc, const void *alpha, const void *a,      \
    MatrixLayout, const void *b, MatrixLayout, const void *beta, const void *c, MatrixLayout,  \
    void *d, MatrixLayout, const Algo *, void *workspace, size_t workspace_bytes, mp_stream_t)
MPBENCH_TABLE(Functions, MPBENCH_CUBLASLT_FUNCTIONS)

}  // namespace mpbench::cublaslt
