#include "layer_row.h"

namespace mpbench {

std::string heading_of(const LayerRow &row) {
  return text("\n%s\n%-46s %-5s %9s %8s %7s %7s %6s %9s %7s\n", row.shape.set.c_str(), "layer",
              "type", "time us", "iqr us", "GB/s", "copy", "%copy", "peer us", "ratio");
}

std::string line_of(const LayerRow &row, const std::optional<Peak> &) {
  const double rate = row.timing.giga_per_s(row.shape.min_bytes(row.dtype));
  const double copy_rate = row.copy.giga_per_s(row.copy_bytes);
  return text("%-46s %-5s %9.1f %8.1f %7.1f %7.1f %6.1f ", row.shape.name().c_str(),
              mp_dtype_name(row.dtype), row.timing.median_us, row.timing.iqr_us(), rate, copy_rate,
              100 * rate / copy_rate) +
         peer_text(row.peer, row.timing) + '\n';
}

Json json_of(const LayerRow &row, const std::optional<Peak> &) {
  const LayerShape &shape = row.shape;
  const double rate = row.timing.giga_per_s(shape.min_bytes(row.dtype));
  const double copy_rate = row.copy.giga_per_s(row.copy_bytes);
  Json json{{"bench", "layers"},
            {"set", shape.set},
            {"shape", shape.name()},
            {"comment", shape.comment},
            {"op", shape.op()},
            {"dtype", mp_dtype_name(row.dtype)},
            {"min_bytes", shape.min_bytes(row.dtype)},
            {"workspace_bytes", row.workspace_bytes},
            {"sets", row.sets}};
  add_timing(json, row.timing);
  json.update({{"gb_per_s", rate},
               {"copy_bytes", row.copy_bytes},
               {"copy_median_us", row.copy.median_us},
               {"copy_gb_per_s", copy_rate},
               {"percent_of_copy", 100 * rate / copy_rate}});
  add_peer(json, row.peer, row.timing);
  if (row.peer_workspace) add_workspace(json, "peer", *row.peer_workspace);
  return json;
}

}  // namespace mpbench
