// Every kernel that can run a problem, timed; and the problem as selection sees it.
#pragma once

#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/shapes.h"
#include "bench/timing.h"
#include "fit.h"

namespace mptune {

/// One kernel on one problem.
struct Run {
  std::string name;
  Sample sample;
};

struct Measured {
  mpbench::Shape shape;
  std::vector<Run> runs;  ///< the library's choice first
};

/// What selection knows of the machine.
mp::Device device_of(const mpbench::Machine &machine);

/// On the host target, one of its workers, so that its CPU clock sees all that is done.
mpbench::Machine open_machine(int32_t device);

class Measurer {
 public:
  explicit Measurer(const mpbench::Machine &machine);
  Measured measure(const mpbench::Shape &shape);

 private:
  std::vector<double> times_us(const std::vector<mpbench::Work> &works) const;

  const mpbench::Machine &machine_;
  const mp::Device device_;
  mpbench::Stopwatch stopwatch_;
  mpbench::RandomPool pool_;
};

}  // namespace mptune
