// mpbench: times mpcore.  How to run it and what its columns mean: bench/README.md.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bench/common.h"
#include "bench/peaks/peaks.h"
#include "bench/suites/suite.h"
#include "mpcore.hpp"
#include "support/program.h"

namespace {

constexpr int kExitMeasured = 0;
constexpr int kExitFailed = 1;

constexpr struct {
  const char *name;
  mpbench::SuiteMaker *make;
  bool can_be_counted = true;  ///< others are about the host or links between devices
} kSuites[] = {
    {"gemm", mpbench::gemm_suite},
    {"epilogue", mpbench::epilogue_suite},
    {"batched", mpbench::batched_suite},
    {"rnn", mpbench::rnn_suite},
    {"conv", mpbench::conv_suite},
    {"layers", [](auto &...all) { return mpbench::layer_suite("layers", all...); }},
    {"attention", [](auto &...all) { return mpbench::layer_suite("attention", all...); }},
    {"norm", [](auto &...all) { return mpbench::layer_suite("norm", all...); }},
    {"linear_xent", [](auto &...all) { return mpbench::layer_suite("linear_xent", all...); }},
    {"gated", [](auto &...all) { return mpbench::layer_suite("gated", all...); }},
    {"step", mpbench::step_suite},
    {"calls", mpbench::calls_suite, false},
    {"startup", mpbench::startup_suite, false},
    {"graph", mpbench::graph_suite, false},
};

/// File of --tune: what it contained, and the kernels that this process has measured.
class FastestKernels {
 public:
  explicit FastestKernels(const std::filesystem::path &path) : path_(path) {
    std::ostringstream text;
    if (std::filesystem::exists(path)) text << std::ifstream(path).rdbuf();
    before_ = text.str();
    if (!before_.empty() && !before_.ends_with('\n')) before_ += '\n';
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
    save();
  }
  void save() const { mptools::write_file(path_, before_ + mp::tuning_text()); }
  std::string summary() const {
    const std::string lines = mp::tuning_text();
    return "Measured kernels, appended to " + path_.string() + ": " +
           std::to_string(std::count(lines.begin(), lines.end(), '\n')) + ".";
  }

 private:
  const std::filesystem::path path_;
  std::string before_;
};

/// Runs the suites while their calls measure kernels.
void tune(const mpbench::Options &options, const mpbench::Machine &machine,
          const std::vector<mpbench::Suite> &suites, mpbench::Report &report) {
  constexpr int32_t kKernels = 8;
  const FastestKernels fastest(options.out);
  mpbench::check(mp_tuning_measure(machine.context(), kKernels));
  mpbench::measure(suites, report, [&] { fastest.save(); });
  report.add_note(fastest.summary());
}

int run(mpbench::Options options) {
  const mpbench::Machine machine(options.device);
  if (!options.once.empty()) {
    mpbench::call_once(options, machine);
    return kExitMeasured;
  }
  options.counted = machine.is_counted();
  if (options.counted && options.tunes)
    throw std::runtime_error("--tune: the software device measures no times");
  options.quick = options.is_quick(machine.on_host());
  if (options.counted) options.peers = {.cublaslt = false, .cudnn = false, .torch = false};
  mpbench::Report report(options, machine);
  std::vector<mpbench::Suite> suites;
  bool is_empty = true;
  for (const auto &[name, make, can_be_counted] : kSuites) {
    if (!options.has_suite(name)) continue;
    if (options.counted && !can_be_counted) {
      report.add_note(std::string(name) +
                      ": skipped, because the software device has no counters for it.");
      continue;
    }
    suites.push_back(make(options, machine, report));
    is_empty &= suites.back().jobs.empty();
  }
  if (is_empty) throw std::runtime_error("nothing matches --set and --filter");
  if (options.tunes) {
    tune(options, machine, suites, report);
  } else {
    if (!options.counted) mpbench::measure_peaks(options, machine, report);
    mpbench::measure(suites, report);
  }
  report.finish();
  return report.has_failed() ? kExitFailed : kExitMeasured;
}

}  // namespace

int main(int argc, char **argv) {
  return mptools::run_program("mpbench", [&] { return run(mpbench::parse_options(argc, argv)); });
}
