// Times GEMMs together with cuBLASLt.
#pragma once

#include <optional>

#include "bench/peers/cublaslt.h"
#include "bench/shapes/shapes.h"
#include "problem_timer.h"

namespace mpbench {

class GemmTimer {
 public:
  GemmTimer(const Options &options, const Machine &machine, Report &report);

  /// Times a shape as the options specify.
  Figures time(const Shape &shape) { return timer_.time(comparand(shape, options_.out_dtype)); }
  /// Times a shape with D in the input type, and its peer; no FP32 baselines.
  Figures time_bare(const Shape &shape, const Pace &pace, const std::string &during) {
    return timer_.time_bare(comparand(shape, MP_DTYPE_NONE), pace, during);
  }

 private:
  Comparand comparand(const Shape &shape, mp_dtype_t out_dtype) const;

  const Options &options_;
  const Machine &machine_;
  ProblemTimer timer_;
  std::optional<CublasLt> library_;
};

}  // namespace mpbench
