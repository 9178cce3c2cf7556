// Target selection: macros for the keywords of nvcc and of the host compiler.
//
// nvcc compiles kernel sources into namespace mp::cuda, the host compiler into mp::host, so one
// library can contain both copies.  MP_TARGET is the name of the namespace.
#pragma once

#if defined(__CUDACC__)
#define MP_TARGET cuda
#define MP_ON_CUDA 1
// 1 in device code for sm_90a, the only architecture with wgmma, and in nvcc's host pass.
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define MP_SM90A_CODE 1
#else
#define MP_SM90A_CODE 0
#endif
#define MP_HD __host__ __device__ __forceinline__
#define MP_DEVICE __device__ __forceinline__
// Function that is never inlined, for long code that runs rarely.
#define MP_OUT_OF_LINE inline __device__ __noinline__
#if MP_WITHOUT_KERNELS
#define MP_KERNEL(...) static_assert(false, "WITHOUT_KERNELS in kernels/cuda.mk names this file");
#else
#define MP_KERNEL(max_threads, min_blocks) \
  __global__ void __launch_bounds__(max_threads, min_blocks)
#endif
// Precedes an MP_HD template whose callable may be a host or a device function.
#define MP_CALLS_EITHER _Pragma("nv_exec_check_disable")
#define MP_PARAM(T) const __grid_constant__ T
#define MP_UNROLL _Pragma("unroll")
#define MP_NO_UNROLL _Pragma("unroll 1")
#else
#define MP_TARGET host
#define MP_ON_CUDA 0
#define MP_HD inline
#define MP_DEVICE inline
#define MP_OUT_OF_LINE inline
#define MP_KERNEL(max_threads, min_blocks) void
#define MP_CALLS_EITHER
#define MP_PARAM(T) const T &
#define MP_NO_UNROLL
// Left to the host compiler: unrolling every loop would add minutes of compile time for no gain.
#define MP_UNROLL
#endif
