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

/// Random 16-bit values in [-1, 1].
std::shared_ptr<Buffer> random_halves(const Machine &machine, int64_t count) {
  auto values = std::make_shared<Buffer>(make_buffer(machine.context(), count, MP_FP16));
  RandomPool(machine, MP_FP16).fill(values->data(), count);
  machine.synchronize();
  return values;
}

/// @param enqueue  (gpu, sink); returns NULL or an error
template <typename Enqueue>
Work launching(const Machine &machine, Enqueue enqueue) {
  const peaks::Gpu gpu{.ordinal = machine.cuda()->ordinal(),
                       .num_sms = machine.info().num_sms,
                       .stream = machine.stream()};
  const auto sink = std::make_shared<Buffer>(
      make_buffer(machine.context(), peaks::sink_elems(gpu.num_sms), MP_FP32));
  return [=] {
    if (const char *const error = enqueue(gpu, sink->as<float>())) throw std::runtime_error(error);
  };
}

/// A peak, and a function that creates the work of one call.
struct PeakCase {
  MachineRate rate;
  std::function<Work()> make;
  const char *gap = nullptr;  ///< reason if this machine cannot measure it
};

std::vector<PeakCase> peak_cases(const Machine &machine) {
  const int64_t copy_bytes = machine.on_host() ? int64_t{64} << 20 : int64_t{4} << 30;
  // Large enough that data left in L2 by the last pass is negligible.
  const int64_t pieces =
      machine.on_host()
          ? 0
          : std::min(copy_bytes, machine.cuda()->free_bytes() / 4) / peaks::kReadPieceBytes;
  const int64_t read_bytes = pieces * peaks::kReadPieceBytes;
  const int num_sms = machine.info().num_sms;
  constexpr int kHopper = 90;
  const char *const on_host = machine.on_host() ? "not available on the host target" : nullptr;
  const char *const unfit = machine.info().arch == kHopper ? nullptr : "requires sm_90a";
  return {
      {{.name = "copy",
        .unit = "GB/s",
        .how = "device-to-device copy; bytes read plus bytes written",
        .amount = kGiga * static_cast<double>(copy_bytes)},
       [&machine, copy_bytes] { return make_copy(machine, copy_bytes); }},
      {{.name = "read",
        .unit = "GB/s",
        .how = "read-only kernel, 16 bytes per load",
        .amount = kGiga * static_cast<double>(read_bytes)},
       [&machine, read_bytes, pieces] {
         return launching(machine, [data = random_halves(machine, read_bytes / 2), pieces](
                                       const peaks::Gpu &gpu, float *sink) {
           return peaks::enqueue_read(gpu, data->data(), pieces, sink);
         });
       },
       on_host},
      {{.name = "mma.sync",
        .unit = "TFLOP/s",
        .how = "m16n8k16 fp16, fp32 accumulation, random operands in registers",
        .amount = kTera * peaks::mma_flop(num_sms)},
       [&machine] {
         return launching(machine, [operands = random_halves(machine, peaks::kMmaOperandElems)](
                                       const peaks::Gpu &gpu, float *sink) {
           return peaks::enqueue_mma(gpu, operands->data(), sink);
         });
       },
       on_host},
      {{.name = "wgmma",
        .unit = "TFLOP/s",
        .how = "m64n256k16 fp16, fp32 accumulation, random operands in shared memory",
        .amount = kTera * peaks::wgmma_flop(num_sms)},
       [&machine] {
         return launching(machine, [operands = random_halves(machine, peaks::kWgmmaOperandElems)](
                                       const peaks::Gpu &gpu, float *sink) {
           return peaks::enqueue_wgmma(gpu, operands->data(), sink);
         });
       },
       machine.on_host() ? on_host : unfit},
  };
}

}  // namespace

void measure_peaks(const Options &options, const Machine &machine, Report &report) {
  const Stopwatch stopwatch(machine);
  Pace pace = pace_of(options, machine);
  // A GPU takes this long to lower its clocks to its power limit.
  if (!machine.on_host() && !options.is_brief()) pace.warm_up_us = 1e6;
  for (const auto &[rate, make, gap] : peak_cases(machine)) {
    MachineRate measured = rate;
    try {
      if (gap != nullptr) throw std::runtime_error(gap);
      measured.timing = stopwatch.time({make()}, pace).front();
    } catch (const std::exception &error) {
      measured.how = error.what();
    }
    report.add(measured);
  }
}

}  // namespace mpbench
