// Functions of cuDNN, which is loaded at run time.  Only for files that are compiled with cudnn.h.
#pragma once

#include <cudnn.h>

#include <optional>

#include "cudnn.h"

namespace mpbench {

inline std::optional<DynamicLibrary> dnn;  ///< set by Cudnn

/// Pointer to a function of cuDNN, which is found at its first use.
#define MPBENCH_CUDNN(function) MPBENCH_FUNCTION(*dnn, function)

inline cudnnDataType_t cudnn_type(mp_dtype_t dtype) {
  static_assert(mp::float_type(MP_FP16).cudnn == CUDNN_DATA_HALF);
  static_assert(mp::float_type(MP_BF16).cudnn == CUDNN_DATA_BFLOAT16);
  static_assert(mp::float_type(MP_FP32).cudnn == CUDNN_DATA_FLOAT);
  return static_cast<cudnnDataType_t>(mp::float_type(dtype).cudnn);
}

/// FP32 with kTf32 may use tensor cores, 16-bit types always do.
inline cudnnMathType_t math_type(mp_dtype_t dtype, PeerMath math) {
  return dtype != MP_FP32          ? CUDNN_TENSOR_OP_MATH
         : math == PeerMath::kTf32 ? CUDNN_DEFAULT_MATH
                                   : CUDNN_FMA_MATH;
}

/// @throws std::runtime_error with the name of the call unless it succeeded
inline void check_cudnn(cudnnStatus_t status, const char *call) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + ": " + MPBENCH_CUDNN(cudnnGetErrorString)(status));
}

/// Calls a function and checks its status.
#define MPBENCH_DNN(function, ...) check_cudnn(MPBENCH_CUDNN(function)(__VA_ARGS__), #function)

/// Creates a descriptor of a kind, e.g. Tensor.
#define MPBENCH_DNN_NEW(kind)                                        \
  [] {                                                               \
    cudnn##kind##Descriptor_t created = nullptr;                     \
    MPBENCH_DNN(cudnnCreate##kind##Descriptor, &created);            \
    return CudnnDescriptor(                                          \
        created, +[](decltype(created) descriptor) {                 \
          MPBENCH_CUDNN(cudnnDestroy##kind##Descriptor)(descriptor); \
        });                                                          \
  }()

}  // namespace mpbench
