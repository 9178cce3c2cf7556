#include "graph_row.h"

namespace mpbench {
namespace {

std::string times_text(const GraphBesideHand &times) {
  const Quartiles ratio = times.ratio();
  return text(" %10.1f %10.1f %6.3f %6.3f %6.3f", times.graph.median_us, times.by_hand.median_us,
              ratio.median, ratio.q1, ratio.q3);
}

void add_beside_hand(Json &json, const GraphBesideHand &times) {
  add_timing(json, times.graph);
  add_times(json, "by_hand", peer_result("", times.by_hand));
  const Quartiles ratio = times.ratio();
  json.update({{"time_over_hand", ratio.median},
               {"time_over_hand_q1", ratio.q1},
               {"time_over_hand_q3", ratio.q3}});
}

}  // namespace

std::string heading_of(const GraphRow &) {
  constexpr const char *kTimes = " %10s %10s %6s %6s %6s";
  return text("\n%-29s %-5s %8s", "graph", "type", "launches") +
         text(kTimes, "time us", "by hand", "ratio", "q1", "q3") +
         text(kTimes, "host us", "by hand", "ratio", "q1", "q3") + '\n';
}

std::string line_of(const GraphRow &row, const std::optional<Peak> &) {
  return text("%-29s %-5s %8lld", row.shape.name().c_str(), mp_dtype_name(row.dtype),
              static_cast<Long>(row.launches)) +
         times_text(row.whole) + (row.host ? times_text(*row.host) : text(" %10s", "the same")) +
         '\n';
}

Json json_of(const GraphRow &row, const std::optional<Peak> &) {
  Json json{{"bench", "graph"},
            {"network", row.shape.name()},
            {"layers", row.shape.layers},
            {"width", row.shape.width},
            {"batch", row.shape.batch},
            {"dtype", mp_dtype_name(row.dtype)},
            {"parameters", row.shape.parameters()},
            {"launches", row.launches},
            {"synchronous", !row.host}};
  add_beside_hand(json, row.whole);
  if (row.host) add_beside_hand(json["host"], *row.host);
  return json;
}

}  // namespace mpbench
