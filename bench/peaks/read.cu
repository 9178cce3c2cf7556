// Reads memory and keeps only a checksum: 8 loads of 16 bytes per thread in flight.
#include "launch.h"

namespace mpbench::peaks {
namespace {

/// Bypasses L1, since the data is read once.
__device__ uint4 load_once(const uint4 *address) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address));
  return v;
}

__global__ void __launch_bounds__(kReadThreads)
    peak_read(const uint4 *data, int64_t pieces, float *sink) {
  uint32_t checksum = 0;
  for (int64_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const uint4 *const from = data + piece * (kReadPieceBytes / 16) + threadIdx.x;
    uint4 v[kVectorsInFlight];
#pragma unroll
    for (int i = 0; i < kVectorsInFlight; ++i) v[i] = load_once(from + i * kReadThreads);
#pragma unroll
    for (int i = 0; i < kVectorsInFlight; ++i) checksum ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
  }
  sink[blockIdx.x * kReadThreads + threadIdx.x] = __uint_as_float(checksum);
}

}  // namespace

const char *enqueue_read(const Gpu &gpu, const void *data, int64_t pieces, float *sink) {
  return launch(peak_read, gpu, kReadBlocksPerSm, kReadThreads, 0, static_cast<const uint4 *>(data),
                pieces, sink);
}

}  // namespace mpbench::peaks
