#include "step_row.h"

#include "counted.h"

namespace mpbench {
namespace {

double step_bytes(const StepRow &row) {
  return static_cast<double>(row.bytes_per_parameter * row.parameters);
}

}  // namespace

std::string heading_of(const StepRow &row) {
  const std::string what =
      text("\n%-27s %-8s %7s %11s %8s ", "op", "layout", "tensors", "parameters", "B/param");
  if (row.counts) return what + counts_heading() + '\n';
  return what + text("%9s %8s %7s %7s %6s %9s %7s\n", "time us", "iqr us", "GB/s", "copy", "%copy",
                     "peer us", "ratio");
}

std::string line_of(const StepRow &row, const std::optional<Peak> &) {
  std::string lines = text("%-27s %-8s %7lld %11lld %8lld ", row.op.c_str(), row.layout.c_str(),
                           static_cast<Long>(row.tensors), static_cast<Long>(row.parameters),
                           static_cast<Long>(row.bytes_per_parameter));
  if (row.counts) return lines + counts_text(*row.counts) + '\n';
  lines += memory_text(row.timing, step_bytes(row), row.copy) +
           peer_text(row.peers.empty() ? std::nullopt : std::optional(row.peers[0]), row.timing) +
           '\n';
  for (size_t i = 1; i < row.peers.size(); i++)
    lines += text("%108s%s  %s\n", "", peer_text(row.peers[i], row.timing).c_str(),
                  row.peers[i].name.c_str());
  return lines;
}

Json json_of(const StepRow &row, const std::optional<Peak> &) {
  Json json{{"bench", "step"},
            {"op", row.op},
            {"layout", row.layout},
            {"tensors", row.tensors},
            {"parameters", row.parameters},
            {"bytes_per_parameter", row.bytes_per_parameter}};
  if (row.counts) {
    add_counts(json, *row.counts);
    return json;
  }
  json["sets"] = row.sets;
  add_memory(json, row.timing, step_bytes(row), row.copy);
  for (size_t i = 0; i < row.peers.size(); i++) {
    Json &place = i == 0 ? json : json["other_peers"][i - 1];
    add_peer(place, row.peers[i], row.timing);
  }
  return json;
}

}  // namespace mpbench
