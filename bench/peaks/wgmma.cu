// wgmma m64n256k16, FP16 operands in shared memory, FP32 accumulators in registers; sm_90a only.
// Operands are random as in mma.cu.  The instruction and its descriptors are those of the library's
// kernels.
#include "kernels/simt/sm90_tma.h"
#include "kernels/simt/sm90_wgmma.h"
#include "launch.h"

namespace mpbench::peaks {
namespace {

using namespace mp::MP_TARGET;

using Fp16 = mp::MP_TARGET::half;

constexpr int kN = 256;
constexpr uint32_t kRowBytes = kWgmmaTileK * 2;
constexpr uint32_t kAtomBytes = 8 * kRowBytes;
constexpr size_t kSmemBytes = kWgmmaOperandElems * 2;

/// Descriptor of the 16 values of k from `k` on, for a matrix in consecutive atoms of 8 rows.
__device__ uint64_t operand_at(SmemAddress matrix, int k) {
  return wgmma_descriptor(matrix + 2 * k, 0, kAtomBytes);
}

__global__ void __launch_bounds__(kWgmmaThreads, 1)
    peak_wgmma(const uint4 *operands, int passes, float *sink) {
  // Without wgmma the body is omitted, and enqueue_wgmma returns an error.
  if constexpr (wgmma_supported<kSmemBytes>()) {
    extern __shared__ __align__(kAtomBytes) uint4 smem[];
    for (int i = threadIdx.x; i < static_cast<int>(kSmemBytes / 16); i += kWgmmaThreads)
      smem[i] = operands[i];
    async_proxy_fence();
    __syncthreads();

    const SmemAddress start = smem_address(smem);
    const SmemAddress own_a = start + threadIdx.x / 128 * (64 * kRowBytes);
    const SmemAddress b = start + kWgmmaGroups * 64 * kRowBytes;
    float sums[kN / 2] = {};
    for (int pass = 0; pass < passes; ++pass) {
      const bool begins = pass % kWgmmaPassesPerSum == 0;
      wgmma_fence();
#pragma unroll
      for (int stage = 0; stage < kWgmmaStages; ++stage) {
        const uint32_t offset = stage * kWgmmaStageElems * 2;
#pragma unroll
        for (int k = 0; k < kWgmmaTileK; k += 16)
          wgmma<Fp16, kN, Major::k, Major::k>(sums, operand_at(own_a + offset, k),
                                              operand_at(b + offset, k),
                                              !begins || stage > 0 || k > 0);
      }
      wgmma_commit();
      wgmma_wait<1>();  // the previous iteration; the accumulators need no wait
    }
    wgmma_wait<0>();

    float total = 0;
#pragma unroll
    for (const float sum : sums) total += sum;
    sink[blockIdx.x * kWgmmaThreads + threadIdx.x] = total;
  }
}

}  // namespace

const char *enqueue_wgmma(const Gpu &gpu, const void *operands, float *sink) {
  // Code for another architecture may be loaded and would do nothing.
  cudaFuncAttributes code;
  const cudaError_t error = cudaFuncGetAttributes(&code, peak_wgmma);
  if (error != cudaSuccess) return cudaGetErrorName(error);
  if (code.ptxVersion < 90) return "mpbench has no code for sm_90a";
  return launch(peak_wgmma, gpu, 1, kWgmmaThreads, kSmemBytes, static_cast<const uint4 *>(operands),
                kWgmmaPasses, sink);
}

}  // namespace mpbench::peaks
