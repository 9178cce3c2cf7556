// mma.sync m16n8k16, FP16 operands and FP32 accumulators, all in registers.  Operands are random
// and change with each instruction: a GPU that multiplies constants needs less power and clocks
// higher.
// Source: PTX ISA, "Matrix Fragments for mma.m16n8k16" and "... mma.m16n8k8".
#include "launch.h"

namespace mpbench::peaks {
namespace {

struct A {
  uint32_t x[4];
};
struct B {
  uint32_t x[2];
};
struct Sums {
  float x[4];
};

/// d += a b.  sm_75 has k = 8 only: the two halves of k are in the two halves of the registers.
__device__ void mma(Sums &d, const A &a, const B &b) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d.x[0]), "+f"(d.x[1]), "+f"(d.x[2]), "+f"(d.x[3])
      : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b.x[0]), "r"(b.x[1]));
#else
  for (int half = 0; half < 2; ++half)
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(d.x[0]), "+f"(d.x[1]), "+f"(d.x[2]), "+f"(d.x[3])
        : "r"(a.x[2 * half]), "r"(a.x[2 * half + 1]), "r"(b.x[half]));
#endif
}

__global__ void __launch_bounds__(kMmaThreads, kMmaBlocksPerSm)
    peak_mma(const uint32_t *operands, int passes, float *sink) {
  A a[kMmaOperands];
  B b[kMmaOperands];
  const uint32_t *own = operands + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kMmaOperands; ++i) {
#pragma unroll
    for (uint32_t &x : a[i].x) x = *own, own += kMmaThreads;
#pragma unroll
    for (uint32_t &x : b[i].x) x = *own, own += kMmaThreads;
  }

  Sums sums[kMmaSums];
  for (int pass = 0; pass < passes; ++pass) {
    if (pass % kMmaPassesPerSum == 0) {
#pragma unroll
      for (Sums &sum : sums) sum = {};
    }
#pragma unroll
    for (int turn = 0; turn < kMmaOperands; ++turn) {
#pragma unroll
      for (int i = 0; i < kMmaSums; ++i)
        mma(sums[i], a[(i + turn) % kMmaOperands],
            b[(i + i / kMmaOperands + 2 * turn) % kMmaOperands]);
    }
  }

  float total = 0;
#pragma unroll
  for (const Sums &sum : sums) total += sum.x[0] + sum.x[1] + sum.x[2] + sum.x[3];
  sink[blockIdx.x * kMmaThreads + threadIdx.x] = total;
}

}  // namespace

const char *enqueue_mma(const Gpu &gpu, const void *operands, float *sink) {
  return launch(peak_mma, gpu, kMmaBlocksPerSm, kMmaThreads, 0,
                static_cast<const uint32_t *>(operands), kMmaPasses, sink);
}

}  // namespace mpbench::peaks
