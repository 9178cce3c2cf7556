// GEMMs with both operands column major or both row major.
#include "cutlass_gemm.h"

int main(int argc, char **argv) {
  using namespace calibration;
  Report report(argc, argv);
  run_cooperative_and_ping_pong<Column, Column>(report, "NN");
  run_cooperative_and_ping_pong<Row, Row>(report, "TT");
  return report.finish();
}
