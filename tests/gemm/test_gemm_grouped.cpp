// mp_gemm_grouped: products of different shapes in one call.  GroupRun checks each product like
// GemmRun, including guard zones around every D.
#include <cstdlib>
#include <set>

#include "gemm_group.h"
#include "tests/support/log_lines.h"

using namespace mptest;

namespace {

/// Tiles are 64, 128 or 256 wide: full tiles, single elements, primes, long and thin, empty.
const std::vector<GroupItem> kSeventeen = {
    {129, 64, 72}, {0, 5, 3},     {1, 1, 1},     {256, 128, 64},  {17, 300, 40}, {64, 64, 0},
    {5, 0, 7},     {300, 17, 96}, {127, 65, 33}, {128, 128, 128}, {1, 257, 64},  {255, 1, 200},
    {64, 256, 96}, {33, 33, 33},  {2, 3, 500},   {160, 96, 8},    {0, 0, 0}};
const std::vector<GroupItem> kSome = {
    {65, 130, 40}, {0, 8, 8}, {3, 5, 7}, {70, 8, 0}, {128, 64, 72}};

GroupCase make_group(const std::vector<GroupItem> &items, const std::string &op,
                     const Types &types) {
  GroupCase c;
  c.common.op = op;
  c.common.ab = types.ab;
  c.common.cd = types.cd;
  c.items = items;
  return c;
}

std::vector<GroupItem> many_shapes(int count, uint64_t seed) {
  Random random(seed);
  const auto extent = [&random] {  // small and large with equal probability, sometimes 0
    return random.integer(0, int64_t{1} << random.integer(0, 8));
  };
  std::vector<GroupItem> items;
  for (int i = 0; i < count; ++i) items.push_back({extent(), extent(), extent()});
  return items;
}

}  // namespace

TEST_CASE("gemm group: every kernel, order and type is exact for every shape", "[gemm]") {
  for (const Types &types : kAllTypes) {
    for (const char *const op : kAllOps) {
      GroupCase c = make_group(kSeventeen, op, types);
      c.common.beta = 1.0f;
      check_group(c);
    }
  }
}

TEST_CASE("gemm group: every kernel and order is exact", "[gemm][wgmma][short]") {
  for (const Types &types : kOneOfEach) {
    for (const char *const op : kAllOps) check_group(make_group(kSome, op, types));
  }
}

TEST_CASE("gemm group: one, two and only empty products", "[gemm][short]") {
  for (const Types &types : kOneOfEach) {
    check_group(make_group({{129, 65, 72}}, "NT", types));
    check_group(make_group({{1, 1, 1}, {200, 70, 136}}, "TN", types));
    check_group(make_group({{0, 5, 3}, {5, 0, 3}, {0, 0, 0}}, "NN", types));
    check_group(make_group({}, "NN", types));
  }
}

TEST_CASE("gemm group: a hundred products", "[gemm]") {
  for (const Types &types : kOneOfEach) {
    for (const char *const op : {"NN", "TT"}) {
      GroupCase c = make_group(many_shapes(100, 5), op, types);
      c.common.beta = -2.0f;
      c.common.found_inf = true;
      check_group(c);
    }
  }
}

TEST_CASE("gemm group: more products than launch parameters can hold", "[gemm]") {
  check_group(make_group(std::vector<GroupItem>(1500, {2, 3, 8}), "NT", {MP_FP16, MP_FP32}));
}

TEST_CASE("gemm group: one product of many tiles among small ones", "[gemm][wgmma]") {
  check_group(make_group({{3, 5, 8}, {1030, 520, 40}, {8, 8, 8}, {70, 2100, 40}}, "NT",
                         {MP_BF16, MP_BF16}));
}

TEST_CASE("gemm group: row padding stays unchanged", "[gemm][wgmma][short]") {
  for (const Types &types : kOneOfEach) {
    for (const int64_t multiple : {1, 8}) {
      GroupCase c = make_group({{67, 131, 45, 5}, {64, 64, 64}, {3, 9, 80, 2}, {130, 7, 16, 40}},
                               "TN", types);
      c.common.beta = 1.0f;
      c.common.multiple = multiple;
      check_group(c);
    }
  }
}

TEST_CASE("gemm group: one misaligned product among aligned ones", "[gemm][short]") {
  for (const Types &types : kOneOfEach) {
    for (const char *const stray : {"a", "b", "c", "d", "abcd"}) {
      GroupCase c = make_group({{65, 130, 72}, {33, 64, 40}, {128, 64, 64}}, "NT", types);
      c.common.beta = 1.0f;
      c.items[1].stray = stray;
      check_group(c);
    }
  }
}

