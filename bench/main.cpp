// mpbench: times mpcore.  How to run it and what its columns mean: bench/README.md.
#include <cstdio>
#include <exception>

#include "bench.h"

namespace {

constexpr int kExitMeasured = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

int run(const mpbench::Options &options) {
  const mpbench::Machine machine(options.device);
  mpbench::Report report(options, machine);
  bool is_right = true;
  if (options.gemm) is_right &= mpbench::bench_gemm(options, machine, report);
  if (options.conv) is_right &= mpbench::bench_conv(options, machine, report);
  if (options.step) is_right &= mpbench::bench_step(options, machine, report);
  report.finish();
  return is_right ? kExitMeasured : kExitFailed;
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
