// mpbench: times mpcore.  How to run it and what its columns mean: bench/README.md.
#include <cstdio>
#include <exception>

#include "bench.h"
#include "bench/peaks/peaks.h"
#include "bench/suites/once.h"

namespace {

constexpr int kExitMeasured = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

using FamilyMaker = mpbench::Family (*)(const mpbench::Options &, const mpbench::Machine &,
                                        mpbench::Report &);

constexpr struct {
  const char *name;
  FamilyMaker make;
} kFamilies[] = {
    {"gemm", mpbench::gemm_family},           {"rnn", mpbench::rnn_family},
    {"conv", mpbench::conv_family},           {"step", mpbench::step_family},
    {"calls", mpbench::calls_family},         {"startup", mpbench::startup_family},
    {"allreduce", mpbench::allreduce_family},
};

int run(mpbench::Options options) {
  const mpbench::Machine machine(options.device);
  if (!options.once.empty()) {
    mpbench::call_once(options, machine);
    return kExitMeasured;
  }
  options.quick = options.is_quick(machine.on_host());
  mpbench::Report report(options, machine);
  std::vector<mpbench::Family> families;
  bool is_empty = true;
  for (const auto &[name, make] : kFamilies) {
    if (!options.has_family(name)) continue;
    families.push_back(make(options, machine, report));
    is_empty &= families.back().jobs.empty();
  }
  if (is_empty) throw std::runtime_error("nothing matches --set and --filter");
  mpbench::measure_peaks(options, machine, report);
  mpbench::measure(families, report);
  report.finish();
  return report.has_failed() ? kExitFailed : kExitMeasured;
}

}  // namespace

int main(int argc, char **argv) {
  try {
    const mpbench::Options options = mpbench::parse_options(argc, argv);
    if (!options.help) return run(options);
    std::fputs(mpbench::usage(), stdout);
    return kExitMeasured;
  } catch (const mpbench::UsageError &error) {
    std::fprintf(stderr, "mpbench: %s\n", error.what());
    return kExitUsage;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "mpbench: %s\n", error.what());
    return kExitFailed;
  }
}
