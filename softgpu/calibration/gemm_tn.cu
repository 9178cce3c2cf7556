// GEMMs with row-major A and column-major B.
#include "cutlass_gemm.h"

int main(int argc, char **argv) {
  using namespace calibration;
  Report report(argc, argv);
  run_cooperative_and_ping_pong<Row, Column>(report, "TN");
  run_gemm<Half, Row, Column, float, Size<64, 64, 64>, Size<2, 2, 1>, Plain>(
      report, "TN plain 64x64x64, cluster 2x2, fp32", {200, 136, 136});
  run_gemm<Half, Row, Column, Half, Size<128, 256, 64>, Size<2, 1, 1>, Cooperative>(
      report, "TN cooperative 128x256x64, cluster 2x1, fp16", {296, 328, 200});
  return report.finish();
}
