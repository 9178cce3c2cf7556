// Which of the two compilers is reading, and the words that only one of them knows.
//
// Kernel sources are compiled by nvcc into namespace mp::cuda and by the host compiler into
// mp::host; MP_TARGET is that namespace's name, so both copies can live in one library.
#pragma once

#if defined(__CUDACC__)
#define MP_TARGET cuda
#define MP_ON_CUDA 1
// Device code for sm_90a, the only architecture with wgmma; code for the host side of nvcc sees 1.
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define MP_SM90A_CODE 1
#else
#define MP_SM90A_CODE 0
#endif
#define MP_HD __host__ __device__ __forceinline__
#define MP_DEVICE __device__ __forceinline__
// A function that a kernel has once, wherever it calls it from: for what is long and seldom needed.
#define MP_OUT_OF_LINE inline __device__ __noinline__
#if MP_WITHOUT_KERNELS
#define MP_KERNEL(...) static_assert(false, "WITHOUT_KERNELS in the Makefile names this file");
#else
#define MP_KERNEL(max_threads, min_blocks) \
  __global__ void __launch_bounds__(max_threads, min_blocks)
#endif
// For an MP_HD template that calls what it is given: a function of the device or of the host.
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
// The host compiler decides: unrolling everything costs it minutes and gains nothing.
#define MP_UNROLL
#endif
