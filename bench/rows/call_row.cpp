#include "call_row.h"

namespace mpbench {

std::string heading_of(const CallRow &) {
  return text("\n%-31s %-30s %9s %8s %9s %7s\n", "call", "problem", "host us", "iqr us", "peer us",
              "ratio");
}

std::string line_of(const CallRow &row, const std::optional<Peak> &) {
  return text("%-31s %-30s %9.3f %8.3f ", row.call.c_str(), row.problem.c_str(),
              row.timing.median_us, row.timing.iqr_us()) +
         peer_text(row.peer, row.timing) + '\n';
}

Json json_of(const CallRow &row, const std::optional<Peak> &) {
  Json json{{"bench", "calls"}, {"call", row.call}, {"problem", row.problem}};
  add_timing(json, row.timing);
  add_peer(json, row.peer, row.timing);
  return json;
}

}  // namespace mpbench
