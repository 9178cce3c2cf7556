// Launch of the kernels that measure peaks.
#pragma once

#include <cuda_runtime.h>

#include "kernels.h"

namespace mpbench::peaks {

/// @return NULL, or the name of the error
template <typename... Parameters, typename... Arguments>
const char *launch(void (*kernel)(Parameters...), const Gpu &gpu, int blocks_per_sm, int threads,
                   size_t smem_bytes, Arguments... arguments) {
  // This copy of the runtime is separate from the one that the bench opens at run time.
  cudaError_t error = cudaSetDevice(gpu.ordinal);
  if (error == cudaSuccess && smem_bytes > 0)
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(smem_bytes));
  if (error == cudaSuccess) {
    kernel<<<gpu.num_sms * blocks_per_sm, threads, smem_bytes, gpu.stream>>>(arguments...);
    error = cudaGetLastError();
  }
  return error == cudaSuccess ? nullptr : cudaGetErrorName(error);
}

}  // namespace mpbench::peaks
