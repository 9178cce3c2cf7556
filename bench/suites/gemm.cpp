// mpbench gemm: GEMMs of real networks, compared with cuBLASLt and with the rate of large squares
// in the same run.
#include "bench/rows/rows.h"
#include "bench/shapes/shapes.h"
#include "gemm_timer.h"
#include "suite.h"

namespace mpbench {
namespace {

class GemmBench : BenchState {
 public:
  using BenchState::BenchState;

  /// Measures the peak.
  void begin();
  void measure(const Shape &shape) {
    report_.add(GemmRow{.shape = shape, .figures = timer_.time(shape)});
  }

 private:
  GemmTimer timer_{options_, machine_, report_};
};

Shape square(int64_t edge) {
  return {.set = "square", .m = edge, .n = edge, .k = edge, .op_a = MP_OP_N, .op_b = MP_OP_T};
}

void GemmBench::begin() {
  if (machine_.is_counted() || options_.tunes) return;
  const std::vector<int64_t> edges =
      machine_.on_host() ? std::vector<int64_t>{512} : std::vector<int64_t>{4096, 8192};
  Pace pace = pace_of(options_, machine_);
  // The warm-up also brings the GPU to the clocks that its power limit allows.
  if (!machine_.on_host()) pace.warm_up_us = 1.5e6;

  Peak peak;
  for (const int64_t edge : edges) {
    const Shape shape = square(edge);
    const std::string during = edge == edges.back() ? "mp_gemm " + shape.name() : "";
    const Figures figures = timer_.time_bare(shape, pace, during);
    const auto raise = [&](double median_us, const std::string &who) {
      const double tflops = 1e-6 * shape.flop() / median_us;
      if (tflops > peak.tflops)
        peak = {.tflops = tflops,
                .from = who + ", " + shape.name() + ", " + mp_dtype_name(options_.dtype)};
    };
    raise(figures.timing.median_us, "mpcore");
    if (figures.peer && figures.peer->agrees == true)
      raise(figures.peer->median_us, figures.peer->name);
  }
  report_.set_peak(peak);
}

}  // namespace

Suite gemm_suite(const Options &options, const Machine &machine, Report &report) {
  return make_suite_of_sets<GemmBench, Shape>("gemm", options, machine, report);
}

}  // namespace mpbench
