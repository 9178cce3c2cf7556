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

Json json_of(const StartupRow &row, const std::optional<Peak> &) {
  Json json{{"bench", "startup"},
            {"phase", row.phase},
            {"edge", row.edge},
            {"library_bytes", row.library_bytes}};
  add_timing(json, row.timing);
  return json;
}

}  // namespace mpbench
