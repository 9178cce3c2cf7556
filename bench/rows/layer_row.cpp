#include "layer_row.h"

#include "counted.h"

namespace mpbench {

std::string heading_of(const LayerRow &row) {
  const std::string what = text("\n%s\n%-46s %-5s ", row.shape.set.c_str(), "layer", "type");
  if (row.counts) return what + counts_heading() + '\n';
  return what + text("%9s %8s %7s %7s %6s %9s %7s\n", "time us", "iqr us", "GB/s", "copy", "%copy",
                     "peer us", "ratio");
}

std::string line_of(const LayerRow &row, const std::optional<Peak> &) {
  const std::string what = text("%-46s %-5s ", row.shape.name().c_str(), mp_dtype_name(row.dtype));
  if (row.counts) return what + counts_text(*row.counts) + '\n';
  return what + memory_text(row.timing, row.shape.min_bytes(row.dtype), row.copy) +
         peer_text(row.peer, row.timing) + '\n';
}

Json json_of(const LayerRow &row, const std::optional<Peak> &) {
  const LayerShape &shape = row.shape;
  Json json{{"bench", "layers"},
            {"set", shape.set},
            {"shape", shape.name()},
            {"comment", shape.comment},
            {"op", shape.op()},
            {"dtype", mp_dtype_name(row.dtype)},
            {"min_bytes", shape.min_bytes(row.dtype)},
            {"workspace_bytes", row.workspace_bytes}};
  if (row.counts) {
    add_counts(json, *row.counts);
    return json;
  }
  json["sets"] = row.sets;
  add_memory(json, row.timing, shape.min_bytes(row.dtype), row.copy);
  add_peer(json, row.peer, row.timing);
  if (row.peer_workspace) add_workspace(json, "peer", *row.peer_workspace);
  return json;
}

}  // namespace mpbench
