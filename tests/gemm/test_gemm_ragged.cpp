// mp_gemm_ragged: groups whose sizes only the device has.  RaggedRun checks every element of D,
// guard zones around it, and that NaN past the last end affects nothing.
#include <algorithm>
#include <cstdlib>

#include "gemm_ragged.h"
#include "gemm_run.h"

using namespace mptest;

namespace {

constexpr mp_ragged_t kDimensions[] = {MP_RAGGED_M, MP_RAGGED_K};

/// Returns a case that is small compared with a tile; the groups share dimension `dimension`.
RaggedCase make_case(mp_ragged_t dimension, int64_t bound, const std::vector<int32_t> &ends,
                     const std::string &op = "NN", const Types &types = kAllTypes[0]) {
  RaggedCase c;
  c.dimension = dimension;
  c.m = dimension == MP_RAGGED_M ? bound : 72;
  c.n = 40;
  c.k = dimension == MP_RAGGED_M ? 24 : bound;
  c.ends = ends;
  c.op = op;
  c.ab = types.ab;
  c.cd = types.cd;
  return c;
}

/// Ends that give one element, none and many tiles, with unaligned starts.
const std::vector<int32_t> kUneven = {1, 1, 70, 70, 75, 210, 211, 211};

std::vector<int32_t> many_groups(int count, int64_t bound, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> ends;
  for (int i = 0; i < count; ++i) ends.push_back(static_cast<int32_t>(random.integer(0, bound)));
  std::sort(ends.begin(), ends.end());
  return ends;
}

RaggedCase random_case(Random &random) {
  RaggedCase c;
  c.dimension = random.integer(0, 1) == 0 ? MP_RAGGED_M : MP_RAGGED_K;
  c.m = random.integer(1, 150);
  c.n = random.integer(1, 150);
  c.k = random.integer(0, 150);
  (c.dimension == MP_RAGGED_M ? c.m : c.k) = random.integer(1, 400);
  c.ends = many_groups(static_cast<int>(random.integer(1, 40)),
                       c.dimension == MP_RAGGED_M ? c.m : c.k, random.bits());
  c.op = kAllOps[random.integer(0, 3)];
  const Types types = kAllTypes[random.integer(0, 8)];
  c.ab = types.ab;
  c.cd = types.cd;
  c.beta = static_cast<float>(random.integer(-1, 1));
  c.scale = random.integer(0, 1) == 0 ? 0.0f : 2.0f;
  c.in_place = c.beta != 0.0f && random.integer(0, 1) == 0;
  c.shared_b = c.dimension == MP_RAGGED_M && random.integer(0, 3) == 0;
  c.pad = random.integer(0, 9);
  c.multiple = random.integer(0, 1) == 0 ? 8 : 1;
  c.offset = random.integer(0, 3) == 0 ? 1 : 0;
  c.found_inf = random.integer(0, 1) == 0;
  return c;
}

}  // namespace

TEST_CASE("gemm ragged: generated problems", "[gemm]") {
  Random random(11);
  for (int i = 0; i < 30; ++i) check_ragged(random_case(random));
}

TEST_CASE("gemm ragged: every kernel, order and type is exact", "[gemm]") {
  for (const mp_ragged_t dimension : kDimensions) {
    for (const Types &types : kAllTypes) {
      for (const char *const op : {"NN", "NT", "TN", "TT"}) {
        RaggedCase c = make_case(dimension, 230, kUneven, op, types);
        const std::vector<std::string> ran = check_ragged(c);
        CHECK(std::count(ran.begin(), ran.end(), "simt_64x64x16") == 1);
        const bool shares_rows = dimension == MP_RAGGED_M ? op[0] == 'T' : std::string(op) != "TN";
        const bool expects_wgmma = device_info().arch == 90 && types.ab != MP_FP32 && !shares_rows;
        CHECK(std::any_of(ran.begin(), ran.end(), is_wgmma) == expects_wgmma);
        c.beta = -2.0f;
        c.alpha = 2.0f;
        check_ragged(c);
      }
    }
  }
}

