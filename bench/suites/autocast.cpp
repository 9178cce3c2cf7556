// mpbench autocast: host time of a graph rewrite, by number of nodes.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "bench/rows/rows.h"
#include "bench/timing/heap.h"
#include "suite.h"

namespace mpbench {
namespace {

/// Synthetic networks: nodes of a chain read the previous one, so that neighbors are adjacent in
/// memory; those of a random graph read any earlier one.
enum class GraphShape { kChain, kRandom };

const char *name_of(GraphShape shape) {
  return shape == GraphShape::kChain ? "chain" : "random";
}

constexpr const char *kMatMul = "MatMul", *kBiasAdd = "BiasAdd", *kRelu = "Relu";
constexpr const char *kLayer[] = {kMatMul, kBiasAdd, kRelu};
constexpr size_t kLayers = 4 * std::size(kLayer);
/// Twice four layers, each four followed by an operation that MP_AUTOCAST_PRESET_DEFAULT denies.
constexpr size_t kPlaces = 2 * (kLayers + 1);

/// Equal names have one address, as in a host that interns them.
const char *op_at(size_t place) {
  const size_t in_half = place % (kLayers + 1);
  if (in_half < kLayers) return kLayer[in_half % std::size(kLayer)];
  return place % kPlaces == kLayers ? "Softmax" : "Exp";
}

class AutocastGraph {
 public:
  AutocastGraph(GraphShape shape, int32_t nodes) {
    // A standard distribution would generate other numbers with another C++ library.
    std::mt19937_64 bits(1);
    const auto below = [&](size_t count) { return static_cast<size_t>(bits() % count); };
    const bool is_chain = shape == GraphShape::kChain;
    const int32_t data = add_tensor(-1, MP_TENSOR_ROLE_ACTIVATION);
    for (int32_t node = 0; node < nodes; ++node) {
      const auto before = [&] {
        if (node == 0) return data;
        return is_chain ? output_.back() : output_[below(output_.size())];
      };
      const char *const op = op_at(is_chain ? static_cast<size_t>(node) : below(kPlaces));
      std::vector<int32_t> inputs{before()};
      // Attention multiplies two activations; without such nodes a random graph would be a tree.
      const bool joins = !is_chain && op == kMatMul && below(2) == 0;
      if (joins)
        inputs.push_back(before());
      else if (op == kMatMul || op == kBiasAdd)
        inputs.push_back(add_tensor(-1, MP_TENSOR_ROLE_PARAMETER));
      add_node(op, inputs);
    }
    if (nodes > 0) tensor_role_[static_cast<size_t>(output_.back())] = MP_TENSOR_ROLE_OUTPUT;
  }

  /// Returns a view with pointers into this graph.
  mp_autocast_graph_t view() const {
    mp_autocast_graph_t graph;
    MP_INIT_STRUCT(&graph);
    graph.num_nodes = static_cast<uint32_t>(node_op_.size());
    graph.num_tensors = static_cast<uint32_t>(num_tensors());
    graph.node_op = node_op_.data();
    graph.input_offsets = input_offsets_.data();
    graph.input_tensor = input_tensor_.data();
    graph.tensor_producer = tensor_producer_.data();
    graph.tensor_dtype = tensor_dtype_.data();
    graph.tensor_role = tensor_role_.data();
    return graph;
  }
  int32_t num_tensors() const { return static_cast<int32_t>(tensor_dtype_.size()); }
  int32_t num_inputs() const { return static_cast<int32_t>(input_tensor_.size()); }

 private:
  /// Adds a tensor and returns its index.
  int32_t add_tensor(int32_t producer, mp_tensor_role_t role) {
    tensor_producer_.push_back(producer);
    tensor_dtype_.push_back(MP_FP32);
    tensor_role_.push_back(static_cast<uint8_t>(role));
    return num_tensors() - 1;
  }

  void add_node(const char *op, const std::vector<int32_t> &inputs) {
    const auto node = static_cast<int32_t>(node_op_.size());
    node_op_.push_back(op);
    input_tensor_.insert(input_tensor_.end(), inputs.begin(), inputs.end());
    input_offsets_.push_back(num_inputs());
    output_.push_back(add_tensor(node, MP_TENSOR_ROLE_ACTIVATION));
  }

  std::vector<const char *> node_op_;
  std::vector<int32_t> input_offsets_{0}, input_tensor_, tensor_producer_;
  std::vector<uint8_t> tensor_dtype_, tensor_role_;
  std::vector<int32_t> output_;  ///< output tensor of each node
};

/// Storage for the complete output of a rewrite.
class AutocastAnswer {
 public:
  explicit AutocastAnswer(const AutocastGraph &graph)
      : tensor_dtype_(static_cast<size_t>(graph.num_tensors())),
        node_dtype_(graph.view().num_nodes),
        node_why_(graph.view().num_nodes),
        input_cast_(static_cast<size_t>(graph.num_inputs())),
        node_because_(graph.view().num_nodes),
        casts_(static_cast<size_t>(graph.num_tensors())) {
    MP_INIT_STRUCT(&view_);
    view_.tensor_dtype = tensor_dtype_.data();
    view_.node_dtype = node_dtype_.data();
    view_.input_cast = input_cast_.data();
    view_.casts = casts_.data();
    view_.node_reason = node_why_.data();
    view_.node_cause = node_because_.data();
  }

