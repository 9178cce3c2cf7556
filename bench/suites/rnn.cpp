// mpbench rnn: the GEMMs of recurrent layers without the cells, then the complete layers.
#include "bench/rows/rows.h"
#include "bench/shapes/rnn_shapes.h"
#include "gemm_timer.h"
#include "rnn_layer.h"
#include "suite.h"

namespace mpbench {
namespace {

/// A pass of a layer, or its GEMMs.
struct RnnItem {
  RnnShape shape;
  bool is_layer;

  std::string label() const { return shape.label() + (is_layer ? ", layer" : ""); }
  double effort_flop() const { return shape.effort_flop(); }
};

class RnnBench {
 public:
  RnnBench(const Options &options, const Machine &machine, Report &report)
      : options_(options), machine_(machine), report_(report), timer_(options, machine, report) {}

  void measure(const RnnItem &item) {
    const RnnShape &shape = item.shape;
    if (!item.is_layer)
      return report_.add(RnnRow{.shape = shape, .figures = timer_.time(shape.gemms())});
    // Created for the first layer, since it allocates device memory and starts processes.
    if (!layer_timer_) layer_timer_.emplace(options_, machine_, report_);
    report_.add(layer_timer_->measure(shape));
  }

 private:
  const Options &options_;
  const Machine &machine_;
  Report &report_;
  GemmTimer timer_;
  std::optional<RnnLayerTimer> layer_timer_;
};

/// GEMMs first, then layers: one table each.
std::vector<RnnItem> rnn_items(const Options &options, const Machine &machine) {
  std::vector<RnnItem> items;
  const std::vector<RnnShape> shapes = read_rnn_shapes(options, machine.on_host());
  for (const bool is_layer : {false, true})
    for (const RnnShape &shape : shapes) items.push_back({shape, is_layer});
  return items;
}

}  // namespace

Suite rnn_suite(const Options &options, const Machine &machine, Report &report) {
  return make_suite<RnnBench>("rnn", rnn_items(options, machine), options, machine, report);
}

}  // namespace mpbench
