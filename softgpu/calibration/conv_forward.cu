#include "cutlass_conv.h"

int main(int argc, char **argv) {
  using namespace cute;
  calibration::Report report(argc, argv);
  return calibration::run_all<cutlass::conv::Operator::kFprop, Shape<_64, _64, Shape<_64>>,
                              Shape<_128, _64, Shape<_64>>>(report, "forward");
}
