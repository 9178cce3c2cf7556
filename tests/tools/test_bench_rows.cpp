// bench/rows/step_row.h: a step beside several peers, in the table and in the JSON.
#include "bench/rows/step_row.h"
#include "tests/support/testing.h"

using namespace mpbench;
using Catch::Matchers::Contains;

namespace {

StepRow row_beside(const std::vector<std::pair<std::string, double>> &peers) {
  StepRow row{.op = "scale_step adamw",
              .layout = "one",
              .tensors = 1,
              .parameters = 1000,
              .bytes_per_parameter = 30,
              .sets = 1,
              .timing = {},
              .copy = {30000.0, {}},
              .peers = {}};
  row.timing.median_us = 10;
  row.copy.timing.median_us = 8;
  for (const auto &[name, us] : peers)
    row.peers.push_back({.name = name, .median_us = us, .q1_us = us, .q3_us = us, .agrees = {}});
  return row;
}

}  // namespace

TEST_CASE("a step beside no, one and several peers", "[bench]") {
  const Json none = json_of(row_beside({}), {});
  CHECK(none["gb_per_s"] == 3.0);
  CHECK(none["copy_gb_per_s"] == 3.75);
  CHECK(none["percent_of_copy"] == 80.0);
  CHECK_FALSE(none.contains("peer"));
  CHECK_FALSE(none.contains("other_peers"));

  const Json one = json_of(row_beside({{"torch", 15}}), {});
  CHECK(one["peer"] == "torch");
  CHECK(one["ratio_to_peer"] == 1.5);
  CHECK_FALSE(one.contains("other_peers"));

  const StepRow row = row_beside({{"torch", 15}, {"Apex", 20}, {"TE", 25}});
  const Json three = json_of(row, {});
  CHECK(three["peer"] == "torch");
  CHECK(three["other_peers"].size() == 2);
  CHECK(three["other_peers"][0]["peer"] == "Apex");
  CHECK(three["other_peers"][1]["peer_median_us"] == 25.0);
  CHECK(three["other_peers"][1]["ratio_to_peer"] == 2.5);

  // Each peer has a line, its figures in the columns of the heading.
  const std::string heading = heading_of(row), lines = line_of(row, {});
  std::vector<std::string> split;
  for (size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1)
    split.push_back(lines.substr(at, lines.find('\n', at) - at));
  REQUIRE(split.size() == 3);
  const size_t end = heading.find("ratio") + 5 - 1;  // the heading begins with an empty line
  for (size_t i = 0; i < 3; i++)
    CHECK(split[i].substr(end - 5, 5) == std::vector{"1.500", "2.000", "2.500"}[i]);
  CHECK_THAT(split[1], Contains("Apex"));
  CHECK_THAT(split[2], Contains("TE"));
}
