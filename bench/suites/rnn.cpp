// mpbench rnn: the GEMMs of recurrent layers, without what the cells do between them.
#include "bench/rows/rnn_row.h"
#include "bench/shapes/rnn_shapes.h"
#include "gemm_timer.h"
#include "suite.h"
#include "suites.h"

namespace mpbench {
namespace {

class RnnBench {
 public:
  RnnBench(const Options &options, const Machine &machine, Report &report)
      : report_(report), timer_(options, machine, report) {}

  void measure(const RnnShape &shape) {
    report_.add(RnnRow{.shape = shape, .figures = timer_.time(shape.gemms())});
  }

 private:
  Report &report_;
  GemmTimer timer_;
};

}  // namespace

Suite rnn_suite(const Options &options, const Machine &machine, Report &report) {
  const auto cost_us = [&](const RnnShape &shape) {
    return measuring_us(machine, pace_of(options, machine), shape.effort_flop());
  };
  return make_suite<RnnBench>("rnn", read_rnn_shapes(options, machine.on_host()), cost_us, options,
                              machine, report);
}

}  // namespace mpbench
