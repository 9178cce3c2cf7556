// Narrow tiles with swizzles of 64 and 32 bytes, bf16, and stream-K.
#include "cutlass_gemm.h"

int main(int argc, char **argv) {
  using namespace calibration;
  using Alone = Size<1, 1, 1>;
  Report report(argc, argv);
  run_gemm<Half, Row, Column, float, Size<64, 64, 32>, Alone, Plain>(
      report, "TN plain 64x64x32, swizzle of 64 bytes", {136, 136, 104});
  run_gemm<Half, Row, Column, float, Size<64, 64, 16>, Alone, Plain>(
      report, "TN plain 64x64x16, swizzle of 32 bytes", {136, 136, 104});
  run_gemm<Half, Column, Row, float, Size<64, 32, 64>, Alone, Plain>(
      report, "NT plain 64x32x64, B with a swizzle of 64 bytes", {136, 136, 104});
  run_gemm<Half, Column, Row, float, Size<64, 16, 64>, Size<2, 1, 1>, Plain>(
      report, "NT plain 64x16x64, cluster 2x1, B with a swizzle of 32 bytes", {136, 136, 104});
  run_gemm<Bfloat, Column, Row, float, Size<64, 96, 64>, Alone, Plain>(
      report, "NT plain 64x96x64, bf16, B in three columns of 64 bytes", {136, 200, 104});
  run_gemm<Half, Row, Column, float, Size<128, 128, 64>, Size<2, 2, 1>, Cooperative,
           cutlass::gemm::StreamKScheduler>(report, "TN stream-K 128x128x64, cluster 2x2",
                                            {200, 264, 520});
  return report.finish();
}
