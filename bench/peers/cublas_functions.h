// Functions of cuBLASLt and cuBLAS, which are loaded at run time.  Only for files that are compiled
// with the toolkit's headers.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>

#include <optional>

#include "cublas.h"

namespace mpbench {

inline std::optional<DynamicLibrary> lt;    ///< set by CublasLt
inline std::optional<DynamicLibrary> blas;  ///< set by Cublas

inline cudaDataType_t cublas_type(mp_dtype_t dtype) {
  return dtype == MP_FP16 ? CUDA_R_16F : dtype == MP_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}
inline cublasOperation_t operation(mp_op_t op) {
  return op == MP_OP_T ? CUBLAS_OP_T : CUBLAS_OP_N;
}

/// @throws std::runtime_error with the name of the call unless it succeeded
inline void check_cublas(cublasStatus_t status, const char *call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(text("%s: cublasStatus %d", call, static_cast<int>(status)));
}

/// Calls a function of `lt` or `blas`, which is found at its first use, and checks its status.
#define MPBENCH_BLAS(library, function, ...) \
  check_cublas(MPBENCH_FUNCTION(*library, function)(__VA_ARGS__), #function)

}  // namespace mpbench
