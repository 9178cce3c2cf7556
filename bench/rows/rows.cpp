#include "rows.h"

namespace mpbench {
namespace {

double mib(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

/// First fields of a row with a shape; `title` is that of the column with the shape's name.
Fields shape_fields(const char *bench, const std::string &set, const std::string &name,
                    const std::string &comment, const char *title = nullptr, int width = 0) {
  Fields fields{
      {"bench", bench}, {"set", set}, {"shape", name, title, width}, {"comment", comment}};
  fields.set = set;
  return fields;
}

Fields rnn_fields(const char *bench, const RnnShape &shape) {
  return shape_fields(bench, shape.set, shape.name(), "", "layer", -34) +
         Fields{{"pass", shape.pass},
                {"cell", shape.cell},
                {"hidden", shape.hidden},
                {"batch", shape.batch},
                {"timesteps", shape.timesteps}};
}

std::optional<PeerResult> first_of(const std::vector<PeerResult> &peers) {
  return peers.empty() ? std::nullopt : std::optional(peers.front());
}

/// @param title  of the column with the time of the graph
Fields hand_fields(const GraphBesideHand &times, const char *title) {
  const Quartiles ratio = ratio_between(times.graph, times.by_hand);
  return Fields{{"", times.graph.median_us, title, 10}} + timing_fields(times.graph) +
         times_fields("by_hand", peer_result("", times.by_hand), "by hand", 10) +
         Fields{{"time_over_hand", ratio.median, "ratio", 6, 3},
                {"time_over_hand_q1", ratio.q1, "q1", 6, 3},
                {"time_over_hand_q3", ratio.q3, "q3", 6, 3}};
}

}  // namespace

Fields fields_of(const GemmRow &row, const std::optional<Peak> &peak) {
  const Shape &shape = row.shape;
  return shape_fields("gemm", shape.set, shape.name(), shape.comment) +
         Fields{{"", shape.name().substr(0, 2), "op", -2},
                {"m", shape.m, "m", 7},
                {"n", shape.n, "n", 7},
                {"k", shape.k, "k", 7},
                gap()} +
         figures_fields(row.figures, peak);
}

Fields fields_of(const EpilogueRow &row, const std::optional<Peak> &peak) {
  const Shape &gemm = row.shape.gemm;
  return shape_fields("epilogue", gemm.set, row.shape.name(), gemm.comment, "GEMM and epilogue",
                      -34) +
         Fields{{"epilogue", kind_of(row.shape.epilogue).name},
                {"m", gemm.m},
                {"n", gemm.n},
                {"k", gemm.k},
                gap()} +
         figures_fields(row.figures, peak);
}

Fields fields_of(const BatchedRow &row, const std::optional<Peak> &peak) {
  const Shape &gemm = row.shape.gemm;
  return shape_fields("batched", gemm.set, row.shape.name(), gemm.comment, "GEMMs in one call",
                      -35) +
         Fields{{"form", name_of(row.shape.form)},
                {"count", row.shape.count},
                {"rows", row.shape.rows()},
                {"m", gemm.m},
                {"n", gemm.n},
                {"k", gemm.k},
                gap()} +
         figures_fields(row.figures, peak);
}

Fields fields_of(const ConvRow &row, const std::optional<Peak> &peak) {
  const ConvShape &shape = row.shape;
  return shape_fields("conv", shape.set, shape.name(), shape.comment, "convolution", -42) +
         Fields{{"pass", shape.pass()},
                {"n", shape.n},
                {"h", shape.h},
                {"w", shape.w},
                {"c", shape.c},
                {"k", shape.k},
                {"r", shape.r},
                {"s", shape.s},
                {"pad_h", shape.pad_h},
                {"pad_w", shape.pad_w},
                {"stride_h", shape.stride_h},
                {"stride_w", shape.stride_w},
                {"layers", shape.layers},
                gap()} +
         figures_fields(row.figures, peak);
}

Fields fields_of(const RnnRow &row, const std::optional<Peak> &peak) {
  const Shape gemms = row.shape.gemms();
  return rnn_fields("rnn", row.shape) +
         Fields{{"", gemms.calls, "calls", 5},
                gap(),
                {"gemm", gemms.name(), "of", -22},
                {"gemm_calls", gemms.calls}} +
         figures_fields(row.figures, peak);
}

Fields fields_of(const RnnLayerRow &row, const std::optional<Peak> &peak) {
  Fields fields = rnn_fields("rnn_layer", row.shape);
  fields.set += ", full layers";
  fields += {{"training", row.shape.is_training()}, {"reserve_bytes", row.reserve_bytes}};
  // Above 1 the cells add time, below 1 the layer saves time.
  const double over_products =
      row.products ? row.figures.timing.median_us / row.products->median_us : 0;
  if (row.products)
    fields += {{"", row.products->median_us, "products us", 12},
               {"", over_products, "x GEMMs", 7, 3},
               {"", text("%.4g", mib(row.reserve_bytes)), "reserve MiB", 12}};
  fields += figures_fields(row.figures, peak);
  if (row.products)
    fields +=
        times_fields("products", *row.products) + Fields{{"time_over_products", over_products}};
  if (row.peer_reserve_bytes) fields += {{"peer_reserve_bytes", *row.peer_reserve_bytes}};
  if (!row.torch) return fields;
  const auto &[what, own, torch] = *row.torch;
  const double ratio = torch.median_us / own.median_us;
  fields.more = text("%34s %s: %.1f us, %s %.1f, ratio %.3f\n", "", what.c_str(), own.median_us,
                     torch.name.c_str(), torch.median_us, ratio);
  return fields +=
         nested("with_w_ih", Fields{{"what", what}, {"torch", torch.name}} +
                                 times_fields("mpcore", own) + times_fields("torch", torch) +
                                 Fields{{"ratio_to_torch", ratio}});
}

Fields fields_of(const LayerRow &row, const std::optional<Peak> &peak) {
  const LayerShape &shape = row.shape;
  Json extents;
  for (const auto &[name, value] : shape.extents) extents[name] = value;
  Figures figures = row.figures;
  figures.peer = first_of(row.peers);
  const Timing &own = figures.timing;
  Fields fields =
      shape_fields(shape.suite.c_str(), shape.set, shape.name(), shape.comment, "layer", -48) +
      Fields{{"op", shape.suite == "layers" ? Json(shape.op()) : Json()},
             {"pass", shape.pass()},
             {"form", shape.form},
             {"extents", extents},
             {"deterministic", true}} +
      figures_fields(figures, peak) + other_peers_fields(row.peers, own, 131);
  if (row.copy) {
    const double rate = figures.min_bytes / row.copy->median_us * 1e-3;
    fields += {{"copy_bytes", figures.min_bytes},
               {"copy_median_us", row.copy->median_us},
               {"copy_gb_per_s", rate},
               {"percent_of_copy", 100 * own.giga_per_s(figures.min_bytes) / rate, "%copy", 6}};
  }
  if (row.product)
    fields +=
        times_fields("products", *row.product) +
        Fields{{"time_over_products", own.median_us / row.product->median_us, "x GEMM", 7, 3}};
  return fields;
}

Fields fields_of(const StepRow &row, const std::optional<Peak> &) {
  Fields fields{{"bench", "step"},
                {"op", row.op, "op", -27},
                {"layout", row.layout, "layout", -8},
                {"tensors", row.tensors, "tensors", 7},
                {"parameters", row.parameters, "parameters", 11},
                {"bytes_per_parameter", row.bytes_per_parameter, "B/param", 8}};
  if (row.counts) return fields + counts_fields(*row.counts);
  const auto bytes = static_cast<double>(row.bytes_per_parameter * row.parameters);
  return fields + Fields{{"sets", row.sets}} + memory_fields(row.timing, bytes, row.copy) +
         peer_fields(first_of(row.peers), row.timing) +
         other_peers_fields(row.peers, row.timing, 108);
}

Fields fields_of(const CallRow &row, const std::optional<Peak> &) {
  return Fields{{"bench", "calls"},
                {"call", row.call, "call", -31},
                {"problem", row.problem, "problem", -30}} +
         timing_fields(row.timing, "host us", 9, 3) + peer_fields(row.peer, row.timing);
}

Fields fields_of(const StartupRow &row, const std::optional<Peak> &) {
  return Fields{{"bench", "startup"},
                {"phase", row.phase, "start-up", -8},
                {"", row.what, "", -34},
                {"edge", row.edge, "edge", 6},
                {"", mib(row.library_bytes), ".so MiB", 8},
                {"library_bytes", row.library_bytes}} +
         timing_fields(row.timing, "time us");
}

Fields fields_of(const GraphRow &row, const std::optional<Peak> &) {
  const char *const dtype = mp_dtype_name(row.dtype);
  const Fields fields = Fields{{"bench", "graph"},
                               {"network", row.shape.name(), "graph", -29},
                               {"layers", row.shape.layers},
                               {"width", row.shape.width},
                               {"batch", row.shape.batch},
                               {"dtype", dtype, "type", -5},
                               {"parameters", row.shape.parameters()},
                               {"launches", row.launches, "launches", 8},
                               {"synchronous", !row.host}} +
                        hand_fields(row.whole, "time us");
  if (row.host) return fields + nested("host", hand_fields(*row.host, "host us"));
  return fields + Fields{{"", "the same", "host us", 10},
                         {"", "", "by hand", 10},
                         {"", "", "ratio", 6},
                         {"", "", "q1", 6},
                         {"", "", "q3", 6}};
}

}  // namespace mpbench