  mp_autocast_result_t &view() { return view_; }

 private:
  std::vector<uint8_t> tensor_dtype_, node_dtype_, node_why_;
  std::vector<int32_t> input_cast_, node_because_;
  std::vector<mp_autocast_cast_t> casts_;
  mp_autocast_result_t view_;
};

constexpr int32_t kNodes[] = {100, 1000, 10'000, 100'000, 1'000'000};

// A rewrite of a million nodes exceeds a batch or a brief budget; least_batches still applies.
constexpr Pace kPace{.warm_up_us = 0, .batch_us = 1e3, .budget_us = 1e6, .least_batches = 21};
constexpr Pace kBriefPace{.warm_up_us = 0, .batch_us = 1e3, .budget_us = 5e4, .least_batches = 5};
constexpr double kMaxCalls = 1000;

const Pace &pace_with(const Options &options) {
  return options.is_brief() ? kBriefPace : kPace;
}

struct AutocastItem {
  GraphShape shape;
  int32_t nodes;

  std::string label() const { return text("autocast %s, %d nodes", name_of(shape), nodes); }
  std::string kind() const { return name_of(shape); }
  double effort_flop() const { return 0; }
};

std::vector<AutocastItem> all_items() {
  std::vector<AutocastItem> items;
  for (const GraphShape shape : {GraphShape::kChain, GraphShape::kRandom})
    for (const int32_t nodes : kNodes) items.push_back({shape, nodes});
  return items;
}

/// Times a function that runs on the host only, without stream synchronization.
Timing time_function(const std::function<void()> &call, const Pace &pace) {
  const auto us_of = [&](int64_t calls) {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < calls; ++i) call();
    const std::chrono::duration<double, std::micro> all = std::chrono::steady_clock::now() - start;
    return all.count() / static_cast<double>(calls);
  };
  call();  // touches its memory for the first time
  const double one_us = us_of(1);
  const auto calls =
      static_cast<int64_t>(std::clamp(std::round(pace.batch_us / one_us), 1.0, kMaxCalls));
  const auto affordable =
      static_cast<int64_t>(pace.budget_us / (one_us * static_cast<double>(calls)));
  const int64_t batches = std::max(pace.least_batches, affordable);

  std::vector<double> call_us;
  for (int64_t batch = 0; batch < batches; ++batch) call_us.push_back(us_of(calls));
  return timing_of(std::move(call_us), calls);
}

using Policy = std::unique_ptr<mp_autocast, mptools::Destroyer<mp_autocast_destroy>>;

/// Policy of a host that requests fp16, without environment overrides.
Policy make_policy() {
  mp_autocast_config_t config = mp_autocast_config_default(MP_FP16);
  config.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT;
  mp_autocast_t policy = nullptr;
  check(mp_autocast_create(&policy, &config));
  return Policy(policy);
}

class AutocastBench : BenchState {
 public:
  using BenchState::BenchState;

  void measure(const AutocastItem &item) const {
    const AutocastGraph graph(item.shape, item.nodes);
    const mp_autocast_graph_t view = graph.view();
    AutocastAnswer answer(graph);
    mp_autocast_result_t &result = answer.view();
    // The rewrite has no context, so no activation condition applies and no device is involved.
    const auto rewrite = [&] {
      check(mp_autocast_rewrite(policy_.get(), nullptr, &view, &result));
    };
    const Timing timing = time_function(rewrite, pace_with(options_));
    const int64_t heap_bytes = peak_heap_bytes(rewrite);
    if (heap_bytes < item.nodes)
      throw std::runtime_error("libmpcore.so uses a different operator new");
    report_.add(AutocastRow{.graph = name_of(item.shape),
                            .nodes = item.nodes,
                            .tensors = graph.num_tensors(),
                            .low_nodes = result.num_low_nodes,
                            .casts = result.num_casts,
                            .heap_bytes = heap_bytes,
                            .timing = timing});
  }

 private:
  Policy policy_ = make_policy();
};

}  // namespace

Suite autocast_suite(const Options &options, const Machine &machine, Report &report) {
  const Pace &pace = pace_with(options);
  const auto cost_us = [&pace](const AutocastItem &item) {
    constexpr double kUsPerNode = 0.2;
    return std::max(pace.budget_us, static_cast<double>(pace.least_batches) * kUsPerNode *
                                        static_cast<double>(item.nodes));
  };
  return make_suite<AutocastBench>("autocast", selected(all_items(), options, machine.on_host()),
                                   cost_us, options, machine, report);
}

}  // namespace mpbench
