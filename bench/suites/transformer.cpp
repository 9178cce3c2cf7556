// mpbench attention, norm, linear_xent, gated: layers of transformers, timed interleaved with
// cuDNN's attention and with the same layers of PyTorch and Liger.
#include <list>
#include <memory>
#include <optional>

#include "bench/peers/cudnn_graph.h"
#include "bench/rows/rows.h"
#include "comparison.h"
#include "operation.h"
#include "peer_library.h"
#include "step_ops.h"
#include "suite.h"
#include "torch_peer.h"
#include "transformer_data.h"

namespace mpbench {
namespace {

/// Values of --library of torch_transformer.py that have the layers of a suite.
std::vector<const char *> torch_libraries(const std::string &suite) {
  if (suite == "attention") return {"flash", "cudnn"};
  return {"torch", "liger"};
}

/// Tensors of an attention for CudnnGraph.
std::vector<const void *> tensors_of(const TransformerShape &shape,
                                     const std::vector<void *> &set) {
  return {set.begin(), set.begin() + (shape.is_forward ? kDO : kEnds)};
}

class TransformerBench : BenchState {
 public:
  using BenchState::BenchState;

  void measure(const TransformerShape &shape);

 private:
  /// Fills in the times, interleaved with the peers.
  void time(TransformerRow &row, TransformerData &data);
  /// Returns an attention by cuDNN; NULL if it has none, with a note.
  std::unique_ptr<CudnnGraph> make_graph(const TransformerShape &shape);
  /// Returns the fastest engine, and the fastest deterministic one if it is another.
  std::vector<size_t> fastest_engines(const CudnnGraph &graph, const TransformerShape &shape,
                                      TransformerData &data) const;
  /// Starts the peers of a suite.
  void open_peers(const std::string &suite);
  /// Returns the peers that can run the problem; notes name the others.
  std::vector<TorchPeer *> prepare_torch(const TransformerShape &shape);

  Stopwatch stopwatch_{machine_};
  bool is_open_ = false;
  std::unique_ptr<Cudnn> cudnn_;
  std::list<TorchPeer> torch_;
};

void TransformerBench::open_peers(const std::string &suite) {
  if (std::exchange(is_open_, true) || machine_.on_host()) return;
  cudnn_ = open_peer<Cudnn>(options_.peers.cudnn && suite == "attention", "attention", machine_,
                            report_);
  if (!options_.peers.torch) return;
  for (const char *library : torch_libraries(suite))
    torch_.emplace_back(options_.home, "torch_transformer.py", machine_.cuda()->ordinal(),
                        std::vector<std::string>{"--library", library});
}

void TransformerBench::measure(const TransformerShape &shape) {
  const mp_dtype_t dtype = options_.dtype;
  TransformerData data(machine_, shape, dtype);
  TransformerRow row{.shape = shape,
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

void TransformerBench::time(TransformerRow &row, TransformerData &data) {
  open_peers(row.shape.suite);
  Comparison comparison(data.own());
  if (row.shape.suite == "norm")
    comparison.add(row.copy, "copy",
                   make_copy(machine_, static_cast<int64_t>(row.figures.min_bytes)));
  if (data.has_product()) comparison.add(row.product, "product", data.product());
  const std::unique_ptr<CudnnGraph> graph = make_graph(row.shape);
  std::vector<size_t> engines;
  if (graph) engines = fastest_engines(*graph, row.shape, data);
  std::vector<std::optional<PeerResult>> by_engine(engines.size());
  for (size_t i = 0; i < engines.size(); ++i)
    comparison.add(by_engine[i], name_of(*cudnn_), [&, engine = engines[i]] {
      graph->enqueue(tensors_of(row.shape, data.next_set()), engine);
    });
  const std::vector<TorchPeer *> torch = prepare_torch(row.shape);
  std::function<void()> torch_turns;
  if (!torch.empty())
    torch_turns = [&] {
      for (TorchPeer *peer : torch) peer->take_turn();
    };
  row.figures.timing = comparison.run(stopwatch_, pace_of(options_, machine_), torch_turns);
  for (size_t i = 0; i < engines.size(); ++i) {
    PeerResult &result = row.peers.emplace_back(*by_engine[i]);
    result.deterministic = graph->is_deterministic(engines[i]);
    result.workspace_bytes = graph->workspace_bytes(engines[i]);
    if (row.shape.is_forward)
      result.agrees =
          report_.add_agreement(name_of(*cudnn_), row.shape.label(), data.difference_to([&] {
            graph->enqueue(tensors_of(row.shape, data.first_set()), engines[i]);
          }));
  }
  for (TorchPeer *peer : torch)
    if (const std::optional<PeerResult> result = peer->result()) row.peers.push_back(*result);
}

std::unique_ptr<CudnnGraph> TransformerBench::make_graph(const TransformerShape &shape) {
  if (!cudnn_) return nullptr;
  return report_.make_or_note("cuDNN reference for " + shape.label(), [&] {
    return std::make_unique<CudnnGraph>(*cudnn_, shape, options_.dtype);
  });
}

std::vector<size_t> TransformerBench::fastest_engines(const CudnnGraph &graph,
                                                      const TransformerShape &shape,
                                                      TransformerData &data) const {
  std::vector<size_t> chosen;
  for (const bool is_deterministic : {false, true}) {
    std::vector<size_t> engines;
    std::vector<Work> works;
    for (size_t i = 0; i < graph.engines(); ++i) {
      if (is_deterministic && !graph.is_deterministic(i)) continue;
      engines.push_back(i);
      works.push_back([&, i] { graph.enqueue(tensors_of(shape, data.next_set()), i); });
    }
    if (engines.empty()) continue;
    const size_t fastest = engines[fastest_choice(works, stopwatch_, machine_)];
    if (chosen.empty() || chosen.front() != fastest) chosen.push_back(fastest);
  }
  return chosen;
}

std::vector<TorchPeer *> TransformerBench::prepare_torch(const TransformerShape &shape) {
  std::vector<TorchPeer *> ready;
  for (TorchPeer &peer : torch_) {
    const std::string problem = shape.suite + ' ' + mp_dtype_name(options_.dtype);
    const std::string reason = peer.prepare(problem + ' ' + shape.name());
    if (reason.empty())
      ready.push_back(&peer);
    else
      report_.add_note(
          (peer.absent() ? "No reference for " + shape.suite : shape.label() + ", no reference") +
          ": " + reason + ".");
  }
  torch_.remove_if([](const TorchPeer &peer) { return peer.absent(); });
  return ready;
}

}  // namespace

Suite transformer_suite(const char *name, const Options &options, const Machine &machine,
                        Report &report) {
  return make_suite_of_sets<TransformerBench, TransformerShape>(name, options, machine, report);
}

}  // namespace mpbench
