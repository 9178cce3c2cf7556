#include "step_row.h"

namespace mpbench {
namespace {

double step_bytes(const StepRow &row) {
  return static_cast<double>(row.bytes_per_parameter * row.parameters);
}

}  // namespace

std::string heading_of(const StepRow &) {
  return text("\n%-27s %-8s %7s %11s %8s %9s %8s %7s %7s %6s %9s %7s\n", "op", "layout", "tensors",
              "parameters", "B/param", "time us", "iqr us", "GB/s", "copy", "%copy", "peer us",
              "ratio");
}

std::string line_of(const StepRow &row, const std::optional<Peak> &) {
  const double rate = row.timing.giga_per_s(step_bytes(row));
  const double copy_rate = row.copy.giga_per_s(row.copy_bytes);
  return text("%-27s %-8s %7lld %11lld %8lld %9.1f %8.1f %7.1f %7.1f %6.1f ", row.op.c_str(),
              row.layout.c_str(), static_cast<Long>(row.tensors), static_cast<Long>(row.parameters),
              static_cast<Long>(row.bytes_per_parameter), row.timing.median_us, row.timing.iqr_us(),
              rate, copy_rate, 100 * rate / copy_rate) +
         peer_text(row.peer, row.timing) + '\n';
}

Json json_of(const StepRow &row, const std::optional<Peak> &) {
  const double rate = row.timing.giga_per_s(step_bytes(row));
  const double copy_rate = row.copy.giga_per_s(row.copy_bytes);
  Json json{{"bench", "step"},
            {"op", row.op},
            {"layout", row.layout},
            {"tensors", row.tensors},
            {"parameters", row.parameters},
            {"bytes_per_parameter", row.bytes_per_parameter},
            {"sets", row.sets}};
  add_timing(json, row.timing);
  json.update({{"gb_per_s", rate},
               {"copy_bytes", row.copy_bytes},
               {"copy_median_us", row.copy.median_us},
               {"copy_gb_per_s", copy_rate},
               {"percent_of_copy", 100 * rate / copy_rate}});
  add_peer(json, row.peer, row.timing);
  return json;
}

}  // namespace mpbench
