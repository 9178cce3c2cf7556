// mp_gemm: every kernel by name on every operand order, type and awkward shape.
//
// Integer fills are compared bit for bit, reals with the bounds of bounds.h.  GemmRun::verify also
// checks guard zones, padding and inputs, and C holds NaN wherever it must not be read.
#include <cstdlib>

#include "gemm_group.h"
#include "gemm_ragged.h"

using namespace mptest;

// Tiles are 64, 128 or 256 wide and take 16 or 32 of k at a time: multiples of them, one more and
// one less, 1, primes, long and thin, k = 0.
const std::string kShapes =
    "m/n/k=1/1/1|1/129/64|127/1/33|128/128/64|256/128/32|257/129/31|129/255/65|64/64/128|63/65/7|"
    "17/19/23|5/300/300|2/3/0 op=NN|NT|TN|TT ";

TEST_CASE("gemm: every kernel and order is exact on every shape", "[gemm]") {
  check_every_kernel(kShapes + "types=each");
}

TEST_CASE("gemm: every kernel, order and type is exact on every shape", "[gemm][long]") {
  check_every_kernel(kShapes + "types=all");
}

TEST_CASE("gemm: every kernel and order is exact", "[gemm][short]") {
  check_every_kernel("m=129 n=65 k=72 op=NN|NT|TN|TT types=each");
}

TEST_CASE("gemm: rows longer than the matrix leave the padding alone", "[gemm][short]") {
  check_every_kernel("m=67 n=131 k=45 op=NN|NT|TN|TT types=each beta=1 pad=5 multiple=1|8");
}

TEST_CASE("gemm: pointers and rows of any alignment", "[gemm]") {
  check_kernels_and_choice(
      "m=65 n=130 k=70 op=NN|NT|TN|TT types=all beta=1 offset=1 multiple=1|2|4|8");
}

TEST_CASE("gemm: misaligned by one element", "[gemm][short]") {
  check_kernels_and_choice("m=33 n=130 k=40 op=TN cd=fp16 offset=1");
}

TEST_CASE("gemm: alpha and beta, D beside C and in its place", "[gemm][short]") {
  check_every_kernel("m=70 n=137 k=40 op=NT types=each alpha=0|1|-2 beta=0|1|-3 in_place=0|1");
}

TEST_CASE("gemm: C may be NULL when beta is 0", "[gemm][short]") {
  GemmRun run(gemm_case("m=20 n=30 k=40 cd=fp16"));
  run.null_c = true;
  for (const std::string &kernel : run.kernels()) check_launch(run, kernel, Misaligned::kNo);
}

TEST_CASE("gemm: k = 0 leaves the epilogue of beta C", "[gemm][short]") {
  check_kernels_and_choice(
      "m=66 n=70 k=0 cd=fp16 beta=0|1|-3 bias=fp32 activation=relu aux=1 dbias=1 amax=1 "
      "found_inf=1");
}

TEST_CASE("gemm: empty problems do nothing but clear dbias", "[gemm][short]") {
  check_library_choice("m/n/k=0/5/7|5/0/7|0/0/0 dbias=1 amax=1 found_inf=1");
  check_library_choice("m=5 n=6 k=7 batch=0 dbias=1");
}

TEST_CASE("gemm: integers beyond 16 bits are rounded once, to nearest even", "[gemm][short]") {
  check_every_kernel("m/n/k=129/65/7|64/130/200 op=NT types=all fill=rounding beta=1");
}

TEST_CASE("gemm: reals stay within the derived bound, with the same bits twice", "[gemm][long]") {
  for (const GemmCase &c :
       gemm_cases("m=130 n=67 k=555 op=NN|NT|TN|TT types=all fill=real alpha=0.3 beta=-1.7")) {
    GemmRun run(c);
    for (const std::string &kernel : run.kernels()) check_same_bits(run, kernel);
  }
}

TEST_CASE("gemm: reals of very different size", "[gemm][short]") {
  // alpha, 2^-20, puts D among the subnormals of fp16, and C far above them.
  check_every_kernel(
      "m=65 n=64 k=100 op=TN cd=fp16 fill=real alpha=9.5367431640625e-07 beta=0|1000");
}

TEST_CASE("gemm: many tiles in both directions", "[gemm]") {
  // More rows and columns of tiles than any grouping of blocks for L2 takes at a time.
  check_every_kernel("m=1030 n=520 k=40 cd=fp16");
  check_every_kernel("m=70 n=4100 k=33 op=TT ab=bf16");
}

TEST_CASE("gemm: a case prints as a line that reads back as the same case", "[gemm][short]") {
  const std::string line =
      "m=129 n=64 k=72 op=TN ab=bf16 cd=fp32 alpha=-2 batch=3 shared_b=1 fill=real "
      "activation=dgelu bias=fp16 seed=7 kernel=simt_64x64x16";
  const GemmCase c = gemm_case(line);
  CHECK((c.m == 129 && c.cd == MP_FP32 && c.alpha == -2 && c.shared_b && c.fill == Fill::kReal));
  for (const std::string &each : {line, line + " items=129x64x72,0x5x3,64x8x16+5@ad!",
                                  line + " ragged=k infinite=7 ends=1,-5,90"})
    CHECK(to_string(gemm_case(each)) == each);
  for (const char *const wrong : {"m=1 rows=2", "m=1 items=1x2", "m=1 ragged=n"})
    CHECK_THROWS(gemm_case(wrong));
}

TEST_CASE("gemm: a line with alternatives stands for every combination", "[gemm][short]") {
  std::string lines;
  for (const GemmCase &c : gemm_cases("m=1|2 k/cd=3/fp16|4/fp32 m=5|6"))
    lines += to_string(c) + '\n';
  const std::string wanted =
      "m=5 n=1 k=3 op=NN ab=fp16 cd=fp16\nm=5 n=1 k=3 op=NN ab=fp16 cd=fp16\n"
      "m=5 n=1 k=4 op=NN ab=fp16 cd=fp32\nm=5 n=1 k=4 op=NN ab=fp16 cd=fp32\n";
  CHECK(lines.starts_with(wanted));
  CHECK(lines.size() == 2 * wanted.size());
  CHECK(gemm_cases("types=all").size() == std::size(kDtypes) * std::size(kDtypes));
  CHECK(gemm_cases("types=each activation=backward").back().activation == MP_ACT_DGELU_ERF);
  CHECK(gemm_cases("k=3 k=4").front().k == 4);
  for (const char *const wrong :
       {"m", "m=", "m=3|", "m=3||4", "m=|3", "m/k=3/4|5", "m/k=3/|4/5", "m/k=3|4", "m=3/4", "m=3x",
        "m=3,4", "rows=3", "m/rows=3/4", "cd=fp17", "types=some", "activation=forwards"}) {
    CAPTURE(wrong);
    CHECK_THROWS(gemm_cases(wrong));
  }
  CHECK_THROWS_WITH(gemm_cases("m=1|2 cd=fp16|fp17"), "not a value of the field: cd=fp17");
  CHECK(gemm_case(to_string(gemm_case("alpha=0.33333334"))).alpha == 0.33333334f);
}

TEST_CASE("gemm: the case in MP_REPRO", "[.repro]") {
  const char *const line = std::getenv("MP_REPRO");
  REQUIRE(line != nullptr);
  const GemmCase c = gemm_case(line);
  const auto launch = [&](auto run) { check_launch(run, c.kernel, Misaligned::kNo); };
  if (!c.items.empty()) return launch(GroupRun(c));
  if (!c.ends.empty()) return launch(RaggedRun(c));
  launch(GemmRun(c));
}
