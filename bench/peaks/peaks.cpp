#include "peaks.h"

#include <algorithm>
#include <stdexcept>

#include "bench/options.h"
#include "bench/rows/report.h"
#include "bench/suites/step_ops.h"
#include "kernels.h"

namespace mpbench {
namespace {

constexpr double kGiga = 1e-9;
constexpr double kTera = 1e-12;
constexpr const char *kOnHost = "not available on the host target";

class PeakBench {
 public:
  PeakBench(const Options &options, const Machine &machine, Report &report);

  void measure_copy();
  void measure_read();
  void measure_mma();
  void measure_wgmma();

 private:
  /// @param reason  why the rate is not measured; empty = it is measured
  /// @param work    creates the work of one call
  void measure(const MachineRate &rate, std::string reason, const std::function<Work()> &work);
  /// Random 16-bit values in [-1, 1].
  Buffer random_halves(int64_t count);
  Work launching(std::function<const char *(const peaks::Gpu &, float *sink)> enqueue);

  const Machine &machine_;
  Report &report_;
  Stopwatch stopwatch_;
  Pace pace_;
};

PeakBench::PeakBench(const Options &options, const Machine &machine, Report &report)
    : machine_(machine), report_(report), stopwatch_(machine), pace_(pace_of(options, machine)) {
  // A GPU takes this long to lower its clocks to its power limit.
  if (!machine.on_host() && !options.is_brief()) pace_.warm_up_us = 1e6;
}

void PeakBench::measure(const MachineRate &rate, std::string reason,
                        const std::function<Work()> &work) {
  MachineRate measured = rate;
  if (reason.empty()) {
    try {
      measured.timing = stopwatch_.time({work()}, pace_).front();
    } catch (const std::exception &error) {
      reason = error.what();
    }
  }
  if (!measured.timing) measured.how = reason;
  report_.add(measured);
}

Buffer PeakBench::random_halves(int64_t count) {
  Buffer values = make_buffer(machine_.context(), count, MP_FP16);
  RandomPool(machine_, MP_FP16).fill(values.data(), count);
  machine_.synchronize();
  return values;
}

Work PeakBench::launching(std::function<const char *(const peaks::Gpu &, float *sink)> enqueue) {
  const peaks::Gpu gpu{.ordinal = machine_.cuda()->ordinal(),
                       .num_sms = machine_.info().num_sms,
                       .stream = machine_.stream()};
  const auto sink = std::make_shared<Buffer>(
      make_buffer(machine_.context(), peaks::sink_elems(gpu.num_sms), MP_FP32));
  return [=, enqueue = std::move(enqueue)] {
    if (const char *const error = enqueue(gpu, sink->as<float>())) throw std::runtime_error(error);
  };
}

void PeakBench::measure_copy() {
  const int64_t bytes = machine_.on_host() ? int64_t{64} << 20 : int64_t{4} << 30;
  measure({.name = "copy",
           .unit = "GB/s",
           .how = "device-to-device copy; bytes read plus bytes written",
           .amount = kGiga * static_cast<double>(bytes)},
          "", [&] { return make_copy(machine_, bytes); });
}

void PeakBench::measure_read() {
  if (machine_.on_host()) return measure({.name = "read", .unit = "GB/s"}, kOnHost, nullptr);
  // Large enough that data left in L2 by the last pass is negligible.
  const int64_t most_bytes = std::min(int64_t{4} << 30, machine_.cuda()->free_bytes() / 4);
  const int64_t pieces = most_bytes / peaks::kReadPieceBytes;
  const int64_t bytes = pieces * peaks::kReadPieceBytes;
  measure({.name = "read",
           .unit = "GB/s",
           .how = "read-only kernel, 16 bytes per load",
           .amount = kGiga * static_cast<double>(bytes)},
          "", [&] {
            const auto data = std::make_shared<Buffer>(random_halves(bytes / 2));
            return launching([=](const peaks::Gpu &gpu, float *sink) {
              return peaks::enqueue_read(gpu, data->data(), pieces, sink);
            });
          });
}

void PeakBench::measure_mma() {
  measure({.name = "mma.sync",
           .unit = "TFLOP/s",
           .how = "m16n8k16 fp16, fp32 accumulation, random operands in registers",
           .amount = kTera * peaks::mma_flop(machine_.info().num_sms)},
          machine_.on_host() ? kOnHost : "", [&] {
            const auto operands = std::make_shared<Buffer>(random_halves(peaks::kMmaOperandElems));
            return launching([=](const peaks::Gpu &gpu, float *sink) {
              return peaks::enqueue_mma(gpu, operands->data(), sink);
            });
          });
}

void PeakBench::measure_wgmma() {
  constexpr int kHopper = 90;
  const char *const unfit = machine_.info().arch == kHopper ? "" : "requires sm_90a";
  measure({.name = "wgmma",
           .unit = "TFLOP/s",
           .how = "m64n256k16 fp16, fp32 accumulation, random operands in shared memory",
           .amount = kTera * peaks::wgmma_flop(machine_.info().num_sms)},
          machine_.on_host() ? kOnHost : unfit, [&] {
            const auto operands =
                std::make_shared<Buffer>(random_halves(peaks::kWgmmaOperandElems));
            return launching([=](const peaks::Gpu &gpu, float *sink) {
              return peaks::enqueue_wgmma(gpu, operands->data(), sink);
            });
          });
}

}  // namespace

void measure_peaks(const Options &options, const Machine &machine, Report &report) {
  PeakBench bench(options, machine, report);
  bench.measure_copy();
  bench.measure_read();
  bench.measure_mma();
  bench.measure_wgmma();
}

}  // namespace mpbench