TEST_CASE("gemm group: alpha, beta and scale, D out of place and in place",
          "[gemm][wgmma][short]") {
  for (const Types &types : kOneOfEach) {
    for (const float beta : {0.0f, 1.0f, -3.0f}) {
      for (const bool in_place : {false, true}) {
        GroupCase c = make_group(kSome, "NT", types);
        c.common.alpha = -2.0f;
        c.common.beta = beta;
        c.common.scale = 2.0f;
        c.common.in_place = in_place;
        check_group(c);
      }
    }
  }
}

TEST_CASE("gemm group: integers beyond 16 bits are rounded once, to nearest even",
          "[gemm][short]") {
  for (const Types &types : kOneOfEach) {
    GroupCase c = make_group(kSome, "TN", types);
    c.common.fill = Fill::kRounding;
    c.common.beta = 1.0f;
    check_group(c);
  }
}

TEST_CASE("gemm group: an infinity in A does not reach D if alpha = 0 or *scale = 0",
          "[gemm][short]") {
  for (const bool on_device : {false, true}) {
    GroupCase c;
    c.common.alpha = on_device ? 2.0f : 0.0f;
    c.common.zero_scale = on_device;
    c.common.beta = 1.0f;
    c.common.found_inf = true;
    c.items = {{64, 72, 40}, {33, 16, 24, 0, "", true}};
    check_group(c);
  }
}

TEST_CASE("gemm group: any product raises found_inf, none clears it", "[gemm][short]") {
  const GroupCase finite = [] {
    GroupCase c =
        make_group({{65, 40, 72}, {0, 3, 3}, {20, 130, 16}, {8, 8, 8}}, "NN", {MP_FP16, MP_FP16});
    c.common.found_inf = true;
    return c;
  }();
  for (const size_t culprit : {0, 2, 3}) {
    GroupCase c = finite;
    c.items[culprit].infinite = true;
    check_group(c);
    c.common.found_inf = false;  // a null pointer, so no flag
    check_group(c);
  }
  GroupRun run(finite);
  for (const float before : {0.0f, 1.0f}) {
    run.found_inf_start = before;
    check_launch(run, "", Misaligned::kNo);
    CHECK(run.found_inf() == before);
  }
}

TEST_CASE("gemm group: any workspace size is accepted", "[gemm][short]") {
  // Split-k is faster for a long k and few tiles.
  GroupRun run(
      make_group({{64, 64, 4096}, {33, 40, 64}, {20, 64, 1000}}, "TN", {MP_FP16, MP_FP16}));
  const size_t wanted = run.workspace_bytes("");
  for (const size_t bytes : {size_t{0}, size_t{256}, wanted / 2, wanted, wanted + 4096}) {
    CAPTURE(bytes);
    check_launch(run, "", bytes);
  }
}

TEST_CASE("gemm group: repeated calls give the same bits for any initial workspace", "[gemm]") {
  for (const Types &types : kOneOfEach) {
    for (const char *const op : kAllOps) {
      GroupCase c = make_group({{130, 67, 555}, {64, 64, 2048}, {5, 9, 300}}, op, types);
      c.common.fill = Fill::kReal;
      c.common.alpha = 0.3f;
      c.common.beta = -1.7f;
      GroupRun run(c);
      check_same_bits(run, "");
    }
  }
}

