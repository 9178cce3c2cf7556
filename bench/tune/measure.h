// Times of all kernels that can run a problem, and the problem in the form that selection uses.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/shapes/shapes.h"
#include "bench/timing/machine.h"
#include "bench/timing/timing.h"
#include "fit.h"
#include "options.h"

namespace mptune {

constexpr mp_dtype_t kDtype = MP_FP16;  // bf16 has the same rates
constexpr bool kAligned = true;         // like all memory of mp_malloc

/// One kernel on one problem.
struct Run {
  std::string name;
  Sample sample;
};

struct Measured {
  mpbench::Shape shape;
  std::vector<Run> runs = {};  ///< the library's choice first
};

/// @throws std::runtime_error if mptune has no such kernel, or the kernel cannot run the problem.
Run run_of(const mpbench::Shape &shape, const mp::Device &device, const std::string &kernel,
           double us);

/// Device and build that measured the times.
struct Origin {
  std::string name, driver, date;
  mp::Device device = {};  ///< in the form that selection uses
};

struct Measurements {
  Origin origin;
  std::vector<Measured> measured = {};
};

/// Reads the measurements that an earlier mptune wrote with --json, on this device or another one.
/// @throws std::runtime_error if the file is missing, is not from mptune, or has an unknown kernel.
Measurements read_measurements(const std::filesystem::path &path);

/// Device with the properties that selection reads.
mp::Device make_device(mp_target_t target, int32_t arch, int32_t num_sms, int64_t smem_per_block);

/// Returns the problems that the options select.
/// @throws std::runtime_error if a file is missing or malformed.
std::vector<mpbench::Shape> shapes_to_measure(const Options &options,
                                              const mpbench::Machine &machine);

Origin origin_of(const mpbench::Machine &machine);

/// Opens the device; on the host target with a single worker, so that the thread's CPU clock covers
/// all work.
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