TEST_CASE("gemm ragged: every kernel and order is exact", "[gemm][wgmma][short]") {
  for (const mp_ragged_t dimension : kDimensions) {
    for (const Types &types : kOneOfEach) {
      for (const char *const op : {"NN", "TT"}) {
        RaggedCase c = make_case(dimension, 90, {1, 1, 67, 67, 85}, op, types);
        c.beta = 1.0f;
        check_ragged(c);
      }
    }
  }
}

TEST_CASE("gemm ragged: only empty groups, one full group, any last end", "[gemm][short]") {
  for (const mp_ragged_t dimension : kDimensions) {
    for (const Types &types : kOneOfEach) {
      for (const std::vector<int32_t> &ends :
           {std::vector<int32_t>{0}, {0, 0, 0}, {130}, {129}, {1}, {0, 130, 130}, {0, 0, 64}})
        check_ragged(make_case(dimension, 130, ends, "NN", types));
    }
  }
}

TEST_CASE("gemm ragged: invalid ends cause no access outside the matrices", "[gemm][short]") {
  for (const mp_ragged_t dimension : kDimensions) {
    for (const Types &types : kOneOfEach) {
      for (const std::vector<int32_t> &ends : {std::vector<int32_t>{-5, 20, 10, 999, 30},
                                               {INT32_MAX, INT32_MIN, 5},
                                               {-1, -2},
                                               {70, 66},
                                               {INT32_MIN, 3, INT32_MAX}}) {
        RaggedCase c = make_case(dimension, 66, ends, "TN", types);
        c.beta = 1.0f;
        check_ragged(c);
      }
    }
  }
}

TEST_CASE("gemm ragged: more groups than a warp has lanes", "[gemm][short]") {
  for (const mp_ragged_t dimension : kDimensions) {
    for (const int count : {32, 33, 100}) {
      RaggedCase c = make_case(dimension, 150, many_groups(count, 150, 3));
      c.n = 9;
      c.m = dimension == MP_RAGGED_M ? c.m : 11;
      check_ragged(c);
    }
  }
}

TEST_CASE("gemm ragged: several tiles in both directions", "[gemm][wgmma]") {
  for (const mp_ragged_t dimension : kDimensions) {
    for (const Types &types : kOneOfEach) {
      RaggedCase c = make_case(dimension, 700, {3, 400, 401, 401, 690}, "NT", types);
      c.n = 300;
      c.m = dimension == MP_RAGGED_M ? c.m : 330;
      check_ragged(c);
    }
  }
}

TEST_CASE("gemm ragged: one B for all groups, padded rows, in-place D", "[gemm][short]") {
  for (const mp_ragged_t dimension : kDimensions) {
    for (const Types &types : kOneOfEach) {
      for (const int64_t multiple : {1, 8}) {
        RaggedCase c = make_case(dimension, 140, {5, 80, 133}, "TN", types);
        c.shared_b = dimension == MP_RAGGED_M;
        c.pad = 3;
        c.multiple = multiple;
        c.beta = 3.0f;
        c.in_place = true;
        c.scale = 2.0f;
        check_ragged(c);
      }
    }
  }
}

TEST_CASE("gemm ragged: operands that are not 16-byte aligned", "[gemm][short]") {
  for (const mp_ragged_t dimension : kDimensions) {
    for (const Types &types : kOneOfEach) {
      RaggedCase c = make_case(dimension, 100, {5, 60, 99}, "NN", types);
      c.offset = 1;
      check_ragged(c);
      RaggedRun run(c);
      for (const std::string &kernel : run.kernels())
        CHECK((run.launch(kernel) == MP_ERROR_UNSUPPORTED) == is_wgmma(kernel));
    }
  }
}

