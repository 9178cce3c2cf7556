// mpbench calls: host time of each call of a training step.
#include <optional>

#include "bench/rows/rows.h"
#include "call_cases.h"
#include "peer_library.h"
#include "suite.h"

namespace mpbench {
namespace {

class CallBench : BenchState {
 public:
  using BenchState::BenchState;

  void begin() const;
  void measure(const CallCase &call);

 private:
  /// Empty if the call has no peer.
  std::optional<Work> make_peer(const CallCase &call);

  Stopwatch stopwatch_{machine_};
  Pools pools_{RandomPool(machine_, MP_FP16), RandomPool(machine_, MP_FP32)};
  std::unique_ptr<CublasLt> library_ =
      open_peer<CublasLt>(options_.peers.cublaslt, "calls", machine_, report_);
};

void CallBench::begin() const {
  if (machine_.on_host())
    report_.add_note(
        "calls: on the host target only calls that enqueue no work are measured; other calls "
        "execute the kernels themselves.");
}

void CallBench::measure(const CallCase &call) {
  std::vector<Work> works = {call.make(machine_, pools_)};
  if (std::optional<Work> peer = make_peer(call)) works.push_back(std::move(*peer));
  const std::vector<Timing> timings = stopwatch_.time_host(works);
  CallRow row{.call = call.call, .problem = call.problem, .timing = timings[0]};
  if (works.size() > 1) row.peer = peer_result(name_of(*library_), timings[1]);
  report_.add(row);
}

std::optional<Work> CallBench::make_peer(const CallCase &call) {
  if (!library_ || !call.make_peer) return std::nullopt;
  return report_.make_or_note("reference for " + call.label(), [&]() -> std::optional<Work> {
    return call.make_peer(machine_, *library_);
  });
}

}  // namespace

Suite calls_suite(const Options &options, const Machine &machine, Report &report) {
  std::vector<CallCase> cases = call_cases();
  if (machine.on_host()) std::erase_if(cases, [](const CallCase &call) { return call.enqueues; });
  const auto cost_us = [&](const CallCase &) { return machine.on_host() ? 1e4 : 1e5; };
  return make_suite<CallBench>("calls", selected(std::move(cases), options, machine.on_host()),
                               cost_us, options, machine, report);
}

}  // namespace mpbench
