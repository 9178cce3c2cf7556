// mp_gemm_grouped: products of different shapes in one call.  GroupRun checks each product like
// GemmRun, including guard zones around every D.
#include <cmath>
#include <cstdlib>

#include "gemm_group.h"

using namespace mptest;

namespace {

/// Tiles are 64, 128 or 256 wide: full tiles, single elements, primes, long and thin, empty.
const std::string kSeventeen =
    "items=129x64x72,0x5x3,1x1x1,256x128x64,17x300x40,64x64x0,5x0x7,300x17x96,127x65x33,"
    "128x128x128,1x257x64,255x1x200,64x256x96,33x33x33,2x3x500,160x96x8,0x0x0 ";
const std::string kSome = "items=65x130x40,0x8x8,3x5x7,70x8x0,128x64x72 ";

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
  check_group(kSeventeen + "op=NN|NT|TN|TT types=each beta=1");
  check_group(kSome + "op=NT types=all beta=1");
}

TEST_CASE("gemm group: every kernel and order is exact", "[gemm][wgmma][short]") {
  check_group(kSome + "op=NN|NT|TN|TT types=each");
}

TEST_CASE("gemm group: one, two and only empty products", "[gemm][short]") {
  check_group("types=each op/items=NT/129x65x72|TN/1x1x1,200x70x136|NN/0x5x3,5x0x3,0x0x0");
  check_group("types=each");
}

TEST_CASE("gemm group: a hundred products", "[gemm]") {
  for (GemmCase &c : gemm_cases("op=NN|TT types=each beta=-2 found_inf=1")) {
    c.items = many_shapes(100, 5);
    check_group(c);
  }
}

TEST_CASE("gemm group: more products than launch parameters can hold", "[gemm]") {
  GemmCase c = gemm_case("op=NT");
  c.items.assign(1500, {2, 3, 8});
  GroupRun run(c);
  const std::vector<std::string> kernels = run.kernels();
  // One kernel of each kind: all read the table of products alike.
  for (const char *const kernel :
       {"", "simt_64x64x16", "wmma_64x64x32_s4", "wgmma_128x128x64_s6", "wgmma_128x256x64_s4_c2"})
    if (*kernel == '\0' || std::ranges::count(kernels, kernel) > 0)
      check_launch(run, kernel, Misaligned::kNo);
}

TEST_CASE("gemm group: one product of many tiles among small ones", "[gemm][wgmma]") {
  check_group("items=3x5x8,1030x520x40,8x8x8,70x2100x40 op=NT ab=bf16 cd=bf16");
}

TEST_CASE("gemm group: row padding stays unchanged", "[gemm][wgmma][short]") {
  check_group(
      "items=67x131x45+5,64x64x64,3x9x80+2,130x7x16+40 op=TN types=each beta=1 multiple=1|8");
}

TEST_CASE("gemm group: products may share A", "[gemm][short]") {
  // Weight gradients of layers with the same input: dW_i = X^T dY_i.
  check_group("items=40x16x72,40x64x72,40x8x72 op=TN types=each shared_a=1");
}

TEST_CASE("gemm group: one misaligned product among aligned ones", "[gemm][short]") {
  for (const std::string stray : {"a", "b", "c", "d", "abcd"})
    check_group("items=65x130x72,33x64x40@" + stray + ",128x64x64 op=NT types=each beta=1");
}

TEST_CASE("gemm group: alpha, beta and scale, D out of place and in place",
          "[gemm][wgmma][short]") {
  check_group(kSome + "op=NT types=each alpha=-2 beta=0|1|-3 scale=2 in_place=0|1");
}

TEST_CASE("gemm group: integers beyond 16 bits are rounded once, to nearest even",
          "[gemm][short]") {
  check_group(kSome + "op=TN types=each fill=rounding beta=1");
}

TEST_CASE("gemm group: an infinity in A does not reach D if alpha = 0 or *scale = 0",
          "[gemm][short]") {
  check_group("items=64x72x40,33x16x24! alpha/zero_scale=0/0|2/1 beta=1 found_inf=1");
}

TEST_CASE("gemm group: any product raises found_inf, none clears it", "[gemm][short]") {
  // The pointer is null if found_inf = 0.
  check_group(
      "items=65x40x72!,0x3x3,20x130x16,8x8x8|65x40x72,0x3x3,20x130x16!,8x8x8|"
      "65x40x72,0x3x3,20x130x16,8x8x8! cd=fp16 found_inf=0|1 beta=0|1");
  GroupRun run(gemm_case("items=65x40x72,0x3x3,20x130x16,8x8x8 cd=fp16 found_inf=1"));
  for (const float before : {0.0f, 1.0f}) {
    run.found_inf_start = before;
    check_launch(run, "", Misaligned::kNo);
    CHECK(run.found_inf() == before);
  }
}

TEST_CASE("gemm group: any workspace size is accepted", "[gemm][short]") {
  // Split-k is faster for a long k and few tiles.
  GroupRun run(gemm_case("items=64x64x4096,33x40x64,20x64x1000 op=TN cd=fp16"));
  const size_t wanted = run.workspace_bytes("");
  for (const size_t bytes : {size_t{0}, size_t{256}, wanted / 2, wanted, wanted + 4096}) {
    CAPTURE(bytes);
    check_launch(run, "", bytes);
  }
}

TEST_CASE("gemm group: repeated calls give the same bits for any initial workspace", "[gemm]") {
  for (const GemmCase &c :
       gemm_cases("items=130x67x555,64x64x2048,5x9x300 op=NN|NT|TN|TT types=each fill=real "
                  "alpha=0.3 beta=-1.7")) {
    GroupRun run(c);
    check_same_bits(run, "");
  }
}
