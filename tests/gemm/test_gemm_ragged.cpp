// mp_gemm_ragged: groups whose sizes only the device has.  RaggedRun checks every element of D,
// guard zones around it, and that NaN past the last end affects nothing.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "gemm_ragged.h"
#include "gemm_run.h"
#include "tests/support/any.h"

using namespace mptest;

namespace {

/// Returns groups of m and of k with this bound, small compared with a tile.
std::string both(int bound) {
  return format("ragged/m/k=m/%d/24|k/72/%d n=40 ", bound, bound);
}

/// Ends that give one element, none and many tiles, with unaligned starts.
const std::string kUneven = both(230) + "ends=1,1,70,70,75,210,211,211 ";

std::vector<int32_t> many_groups(int count, int64_t bound, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> ends;
  for (int i = 0; i < count; ++i) ends.push_back(static_cast<int32_t>(random.integer(0, bound)));
  std::sort(ends.begin(), ends.end());
  return ends;
}

GemmCase random_case(Random &random) {
  GemmCase c;
  c.ragged = random.integer(0, 1) == 0 ? MP_RAGGED_M : MP_RAGGED_K;
  c.m = random.integer(1, 150);
  c.n = random.integer(1, 150);
  c.k = random.integer(0, 150);
  (c.ragged == MP_RAGGED_M ? c.m : c.k) = random.integer(1, 400);
  c.ends = many_groups(static_cast<int>(random.integer(1, 40)), c.ragged == MP_RAGGED_M ? c.m : c.k,
                       random.bits());
  c.op = std::array{"NN", "NT", "TN", "TT"}[random.integer(0, 3)];
  c.ab = any(random, kDtypes);
  c.cd = any(random, kDtypes);
  c.beta = static_cast<float>(random.integer(-1, 1));
  c.scale = random.integer(0, 1) == 0 ? 0.0f : 2.0f;
  c.in_place = c.beta != 0.0f && random.integer(0, 1) == 0;
  c.shared_b = c.ragged == MP_RAGGED_M && random.integer(0, 3) == 0;
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
  for (const GemmCase &c : gemm_cases(kUneven + "op=NN|NT|TN|TT types=all")) {
    INFO(to_string(c));
    const std::vector<std::string> ran = check_ragged(c);
    CHECK(std::ranges::count(ran, "simt_64x64x16") == 1);
    const bool shares_rows = c.ragged == MP_RAGGED_M ? c.op[0] == 'T' : c.op != "TN";
    const bool expects_wgmma = device_info().arch == 90 && c.ab != MP_FP32 && !shares_rows;
    CHECK(std::ranges::any_of(ran, is_wgmma) == expects_wgmma);
  }
  check_ragged(kUneven + "op=NN|NT|TN|TT types=each alpha=2 beta=-2");
}

TEST_CASE("gemm ragged: every kernel and order is exact", "[gemm][wgmma][short]") {
  check_ragged(both(90) + "ends=1,1,67,67,85 op=NN|TT types=each beta=1");
}

TEST_CASE("gemm ragged: only empty groups, one full group, any last end", "[gemm][short]") {
  check_ragged(both(130) + "ends=0|0,0,0|130|129|1|0,130,130|0,0,64 types=each");
}

TEST_CASE("gemm ragged: invalid ends cause no access outside the matrices", "[gemm][short]") {
  check_ragged(both(66) +
               "ends=-5,20,10,999,30|2147483647,-2147483648,5|-1,-2|70,66|"
               "-2147483648,3,2147483647 op=TN types=each beta=1");
}

TEST_CASE("gemm ragged: more groups than a warp has lanes", "[gemm][short]") {
  for (GemmCase &c : gemm_cases("ragged/m/k=m/150/24|k/11/150 n=9 cd=fp16")) {
    for (const int count : {32, 33, 100}) {
      c.ends = many_groups(count, 150, 3);
      check_ragged(c);
    }
  }
}

TEST_CASE("gemm ragged: several tiles in both directions", "[gemm][wgmma]") {
  check_ragged("ragged/m/k=m/700/24|k/330/700 n=300 ends=3,400,401,401,690 op=NT types=each");
}

TEST_CASE("gemm ragged: one B for all groups, padded rows, in-place D", "[gemm][short]") {
  check_ragged(
      "ragged/m/k/shared_b=m/140/24/1|k/72/140/0 n=40 ends=5,80,133 op=TN types=each pad=3 "
      "multiple=1|8 beta=3 in_place=1 scale=2");
}

TEST_CASE("gemm ragged: operands that are not 16-byte aligned", "[gemm][short]") {
  for (const GemmCase &c : gemm_cases(both(100) + "ends=5,60,99 types=each offset=1")) {
    INFO(to_string(c));
    check_ragged(c);
    RaggedRun run(c);
    for (const std::string &kernel : run.kernels())
      CHECK((run.launch(kernel) == MP_ERROR_UNSUPPORTED) == is_wgmma(kernel));
  }
}

TEST_CASE("gemm ragged: empty problems", "[gemm][short]") {
  check_ragged("ragged/m/ends=m/100/5,60,99|k/72/0,5,0 n=40 k=0 types=each beta=2");
}

TEST_CASE("gemm ragged: an infinity affects only its group, found_inf and amax", "[gemm][short]") {
  // Row 99 is in no group.
  check_ragged(both(100) + "ends=1,70,70,95 types=each infinite=-1|0|69|70|99 found_inf=1 amax=1");
  check_ragged(both(100) + "ends=1,70,70,95 infinite=70 beta=1 found_inf=1 amax=1");
}

TEST_CASE("gemm ragged: an infinity in A does not reach D if alpha = 0 or *scale = 0",
          "[gemm][short]") {
  // amax also depends on written rows if beta = 1.
  check_ragged(kUneven + "cd=fp16 alpha/zero_scale=0/0|2/1 infinite=72 beta=1 amax=1 found_inf=1");
}

TEST_CASE("gemm ragged: a repeated call reads the current ends", "[gemm][short]") {
  for (const GemmCase &c : gemm_cases(both(130) + "ends=130,130,130,130 op=TN types=each")) {
    RaggedRun run(c);
    for (const std::string &kernel : run.kernels()) {
      run.replay(kernel, {{0, 7, 7, 130}, {130, 130, 130, 130}, {64, 128, 129, 130}});
      expect_none(run.verify(), run.repro());
    }
  }
}

TEST_CASE("gemm ragged: reals are within bounds and have the same bits in repeated calls",
          "[gemm]") {
  for (const GemmCase &c : gemm_cases(kUneven + "op=NT types=each fill=real")) {
    RaggedRun run(c);
    for (const std::string &kernel : run.kernels()) check_same_bits(run, kernel);
  }
}

TEST_CASE("gemm ragged: any workspace size is accepted", "[gemm][short]") {
  for (const GemmCase &c : gemm_cases(both(130) + "ends=3,90,128 cd=fp16")) {
    RaggedRun run(c);
    const size_t wanted = run.workspace_bytes("");
    for (const size_t bytes : {size_t{0}, wanted / 2, wanted, wanted + 4096})
      check_launch(run, "", bytes);
  }
}
