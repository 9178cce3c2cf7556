#include "rnn_layer_row.h"

namespace mpbench {

double time_over_products(const RnnLayerRow &row) {
  return row.figures.timing.median_us / row.products->median_us;
}

std::string heading_of(const RnnLayerRow &row) {
  const std::string what = text("\n%s, full layers\n%-34s ", row.shape.set.c_str(), "layer");
  const std::string beside =
      row.products ? text("%12s %7s %12s ", "products us", "x GEMMs", "reserve MiB") : "";
  return what + beside + figures_heading(row.figures) + '\n';
}

std::string line_of(const RnnLayerRow &row, const std::optional<Peak> &peak) {
  std::string line = text("%-34s ", row.shape.name().c_str());
  if (row.products)
    line += text("%12.1f %7.3f %12.4g ", row.products->median_us, time_over_products(row),
                 static_cast<double>(row.reserve_bytes) / (1 << 20));
  line += figures_text(row.figures, peak) + '\n';
  if (!row.torch) return line;
  return line + text("%34s %s: %.1f us, %s %.1f, ratio %.3f\n", "", row.torch->what.c_str(),
                     row.torch->own.median_us, row.torch->torch.name.c_str(),
                     row.torch->torch.median_us,
                     row.torch->torch.median_us / row.torch->own.median_us);
}

Json json_of(const RnnLayerRow &row, const std::optional<Peak> &peak) {
  const RnnShape &shape = row.shape;
  Json json{{"bench", "rnn_layer"},
            {"set", shape.set},
            {"shape", shape.name()},
            {"comment", ""},
            {"pass", shape.pass},
            {"cell", shape.cell},
            {"hidden", shape.hidden},
            {"batch", shape.batch},
            {"timesteps", shape.timesteps},
            {"training", shape.is_training()},
            {"reserve_bytes", row.reserve_bytes}};
  add_figures(json, row.figures, peak);
  if (row.products) {
    add_times(json, "products", *row.products);
    json["time_over_products"] = time_over_products(row);
  }
  if (row.peer_reserve_bytes) json["peer_reserve_bytes"] = *row.peer_reserve_bytes;
  if (row.torch) {
    Json &beside = json["with_w_ih"];
    beside["what"] = row.torch->what;
    beside["torch"] = row.torch->torch.name;
    add_times(beside, "mpcore", row.torch->own);
    add_times(beside, "torch", row.torch->torch);
    beside["ratio_to_torch"] = row.torch->torch.median_us / row.torch->own.median_us;
  }
  return json;
}

}  // namespace mpbench