TEST_CASE("gemm group: products may share A and write adjacent rows of one D", "[gemm][short]") {
  // Weight gradients of parallel layers, stacked: dW_i = X^T dY_i.
  constexpr int64_t kRows = 72, kInputs = 40, kOutputs[] = {16, 64, 8};
  constexpr int64_t kStacked = 3 * kInputs, kWidest = 64;
  Random random(3);
  const auto integers = [&random](int64_t rows, int64_t cols) {
    Matrices m(1, rows, cols);
    m.values = random_integers(rows * cols, 3, random);
    return m;
  };
  const auto place = [](const Matrices &values, int64_t ld, uint8_t padding) {
    auto placed =
        std::make_unique<DeviceMatrices>(MP_FP16, 1, values.rows, values.cols, ld, 0, 0, padding);
    placed->upload(values);
    return placed;
  };

  const Matrices x = integers(kRows, kInputs);
  const auto device_x = place(x, kInputs, kPoison);
  const auto device_d = place(Matrices(1, kStacked, kWidest), kWidest, kCanary);
  Matrices expected(1, kStacked, kWidest);  // columns beyond a product keep their 0
  std::vector<std::unique_ptr<DeviceMatrices>> device_dy;
  std::vector<mp_gemm_group_item_t> items;
  for (int64_t i = 0; i < 3; ++i) {
    const Matrices dy = integers(kRows, kOutputs[i]);
    const Matrices product = oracle::multiply(transposed(x), dy, 1);
    for (int64_t row = 0; row < kInputs; ++row) {
      for (int64_t j = 0; j < kOutputs[i]; ++j) {
        expected.at(0, i * kInputs + row, j) = product.at(0, row, j);
      }
    }
    device_dy.push_back(place(dy, kOutputs[i], kPoison));
    mp_gemm_group_item_t item = mp_gemm_group_item_default(kInputs, kOutputs[i], kRows);
    item.ld_a = kInputs;
    item.ld_c = item.ld_d = kWidest;
    item.A = device_x->data();
    item.B = device_dy.back()->data();
    item.D = static_cast<uint8_t *>(device_d->data()) + i * kInputs * kWidest * 2;
    items.push_back(item);
  }
  mp_gemm_desc_t desc = mp_gemm_desc_default(0, 0, 0, MP_FP16, MP_FP16);
  desc.op_a = MP_OP_T;
  const DeviceWorkspace workspace(mp_gemm_grouped_workspace_size, context(), &desc, 3, items.data(),
                                  nullptr);
  require_ok(mp_gemm_grouped(context(), &desc, 3, items.data(), nullptr, workspace.data(),
                             workspace.bytes(), kStream));
  require_ok(mp_stream_sync(context(), kStream));
  CHECK(device_d->download().values == expected.values);
  CHECK(device_d->damage() == "");
}

TEST_CASE("gemm group: each kernel is logged once, only slowed products are named",
          "[gemm][short]") {
  const UniqueContext fresh = make_context();  // the log state is kept per context

  const DeviceArray zeros(MP_FP16, std::vector<double>(64 * 64, 0.0));
  const DeviceArray d(MP_FP16, 2 * 64 * 64);
  const mp_gemm_desc_t desc = mp_gemm_desc_default(0, 0, 0, MP_FP16, MP_FP16);
  mp_gemm_group_item_t items[2] = {mp_gemm_group_item_default(64, 64, 64),
                                   mp_gemm_group_item_default(8, 20, 8)};
  for (int i = 0; i < 2; ++i) {
    items[i].A = items[i].B = zeros.data();
    items[i].D = static_cast<uint8_t *>(d.data()) + i * 64 * 64 * 2;
  }
  const DeviceWorkspace workspace(mp_gemm_grouped_workspace_size, fresh.get(), &desc, 2, items,
                                  nullptr);
  const auto multiply = [&] {
    require_ok(mp_gemm_grouped(fresh.get(), &desc, 2, items, nullptr, workspace.data(),
                               workspace.bytes(), kStream));
    require_ok(mp_stream_sync(fresh.get(), kStream));
  };
  const LogLines logged(MP_LOG_INFO);
  multiply();
  multiply();
  const std::vector<std::string> &lines = logged.all();
  REQUIRE(!lines.empty());
  CHECK(logged.count_with("a slower path") == 0);
  CHECK(std::set<std::string>(lines.begin(), lines.end()).size() == lines.size());
  CHECK(logged.starting_with("mp_gemm_grouped: ") == lines);
}

TEST_CASE("gemm group: printing and parsing preserve a case", "[gemm][short]") {
  GroupCase c =
      make_group({{129, 64, 72}, {0, 5, 3}, {64, 8, 16, 5, "ad", true}}, "TN", {MP_BF16, MP_FP32});
  c.common.beta = -2.0f;
  c.common.kernel = "simt_64x64x16";
  const std::string line = to_string(c);
  CHECK(line ==
        "m=1 n=1 k=1 op=TN ab=bf16 cd=fp32 beta=-2 kernel=simt_64x64x16 "
        "items=129x64x72,0x5x3,64x8x16+5@ad!");
  CHECK(to_string(parse_group_case(line)) == line);
  CHECK_THROWS(parse_group_case("m=1 items=1x2"));
}

TEST_CASE("gemm group: the case in MP_REPRO", "[.repro-group]") {
  const char *const line = std::getenv("MP_REPRO");
  REQUIRE(line != nullptr);
  const GroupCase c = parse_group_case(line);
  GroupRun run(c);
  check_launch(run, c.common.kernel, Misaligned::kNo);
}
