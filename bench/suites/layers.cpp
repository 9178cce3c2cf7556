// mpbench layers, attention, norm, linear_xent, gated: layers, timed interleaved with cuDNN, with
// PyTorch and Liger, and with a copy of as many bytes if they have no products.
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
#include "torch_peers.h"

namespace mpbench {
namespace {

bool is_loss(const LayerShape &shape) {
  return shape.form == "softmax_xent";
}

/// Arguments of torch_transformer.py for the libraries that have the layers of a suite.
std::vector<TorchPeers::Arguments> torch_libraries(const std::string &suite) {
  if (suite == "layers") return {};
  if (suite == "attention") return {{"--library", "flash"}, {"--library", "cudnn"}};
  return {{"--library", "torch"}, {"--library", "liger"}};
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

  Stopwatch stopwatch_{machine_};
  std::unique_ptr<Cudnn> cudnn_;
  std::optional<TorchPeers> torch_;
};

void LayerBench::open_peers(const std::string &suite) {
  if (torch_) return;
  cudnn_ = open_peer<Cudnn>(options_.peers.cudnn && (suite == "attention" || suite == "layers"),
                            suite.c_str(), machine_, report_);
  torch_.emplace(options_, machine_, "torch_transformer.py", torch_libraries(suite));
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
  const std::string problem = row.shape.suite + ' ' + mp_dtype_name(options_.dtype);
  const std::function<void()> torch_turns = torch_->prepare(
      problem + ' ' + row.shape.name(), row.shape.label(), row.shape.suite, report_);
  row.figures.timing = comparison.run(stopwatch_, pace_of(options_, machine_), torch_turns);
  for (size_t i = 0; i < dnn.size(); ++i) {
    PeerResult &result = row.peers.emplace_back(*by_dnn[i]);
    result.deterministic = dnn[i].is_deterministic;
    result.workspace_bytes = dnn[i].workspace_bytes;
    if (data.is_comparable())
      result.agrees = report_.add_agreement(
          name, row.shape.label(), data.difference_to([&] { dnn[i].enqueue(data.first_set()); }));
  }
  for (const PeerResult &result : torch_->results()) row.peers.push_back(result);
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

}  // namespace

Suite layer_suite(const char *name, const Options &options, const Machine &machine,
                  Report &report) {
  return make_suite_of_sets<LayerBench, LayerShape>(name, options, machine, report);
}

}  // namespace mpbench
