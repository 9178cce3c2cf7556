#include "startup_row.h"

namespace mpbench {

std::string heading_of(const StartupRow &) {
  return text("\n%-8s %-34s %6s %8s %9s %8s\n", "start-up", "", "edge", ".so MiB", "time us",
              "iqr us");
}

std::string line_of(const StartupRow &row, const std::optional<Peak> &) {
  return text("%-8s %-34s %6lld %8.1f %9.1f %8.1f\n", row.phase.c_str(), row.what.c_str(),
              static_cast<Long>(row.edge), static_cast<double>(row.library_bytes) / (1 << 20),
              row.timing.median_us, row.timing.iqr_us());
}

void write_row(JsonWriter &json, const StartupRow &row, const std::optional<Peak> &) {
  json.open('{');
  json.string("bench", "startup");
  json.string("phase", row.phase);
  json.number("edge", row.edge);
  json.number("library_bytes", row.library_bytes);
  write_timing(json, row.timing);
  json.close('}');
}

}  // namespace mpbench
