// Every kernel that can run a problem, timed; and the problem as selection sees it.
#pragma once

#include <string>
#include <vector>

#include "bench/shapes/shapes.h"
#include "bench/timing/machine.h"
#include "bench/timing/timing.h"
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

/// @throws std::runtime_error where mptune does not know the kernel, or not that it runs this.
Run run_of(const mpbench::Shape &shape, const mp::Device &device, const std::string &kernel,
           double us);

/// Where times are from.
struct Origin {
  std::string name, driver, date;
  mp::Device device;  ///< what selection knows of it
};

struct Measurements {
  Origin origin;
  std::vector<Measured> measured;
};

Origin origin_of(const mpbench::Machine &machine);

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