TEST_CASE("gemm ragged: empty problems", "[gemm][short]") {
  for (const Types &types : kOneOfEach) {
    RaggedCase by_m = make_case(MP_RAGGED_M, 100, {5, 60, 99}, "NN", types);
    by_m.k = 0;
    by_m.beta = 2.0f;
    check_ragged(by_m);
    RaggedCase by_k = make_case(MP_RAGGED_K, 0, {0, 5, 0}, "NN", types);
    by_k.beta = 2.0f;
    check_ragged(by_k);
  }
}

TEST_CASE("gemm ragged: an infinity affects only its group, found_inf and amax", "[gemm][short]") {
  for (const mp_ragged_t dimension : kDimensions) {
    for (const Types &types : kOneOfEach) {
      for (const int64_t infinite : {-1, 0, 69, 70, 99}) {  // 99 is in no group
        RaggedCase c = make_case(dimension, 100, {1, 70, 70, 95}, "NN", types);
        c.found_inf = c.amax = true;
        c.infinite = infinite;
        check_ragged(c);
      }
    }
  }
}

TEST_CASE("gemm ragged: an infinity in A does not reach D if alpha = 0 or *scale = 0",
          "[gemm][short]") {
  for (const mp_ragged_t dimension : kDimensions)
    for (const bool on_device : {false, true}) {
      RaggedCase c = make_case(dimension, 230, kUneven);
      c.alpha = on_device ? 2.0f : 0.0f;
      c.zero_scale = on_device;
      c.infinite = 72;
      c.beta = 1.0f;  // amax then also depends on written rows
      c.amax = c.found_inf = true;
      check_ragged(c);
    }
}

TEST_CASE("gemm ragged: a repeated call reads the current ends", "[gemm][short]") {
  for (const mp_ragged_t dimension : kDimensions) {
    for (const Types &types : kOneOfEach) {
      RaggedRun run(make_case(dimension, 130, {130, 130, 130, 130}, "TN", types));
      for (const std::string &kernel : run.kernels()) {
        run.replay(kernel, {{0, 7, 7, 130}, {130, 130, 130, 130}, {64, 128, 129, 130}});
        expect_none(run.verify(), run.repro());
      }
    }
  }
}

TEST_CASE("gemm ragged: reals are within bounds and have the same bits in repeated calls",
          "[gemm]") {
  for (const mp_ragged_t dimension : kDimensions) {
    for (const Types &types : kOneOfEach) {
      RaggedCase c = make_case(dimension, 230, kUneven, "NT", types);
      c.fill = Fill::kReal;
      RaggedRun run(c);
      for (const std::string &kernel : run.kernels()) check_same_bits(run, kernel);
    }
  }
}

TEST_CASE("gemm ragged: any workspace size is accepted", "[gemm][short]") {
  for (const mp_ragged_t dimension : kDimensions) {
    RaggedRun run(make_case(dimension, 130, {3, 90, 128}));
    const size_t wanted = run.workspace_bytes("");
    for (const size_t bytes : {size_t{0}, wanted / 2, wanted, wanted + 4096})
      check_launch(run, "", bytes);
  }
}

TEST_CASE("gemm ragged: printing and parsing preserve a case", "[gemm][short]") {
  RaggedCase c = make_case(MP_RAGGED_K, 90, {1, -5, 90}, "TN", {MP_BF16, MP_FP32});
  c.beta = -2.0f;
  c.infinite = 7;
  const std::string line = to_string(c);
  CHECK(line == "m=72 n=40 k=90 op=TN ab=bf16 cd=fp32 beta=-2 ragged=k infinite=7 ends=1,-5,90");
  CHECK(to_string(parse_ragged_case(line)) == line);
  CHECK_THROWS(parse_ragged_case("m=1 ragged=n"));
}

TEST_CASE("gemm ragged: the case in MP_REPRO", "[.repro-ragged]") {
  const char *const line = std::getenv("MP_REPRO");
  REQUIRE(line != nullptr);
  const RaggedCase c = parse_ragged_case(line);
  RaggedRun run(c);
  check_launch(run, c.kernel, Misaligned::kNo);
}
