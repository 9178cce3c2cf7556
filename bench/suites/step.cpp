// mpbench step: the optimizer step and its parts.  All are memory-bound, so each is timed
// interleaved with a copy of as many bytes.
#include <algorithm>
#include <functional>

#include "bench/rows/rows.h"
#include "layouts.h"
#include "step_ops.h"
#include "suite.h"
#include "torch_peers.h"

namespace mpbench {
namespace {

// Above this size the rate of a copy is constant.
constexpr int64_t kMaxCopyBytes = int64_t{8} << 30;

// PyTorch needs minutes to create more tensors than this, over all data sets.
constexpr int64_t kMaxPeerTensors = 50'000;
// Each tensor is aligned separately in each of the five lists of a step.
constexpr int64_t kMaxGapBytes = 5 * kAlignment;

/// Number of tensors.
int64_t count_of(const Layout &layout) {
  return static_cast<int64_t>(layout.numel.size());
}

struct StepItem {
  StepOp op;
  Layout layout;

  std::string label() const {
    return text("%s, %s, %lld parameters", op.name, layout.name.c_str(),
                static_cast<long long>(layout.parameters()));
  }
  std::string kind() const {
    return op.name + std::string(count_of(layout) > 1 ? " of a list" : "");
  }
  /// Operations that take about as long as moving the bytes.
  double effort_flop() const {
    return 10.0 * static_cast<double>(op.bytes_per_parameter * layout.parameters());
  }
};

std::vector<StepItem> step_items(const Options &options, const Machine &machine) {
  std::vector<StepItem> items;
  for (const StepOp &op : step_ops())
    for (const Layout &layout : step_layouts(op.layouts, machine.on_host()))
      items.push_back({op, layout});
  return selected(std::move(items), options, machine.on_host());
}

class StepBench : BenchState {
 public:
  using BenchState::BenchState;

  /// Reports the clocks under load.
  void begin() const;
  void measure(const StepItem &item);

 private:
  struct Plan {
    int64_t sets, copy_bytes, memory_bytes;
  };

  Plan plan(const StepOp &op, const Layout &layout) const;
  /// Fills in the times, interleaved with a copy and the peers.
  void time(StepRow &row, const StepItem &item, const Work &work);
  /// Returns a function that times a batch of the peers; NULL if there are none.  Called after
  /// mpcore has allocated, so that the peers rather than mpcore run out of memory.
  std::function<void()> prepare_peers(const StepItem &item, int64_t sets);

  TorchPeers peers_{options_, machine_, "torch_step.py"};
  Stopwatch stopwatch_{machine_};
  Pools pools_{RandomPool(machine_, MP_FP16), RandomPool(machine_, MP_FP32)};
};

void StepBench::begin() const {
  if (machine_.on_host() || machine_.is_counted()) return;
  constexpr int64_t kCopyBytes = int64_t{1} << 30;
  const Work copy = make_copy(machine_, kCopyBytes);
  const Timing timing = stopwatch_.time({copy}, brief_pace(machine_)).front();
  report_.add(gpu_state_under(machine_, copy, timing, "a copy on the device"));
}

StepBench::Plan StepBench::plan(const StepOp &op, const Layout &layout) const {
  const int64_t parameters = layout.parameters();
  const int64_t set_bytes = op.storage_per_parameter * parameters;
  const int64_t sets = machine_.sets_beyond_l2(set_bytes);
  const int64_t copy_bytes = std::min(op.bytes_per_parameter * parameters, kMaxCopyBytes);
  const int64_t copy_sets = machine_.sets_beyond_l2(copy_bytes);
  return {.sets = sets,
          .copy_bytes = copy_bytes,
          .memory_bytes =
              sets * (set_bytes + kMaxGapBytes * count_of(layout)) + copy_sets * copy_bytes};
}

void StepBench::measure(const StepItem &item) {
  const auto &[op, layout] = item;
  const Plan plan = this->plan(op, layout);
  if (!machine_.on_host() && plan.memory_bytes > machine_.cuda()->free_bytes() / 10 * 9) {
    report_.add_note(item.label() + text(" was not measured: requires %.0f GB of device memory.",
                                         1e-9 * static_cast<double>(plan.memory_bytes)));
    return;
  }
  const Work work = make_rotating(op, machine_, pools_, layout, plan.sets);
  StepRow row{.op = op.name,
              .layout = layout.name,
              .tensors = count_of(layout),
              .parameters = layout.parameters(),
              .bytes_per_parameter = op.bytes_per_parameter,
              .sets = plan.sets,
              .copy = {static_cast<double>(plan.copy_bytes)}};
  if (machine_.is_counted())
    row.counts = count_call(machine_, work);
  else
    time(row, item, work);
  report_.add(row);
}

void StepBench::time(StepRow &row, const StepItem &item, const Work &work) {
  const Work copy = make_copy(machine_, static_cast<int64_t>(row.copy.bytes));
  const std::function<void()> peer_turns = prepare_peers(item, row.sets);
  const std::vector<Timing> timings =
      stopwatch_.time({work, copy}, pace_of(options_, machine_), peer_turns);
  row.timing = timings[0];
  row.copy.timing = timings[1];
  if (peer_turns) row.peers = peers_.results();
}

std::function<void()> StepBench::prepare_peers(const StepItem &item, int64_t sets) {
  if (!item.op.has_torch_peer || !peers_.exist()) return nullptr;
  const int64_t tensors = sets * count_of(item.layout);
  if (tensors > kMaxPeerTensors) {
    report_.add_note(item.label() +
                     text(": no torch reference, because it would need %lld tensors.",
                          static_cast<long long>(tensors)));
    return nullptr;
  }
  return peers_.prepare(item.layout.command_line_text(), item.label(), item.op.name, report_);
}

}  // namespace

Suite step_suite(const Options &options, const Machine &machine, Report &report) {
  return make_suite<StepBench>("step", step_items(options, machine), options, machine, report);
}

}  // namespace mpbench
