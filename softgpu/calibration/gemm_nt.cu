// GEMMs with column-major A and row-major B.
#include "cutlass_gemm.h"

int main(int argc, char **argv) {
  using namespace calibration;
  Report report(argc, argv);
  run_cooperative_and_ping_pong<Column, Row>(report, "NT");
  run_gemm<Half, Column, Row, float, Size<64, 128, 64>, Size<1, 2, 1>, PingPong>(
      report, "NT ping-pong 64x128x64, cluster 1x2, fp32", {136, 392, 136});
  run_gemm<Half, Column, Row, Half, Size<128, 256, 64>, Size<2, 1, 1>, Cooperative>(
      report, "NT cooperative 128x256x64, cluster 2x1, fp16", {296, 328, 200});
  return report.finish();
}
