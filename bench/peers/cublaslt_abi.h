// Declarations of the cuBLASLt functions for GEMMs with an epilogue or a batch, so that the bench
// builds without the CUDA toolkit.  check_cuda.cpp compares them with the toolkit's headers, if
// they are installed.
// Source of names and values: cuBLAS Library documentation, chapter "Using the cuBLASLt API".
#pragma once

#include <cstddef>
#include <cstdint>

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

struct Functions {
  Status (*create)(Handle *);
  Status (*destroy)(Handle);
  size_t (*get_version)();
  Status (*matmul_desc_create)(MatmulDesc *, ComputeType, DataType scale_type);
  Status (*matmul_desc_destroy)(MatmulDesc);
  Status (*matmul_desc_set_attribute)(MatmulDesc, MatmulDescAttribute, const void *, size_t);
  Status (*matrix_layout_create)(MatrixLayout *, DataType, uint64_t rows, uint64_t cols,
                                 int64_t ld);
  Status (*matrix_layout_destroy)(MatrixLayout);
  Status (*matrix_layout_set_attribute)(MatrixLayout, MatrixLayoutAttribute, const void *, size_t);
  Status (*preference_create)(Preference *);
  Status (*preference_destroy)(Preference);
  Status (*preference_set_attribute)(Preference, PreferenceAttribute, const void *, size_t);
  Status (*algo_get_heuristic)(Handle, MatmulDesc, MatrixLayout a, MatrixLayout b, MatrixLayout c,
                               MatrixLayout d, Preference, int requested, HeuristicResult *,
                               int *returned);
  Status (*matmul)(Handle, MatmulDesc, const void *alpha, const void *a, MatrixLayout,
                   const void *b, MatrixLayout, const void *beta, const void *c, MatrixLayout,
                   void *d, MatrixLayout, const Algo *, void *workspace, size_t workspace_bytes,
                   mp_stream_t);
};

// Each function with its symbol name, for dlsym and for the comparison with the headers.
#define MPBENCH_CUBLASLT_FUNCTIONS(X)                               \
  X(create, cublasLtCreate)                                         \
  X(destroy, cublasLtDestroy)                                       \
  X(get_version, cublasLtGetVersion)                                \
  X(matmul_desc_create, cublasLtMatmulDescCreate)                   \
  X(matmul_desc_destroy, cublasLtMatmulDescDestroy)                 \
  X(matmul_desc_set_attribute, cublasLtMatmulDescSetAttribute)      \
  X(matrix_layout_create, cublasLtMatrixLayoutCreate)               \
  X(matrix_layout_destroy, cublasLtMatrixLayoutDestroy)             \
  X(matrix_layout_set_attribute, cublasLtMatrixLayoutSetAttribute)  \
  X(preference_create, cublasLtMatmulPreferenceCreate)              \
  X(preference_destroy, cublasLtMatmulPreferenceDestroy)            \
  X(preference_set_attribute, cublasLtMatmulPreferenceSetAttribute) \
  X(algo_get_heuristic, cublasLtMatmulAlgoGetHeuristic)             \
  X(matmul, cublasLtMatmul)

}  // namespace mpbench::cublaslt
