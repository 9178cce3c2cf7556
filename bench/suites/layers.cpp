// mpbench layers, attention, norm, linear_xent, gated: layers, timed interleaved with cuDNN, with
// PyTorch and Liger, and with a copy of as many bytes if they have no products.
#include <list>
#include <memory>
#include <optional>

#include "bench/peers/cudnn.h"
#include "bench/rows/rows.h"
#include "comparison.h"
#include "layer_data.h"
#include "operation.h"
#include "peer_library.h"
#include "step_ops.h"
#include "suite.h"
#include "torch_peer.h"

namespace mpbench {
namespace {

bool is_loss(const LayerShape &shape) {
  return shape.form == "softmax_xent";
}

/// Values of --library of torch_transformer.py that have the layers of a suite.
std::vector<const char *> torch_libraries(const std::string &suite) {
  if (suite == "layers") return {};
  if (suite == "attention") return {"flash", "cudnn"};
  return {"torch", "liger"};
}

class LayerBench : BenchState {
 public:
  using BenchState::BenchState;

  void measure(const LayerShape &shape);

 private:
  /// Fills in the times, interleaved with the peers.
  void time(LayerRow &row, LayerData &data);
  /// Returns the layer by cuDNN, or by the chosen engines of its graph API; nothing if cuDNN has no
  /// counterpart or fails, which a note reports.
  std::vector<DnnCall> make_dnn(const LayerShape &shape, LayerData &data);
  /// Returns the fastest engine, and the fastest deterministic one if it is another.
  std::vector<DnnCall> fastest(const std::vector<DnnCall> &engines, LayerData &data) const;
  /// Starts the peers of a suite.
  void open_peers(const std::string &suite);
  /// Returns the peers that can run the problem; notes name the others.
  std::vector<TorchPeer *> prepare_torch(const LayerShape &shape);

  Stopwatch stopwatch_{machine_};
  bool is_open_ = false;
  std::unique_ptr<Cudnn> cudnn_;
  std::list<TorchPeer> torch_;
};

void LayerBench::open_peers(const std::string &suite) {
  if (std::exchange(is_open_, true) || machine_.on_host()) return;
  cudnn_ = open_peer<Cudnn>(options_.peers.cudnn && (suite == "attention" || suite == "layers"),
                            suite.c_str(), machine_, report_);
  if (!options_.peers.torch) return;
  for (const char *library : torch_libraries(suite))
    torch_.emplace_back(options_.home, "torch_transformer.py", machine_.cuda()->ordinal(),
                        std::vector<std::string>{"--library", library});
}

void LayerBench::measure(const LayerShape &shape) {
  const mp_dtype_t dtype = options_.dtype;
  LayerData data(machine_, shape, dtype);
  LayerRow row{.shape = shape,
               .figures = {.dtype = dtype,
                           .out_dtype = dtype,
                           .beta = 0,
                           .flop = shape.flop(),
                           .min_bytes = shape.min_bytes(dtype),
                           .kernel = kNotNamed,
                           .workspace_bytes = data.workspace_bytes(),
                           .sets = data.sets()}};
  if (machine_.is_counted())
    row.figures.counts = count_call(machine_, data.own());
  else
    time(row, data);
  report_.add(row);
}

void LayerBench::time(LayerRow &row, LayerData &data) {
  open_peers(row.shape.suite);
  Comparison comparison(data.own());
  if (row.figures.flop == 0)
    comparison.add(row.copy, "copy",
                   make_copy(machine_, static_cast<int64_t>(row.figures.min_bytes)));
  if (data.has_product()) comparison.add(row.product, "product", data.product());
  const std::vector<DnnCall> dnn = make_dnn(row.shape, data);
  const std::string name =
      dnn.empty()
          ? ""
          : name_of(*cudnn_) + (is_loss(row.shape) ? ", softmax without loss and gradient" : "");
  std::vector<std::optional<PeerResult>> by_dnn(dnn.size());
  for (size_t i = 0; i < dnn.size(); ++i)
    comparison.add(by_dnn[i], name, [&, i] { dnn[i].enqueue(data.next_set()); });
  const std::vector<TorchPeer *> torch = prepare_torch(row.shape);
  std::function<void()> torch_turns;
  if (!torch.empty())
    torch_turns = [&] {
      for (TorchPeer *peer : torch) peer->take_turn();
    };
  row.figures.timing = comparison.run(stopwatch_, pace_of(options_, machine_), torch_turns);
  for (size_t i = 0; i < dnn.size(); ++i) {
    PeerResult &result = row.peers.emplace_back(*by_dnn[i]);
    result.deterministic = dnn[i].is_deterministic;
    result.workspace_bytes = dnn[i].workspace_bytes;
    if (data.is_comparable())
      result.agrees = report_.add_agreement(
          name, row.shape.label(), data.difference_to([&] { dnn[i].enqueue(data.first_set()); }));
  }
  for (TorchPeer *peer : torch)
    if (const std::optional<PeerResult> result = peer->result()) row.peers.push_back(*result);
}

std::vector<DnnCall> LayerBench::make_dnn(const LayerShape &shape, LayerData &data) {
  // cuDNN's softmax writes as much as the loss with its gradient, and more than the loss alone.
  if (!cudnn_ || (is_loss(shape) && shape.is_forward)) return {};
  const bool has_engines = shape.suite != "layers";
  const std::vector<DnnCall> calls =
      report_.make_or_note("cuDNN reference for " + shape.label(), [&] {
        return has_engines ? cudnn_->attention_engines(shape, options_.dtype)
                           : std::vector{cudnn_->layer(shape, options_.dtype)};
      });
  return has_engines ? fastest(calls, data) : calls;
}

std::vector<DnnCall> LayerBench::fastest(const std::vector<DnnCall> &engines,
                                         LayerData &data) const {
  std::vector<size_t> chosen;
  for (const bool is_deterministic : {false, true}) {
    std::vector<size_t> indices;
    std::vector<Work> works;
    for (size_t i = 0; i < engines.size(); ++i) {
      if (is_deterministic && !*engines[i].is_deterministic) continue;
      indices.push_back(i);
      works.push_back([&, i] { engines[i].enqueue(data.next_set()); });
    }
    if (indices.empty()) continue;
    const size_t index = indices[fastest_choice(works, stopwatch_, machine_)];
    if (chosen.empty() || chosen.front() != index) chosen.push_back(index);
  }
  std::vector<DnnCall> calls;
  for (const size_t index : chosen) calls.push_back(engines[index]);
  return calls;
}

std::vector<TorchPeer *> LayerBench::prepare_torch(const LayerShape &shape) {
  std::vector<TorchPeer *> ready;
  for (TorchPeer &peer : torch_) {
    const std::string problem = shape.suite + ' ' + mp_dtype_name(options_.dtype);
    if (peer.prepare(problem + ' ' + shape.name(), shape.label(), shape.suite, report_))
      ready.push_back(&peer);
  }
  torch_.remove_if([](const TorchPeer &peer) { return peer.absent(); });
  return ready;
}

}  // namespace

Suite layer_suite(const char *name, const Options &options, const Machine &machine,
                  Report &report) {
  return make_suite_of_sets<LayerBench, LayerShape>(name, options, machine, report);
}

}  // namespace mpbench
