// Many products in one call: by stride, with one operand shared, and by arrays of pointers.
#include "gemm_run.h"

using namespace mptest;

namespace {

GemmCase batch_case(const Types &types, const std::string &op) {
  GemmCase c = gemm_case(65, 37, 41, op, types);
  c.batch = 3;
  return c;
}

}  // namespace

TEST_CASE("gemm batch: strides", "[gemm][short]") {
  for (const Types &types : kOneOfEach) {
    for (const char *const op : kAllOps) {
      GemmCase c = batch_case(types, op);
      c.beta = 1.0f;
      check_every_kernel(c);
      c.pad = 3;
      c.multiple = 1;
      check_every_kernel(c);
    }
  }
}

TEST_CASE("gemm batch: stride 0 shares A, B or both", "[gemm][short]") {
  for (const auto &[shared_a, shared_b] :
       {std::pair{true, false}, std::pair{false, true}, std::pair{true, true}}) {
    GemmCase c = batch_case({MP_FP16, MP_FP16}, "NT");
    c.shared_a = shared_a;
    c.shared_b = shared_b;
    c.pad = 3;
    check_every_kernel(c);
  }
}

TEST_CASE("gemm batch: in place", "[gemm][short]") {
  GemmCase c = batch_case({MP_FP16, MP_FP32}, "TN");
  c.beta = -3.0f;
  c.in_place = true;
  check_every_kernel(c);
}

TEST_CASE("gemm batch: the epilogue counts every item", "[gemm][short]") {
  for (const mp_activation_t activation : {MP_ACT_RELU, MP_ACT_DRELU}) {
    GemmCase c = batch_case({MP_FP16, MP_FP16}, "NN");
    c.pad = 3;
    c.bias = MP_FP16;
    c.activation = activation;
    c.aux = c.dbias = c.amax = c.found_inf = true;
    check_every_kernel(c);
    check_library_choice(c);
  }
}

TEST_CASE("gemm batch: more items than one grid dimension holds", "[gemm]") {
  // gridDim.y and .z end at 65535.
  GemmCase c = batch_case({MP_FP32, MP_FP32}, "NN");
  c.m = c.n = c.k = 1;
  c.multiple = 1;
  c.batch = 65537;
  check_library_choice(c);
}

TEST_CASE("gemm batch: arrays of pointers", "[gemm][short]") {
  for (const Types &types : kOneOfEach) {
    for (const char *const op : kAllOps) {
      GemmCase c = batch_case(types, op);
      c.pointers = true;
      c.beta = 1.0f;
      for (const int64_t batch : {c.batch, int64_t{1}}) {
        c.batch = batch, c.offset = 0;
        check_every_kernel(c);
        c.offset = 1;
        check_every_kernel(c);
        check_library_choice(c);
      }
    }
  }
}

TEST_CASE("gemm batch: one misaligned pointer among aligned ones", "[gemm][short]") {
  // The host does not see the pointers: every kernel has to cope.
  for (const Types &types : kOneOfEach) {
    for (const char *const op : {"NN", "TT"}) {
      for (const char *const stray : {"a1", "b0", "c2", "d1", "abcd2"}) {
        GemmCase c = batch_case(types, op);
        c.pointers = true;
        c.beta = 1.0f;
        c.stray = stray;
        check_every_kernel(c);
        check_library_choice(c);
      }
    }
  }
}

TEST_CASE("gemm batch: one misaligned pointer, in place, split and with the epilogue", "[gemm]") {
  for (const char *const stray : {"a0", "b2", "d1"}) {
    GemmCase c = batch_case({MP_FP16, MP_FP16}, "NT");
    c.pointers = true;
    c.stray = stray;
    c.beta = 2.0f;
    c.in_place = true;
    c.bias = MP_FP32;
    c.found_inf = true;
    check_every_kernel(c);
    c.k = 600;
    check_every_kernel(c);
    c.m = 300;  // more tiles than one per item
    c.n = 270;
    c.k = 96;
    check_every_kernel(c);
  }
}

TEST_CASE("gemm batch: arrays of pointers with shared, in-place and absent matrices",
          "[gemm][short]") {
  GemmCase c = batch_case({MP_FP16, MP_FP16}, "NT");
  c.pointers = true;
  c.shared_b = true;
  c.bias = MP_FP32;
  c.found_inf = true;
  check_every_kernel(c);

  GemmRun without_c(c);
  without_c.null_c = true;
  require_ok(without_c.launch(""));
  expect_none(without_c.verify(), without_c.repro());

  c.beta = 2.0f;
  c.in_place = true;
  check_every_kernel(c);
}
