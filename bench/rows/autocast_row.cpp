#include "autocast_row.h"

namespace mpbench {
namespace {

double per_node(const AutocastRow &row, double amount) {
  return amount / static_cast<double>(row.nodes);
}

double ns_per_node(const AutocastRow &row) {
  return per_node(row, 1e3 * row.timing.median_us);
}

double bytes_per_node(const AutocastRow &row) {
  return per_node(row, static_cast<double>(row.heap_bytes));
}

}  // namespace

std::string heading_of(const AutocastRow &) {
  return text("\n%-8s %8s %8s %10s %9s %8s %10s %8s %8s\n", "autocast", "nodes", "tensors",
              "host us", "iqr us", "ns/node", "bytes/node", "low", "casts");
}

std::string line_of(const AutocastRow &row, const std::optional<Peak> &) {
  return text("%-8s %8lld %8lld %10.1f %9.1f %8.1f %10.1f %8lld %8lld\n", row.graph.c_str(),
              static_cast<Long>(row.nodes), static_cast<Long>(row.tensors), row.timing.median_us,
              row.timing.iqr_us(), ns_per_node(row), bytes_per_node(row),
              static_cast<Long>(row.low_nodes), static_cast<Long>(row.casts));
}

Json json_of(const AutocastRow &row, const std::optional<Peak> &) {
  // The rewrite runs on the host only and depends on no device.
  Json json{{"bench", "autocast"}, {"runs_on", "host"},           {"graph", row.graph},
            {"nodes", row.nodes},  {"tensors", row.tensors},      {"low_nodes", row.low_nodes},
            {"casts", row.casts},  {"heap_bytes", row.heap_bytes}};
  add_timing(json, row.timing);
  json["ns_per_node"] = ns_per_node(row);
  json["bytes_per_node"] = bytes_per_node(row);
  return json;
}

}  // namespace mpbench
