// Tests of bench/rows/rows.h: a step with several peers or with counts, and a recurrent layer with
// its GEMMs, cuDNN and torch, in the table and in the JSON.
#include "bench/rows/rows.h"
#include "tests/support/testing.h"

using namespace mpbench;
using Catch::Matchers::ContainsSubstring;

namespace {

template <typename Row>
Fields fields(const Row &row) {
  return fields_of(row, {});
}

PeerResult timed(const std::string &name, double us) {
  return {.name = name, .median_us = us, .q1_us = us, .q3_us = us};
}

StepRow row_beside(const std::vector<std::pair<std::string, double>> &peers) {
  StepRow row{.op = "scale_step adamw",
              .layout = "one",
              .tensors = 1,
              .parameters = 1000,
              .bytes_per_parameter = 30,
              .sets = 1,
              .copy = {30000.0}};
  row.timing.median_us = 10;
  row.copy.timing.median_us = 8;
  for (const auto &[name, us] : peers) row.peers.push_back(timed(name, us));
  return row;
}

void check_has_no_times(const Json &counted) {
  for (const auto &[name, value] : counted.items()) {
    CAPTURE(name);
    for (const char *part : {"_us", "per_s", "products"})
      CHECK(name.find(part) == std::string::npos);
  }
}

}  // namespace

TEST_CASE("rows: a step has a line for each peer", "[bench]") {
  const Json none = json_of(fields(row_beside({})));
  CHECK(none["gb_per_s"] == 3.0);
  CHECK(none["copy_gb_per_s"] == 3.75);
  CHECK(none["percent_of_copy"] == 80.0);
  CHECK_FALSE(none.contains("peer"));
  CHECK_FALSE(none.contains("other_peers"));

  const StepRow row = row_beside({{"torch", 15}, {"TE", 25}});
  const Json two = json_of(fields(row));
  CHECK(two["peer"] == "torch");
  CHECK(two["ratio_to_peer"] == 1.5);
  CHECK(two["other_peers"].size() == 1);
  CHECK(two["other_peers"][0]["peer"] == "TE");
  CHECK(two["other_peers"][0]["peer_median_us"] == 25.0);
  CHECK(two["other_peers"][0]["ratio_to_peer"] == 2.5);

  // Each peer has a line with its values in the columns of the heading.
  const std::string heading = heading_of(fields(row)), lines = line_of(fields(row));
  const size_t end = heading.find("ratio") + 5 - 1;  // the heading begins with an empty line
  CHECK(lines.substr(end - 5, 5) == "1.500");
  CHECK(lines.substr(lines.find('\n') + 1 + end - 5, 5) == "2.500");
  CHECK_THAT(lines, ContainsSubstring("TE"));
}

TEST_CASE("rows: a counted step has counts and no times", "[bench]") {
  // Output of softgpu_take_counts: two paths to global memory, one to shared memory, no tensor
  // cores.
  const std::string totals = R"("launches": 1, "blocks": 2, "issue_slots": 70,
    "classes": {"fp32": 60, "wgmma": 0, "control": 10}, "tensor": {"instructions": 0, "flops": 0},
    "global": {"load": {"requests": 4, "bytes": 500, "sectors": 40, "least_sectors": 16},
               "store": {"requests": 2, "bytes": 256, "sectors": 8, "least_sectors": 8}},
    "shared": {"load": {"requests": 1, "bytes": 128, "wavefronts": 3, "least_wavefronts": 1}},
    "waits": {"barriers": 5, "mbarrier_waits": 0, "mbarrier_incomplete": 0})";
  const std::string kernel = R"("name": "_Zk", "pretty_name": "k", "file": "f", )" + totals;
  StepRow row = row_beside({});
  row.counts = read_counts("{\"total\": {" + totals + "}, \"kernels\": [{" + kernel + "}]}");
  CHECK(row.counts->sectors == 48);
  CHECK(row.counts->least_sectors == 24);

  const Json json = json_of(fields(row));
  check_has_no_times(json);
  REQUIRE(json["counts"].size() == 1);
  const Json &counted = json["counts"][0];
  CHECK(counted["name"] == "k");
  CHECK(counted["classes"] == Json{{"fp32", 60}, {"control", 10}});
  CHECK(counted["global"]["load"]["sectors"] == 40);
  CHECK_FALSE(counted.contains("file"));

  const std::string line = line_of(fields(row));
  CHECK_THAT(line, ContainsSubstring("2.00"));  // sectors over the least
  CHECK_THAT(line, ContainsSubstring("3.00"));  // wavefronts
  // heading_of() begins with an empty line.
  CHECK(line.size() == heading_of(fields(row)).size() - 1);
}

TEST_CASE("rows: a recurrent layer has columns for its GEMMs, cuDNN and torch", "[bench]") {
  RnnLayerRow row{.shape = parse_rnn("8,2,3,lstm"),
                  .figures = {.dtype = MP_FP16,
                              .out_dtype = MP_FP16,
                              .beta = 0,
                              .flop = 4e7,
                              .min_bytes = 2e4,
                              .kernel = "rnn_steps",
                              .workspace_bytes = 1 << 20,
                              .sets = 2},
                  .reserve_bytes = 3 << 20,
                  .products = timed("products", 8)};
  row.shape.set = "deepbench_rnn_train";
  row.figures.timing.median_us = 10;

  const Json alone = json_of(fields(row));
  CHECK(alone["bench"] == "rnn_layer");
  CHECK(alone["shape"] == "fprop lstm h8 n2 t3");
  CHECK(alone["training"] == true);
  CHECK(alone["tflops"] == 4.0);
  CHECK(alone["products_median_us"] == 8.0);
  CHECK(alone["time_over_products"] == 1.25);
  CHECK(alone["reserve_bytes"] == 3 << 20);
  CHECK(alone["workspace_bytes"] == 1 << 20);
  for (const char *field : {"peer", "peer_reserve_bytes", "with_w_ih"})
    CHECK_FALSE(alone.contains(field));
  CHECK_THAT(heading_of(fields(row)), ContainsSubstring("deepbench_rnn_train, full layers"));
  const std::string line = line_of(fields(row));
  CHECK(line.find('\n') == line.size() - 1);
  CHECK_THAT(line, ContainsSubstring("8.0   1.250            3 "));

  row.figures.peer = timed("cuDNN 1, standard", 12);
  row.peer_reserve_bytes = 5;
  row.figures.peer_workspace = PeerWorkspace{.limit = 7, .used = 7};
  row.torch = BesideTorch{.what = "forward, with W_ih",
                          .own = timed("mpcore", 11),
                          .torch = timed("torch 1, nn.LSTM", 22)};
  const Json beside = json_of(fields(row));
  CHECK(beside["ratio_to_peer"] == 1.2);
  CHECK(beside["peer_reserve_bytes"] == 5);
  CHECK(beside["peer_workspace_bytes"] == 7);
  CHECK(beside["with_w_ih"]["torch"] == "torch 1, nn.LSTM");
  CHECK(beside["with_w_ih"]["mpcore_median_us"] == 11.0);
  CHECK(beside["with_w_ih"]["ratio_to_torch"] == 2.0);
  CHECK_THAT(line_of(fields(row)),
             ContainsSubstring("forward, with W_ih: 11.0 us, torch 1, nn.LSTM 22.0, ratio 2.000"));

  row.shape.set = "deepbench_rnn_infer";
  CHECK(json_of(fields(row))["training"] == false);
  row.products = {};
  row.torch = {};
  row.figures.counts = Counts{};
  check_has_no_times(json_of(fields(row)));
}
