// mp_gemm: every kernel by name on every operand order, type and awkward shape.
//
// Integer fills are compared bit for bit, reals with the bounds of bounds.h.  GemmRun::verify also
// checks guard zones, padding and inputs, and C holds NaN wherever it must not be read.
#include <cstdlib>

#include "gemm_run.h"

using namespace mptest;

namespace {

struct Shape {
  int64_t m, n, k;
};
/// Tiles are 64, 128 or 256 wide and take 16 or 32 of k at a time: multiples of them, one more and
/// one less, 1, primes, long and thin, k = 0.
constexpr Shape kShapes[] = {{1, 1, 1},      {1, 129, 64},   {127, 1, 33},   {128, 128, 64},
                             {256, 128, 32}, {257, 129, 31}, {129, 255, 65}, {64, 64, 128},
                             {63, 65, 7},    {17, 19, 23},   {5, 300, 300},  {2, 3, 0}};

}  // namespace

TEST_CASE("gemm: every kernel, order and type is exact on every shape", "[gemm]") {
  for (const Types &types : kAllTypes) {
    for (const char *const op : kAllOps) {
      for (const Shape &shape : kShapes)
        check_every_kernel(gemm_case(shape.m, shape.n, shape.k, op, types));
    }
  }
}

TEST_CASE("gemm: every kernel and order is exact", "[gemm][short]") {
  for (const Types &types : kOneOfEach) {
    for (const char *const op : kAllOps) check_every_kernel(gemm_case(129, 65, 72, op, types));
  }
}

TEST_CASE("gemm: rows longer than the matrix leave the padding alone", "[gemm][short]") {
  for (const Types &types : kOneOfEach) {
    for (const char *const op : kAllOps) {
      GemmCase c = gemm_case(67, 131, 45, op, types);
      c.beta = 1.0f;
      c.pad = 5;
      for (const int64_t multiple : {1, 8}) {
        c.multiple = multiple;
        check_every_kernel(c);
      }
    }
  }
}

TEST_CASE("gemm: pointers and rows of any alignment", "[gemm]") {
  for (const Types &types : kAllTypes) {
    for (const char *const op : kAllOps) {
      GemmCase c = gemm_case(65, 130, 70, op, types);
      c.beta = 1.0f;
      c.offset = 1;
      for (const int64_t multiple : {1, 2, 4, 8}) {
        c.multiple = multiple;
        check_every_kernel(c);
        check_library_choice(c);
      }
    }
  }
}

TEST_CASE("gemm: misaligned by one element", "[gemm][short]") {
  GemmCase c = gemm_case(33, 130, 40, "TN");
  c.offset = 1;
  check_every_kernel(c);
  check_library_choice(c);
}

TEST_CASE("gemm: alpha and beta, D beside C and in its place", "[gemm][short]") {
  for (const Types &types : kOneOfEach) {
    for (const float alpha : {0.0f, 1.0f, -2.0f}) {
      for (const float beta : {0.0f, 1.0f, -3.0f}) {
        for (const bool in_place : {false, true}) {
          GemmCase c = gemm_case(70, 137, 40, "NT", types);
          c.alpha = alpha;
          c.beta = beta;
          c.in_place = in_place;
          check_every_kernel(c);
        }
      }
    }
  }
}

TEST_CASE("gemm: C may be NULL when beta is 0", "[gemm][short]") {
  GemmRun run(gemm_case(20, 30, 40));
  run.null_c = true;
  for (const std::string &kernel : run.kernels()) check_launch(run, kernel, Misaligned::kNo);
}

TEST_CASE("gemm: k = 0 leaves the epilogue of beta C", "[gemm][short]") {
  for (const float beta : {0.0f, 1.0f, -3.0f}) {
    GemmCase c = gemm_case(66, 70, 0);
    c.beta = beta;
    c.bias = MP_FP32;
    c.activation = MP_ACT_RELU;
    c.aux = c.dbias = c.amax = c.found_inf = true;
    check_every_kernel(c);
    check_library_choice(c);
  }
}

TEST_CASE("gemm: empty problems do nothing but clear dbias", "[gemm][short]") {
  for (const Shape &shape : {Shape{0, 5, 7}, Shape{5, 0, 7}, Shape{0, 0, 0}}) {
    GemmCase c = gemm_case(shape.m, shape.n, shape.k, "NN", {MP_FP16, MP_FP32});
    c.dbias = c.amax = c.found_inf = true;
    check_library_choice(c);
  }
  GemmCase no_items = gemm_case(5, 6, 7, "NN", {MP_FP16, MP_FP32});
  no_items.batch = 0;
  no_items.dbias = true;
  check_library_choice(no_items);
}

TEST_CASE("gemm: integers beyond 16 bits are rounded once, to nearest even", "[gemm][short]") {
  for (const Types &types : kAllTypes) {
    for (const Shape &shape : {Shape{129, 65, 7}, Shape{64, 130, 200}}) {
      GemmCase c = gemm_case(shape.m, shape.n, shape.k, "NT", types);
      c.fill = Fill::kRounding;
      c.beta = 1.0f;
      check_every_kernel(c);
    }
  }
}

TEST_CASE("gemm: reals stay within the derived bound, with the same bits twice", "[gemm][long]") {
  for (const Types &types : kAllTypes) {
    for (const char *const op : kAllOps) {
      GemmCase c = gemm_case(130, 67, 555, op, types);
      c.fill = Fill::kReal;
      c.alpha = 0.3f;
      c.beta = -1.7f;
      GemmRun run(c);
      for (const std::string &kernel : run.kernels()) check_same_bits(run, kernel);
    }
  }
}

TEST_CASE("gemm: reals of very different size", "[gemm][short]") {
  // alpha puts D among the subnormals of fp16, and C far above them.
  GemmCase c = gemm_case(65, 64, 100, "TN");
  c.fill = Fill::kReal;
  c.alpha = 0x1p-20f;
  check_every_kernel(c);
  c.beta = 1000.0f;
  check_every_kernel(c);
}

TEST_CASE("gemm: many tiles in both directions", "[gemm]") {
  // More rows and columns of tiles than any grouping of blocks for L2 takes at a time.
  check_every_kernel(gemm_case(1030, 520, 40));
  check_every_kernel(gemm_case(70, 4100, 33, "TT", {MP_BF16, MP_FP32}));
}

TEST_CASE("gemm: a case prints as a line that reads back as the same case", "[gemm][short]") {
  GemmCase c = gemm_case(129, 64, 72, "TN", {MP_BF16, MP_FP32});
  c.alpha = -2.0f;
  c.batch = 3;
  c.shared_b = true;
  c.fill = Fill::kReal;
  c.activation = MP_ACT_DGELU;
  c.bias = MP_FP16;
  c.seed = 7;
  c.kernel = "simt_64x64x16";
  const std::string line = to_string(c);
  CHECK(line ==
        "m=129 n=64 k=72 op=TN ab=bf16 cd=fp32 alpha=-2 batch=3 shared_b=1 fill=real "
        "activation=dgelu bias=fp16 seed=7 kernel=simt_64x64x16");
  CHECK(to_string(parse_gemm_case(line)) == line);
  CHECK_THROWS(parse_gemm_case("m=1 rows=2"));
}

TEST_CASE("gemm: the case in MP_REPRO", "[.repro]") {
  const char *const line = std::getenv("MP_REPRO");
  REQUIRE(line != nullptr);
  check_library_choice(parse_gemm_case(line));
}
