// The epilogue of mp_gemm: each option alone, then together, forward and backward.
#include "gemm_run.h"

using namespace mptest;

namespace {

/// Off the tiles in every direction, with its own padding for C, D and aux.
GemmCase base_case(const Types &types) {
  GemmCase c = gemm_case(131, 69, 50, "NN", types);
  c.pad = 3;
  return c;
}

constexpr Types kTypes[] = {
    {MP_FP16, MP_FP16}, {MP_FP16, MP_FP32}, {MP_BF16, MP_BF16}, {MP_FP32, MP_FP32}};

}  // namespace

TEST_CASE("epilogue: scale multiplies alpha", "[gemm][short]") {
  for (const Types &types : kTypes) {
    GemmCase c = base_case(types);
    c.scale = 2.0f;
    c.alpha = -1.0f;
    c.beta = 1.0f;
    check_every_kernel(c);
    c.fill = Fill::kReal;
    c.scale = 1.0f / 3.0f;
    check_every_kernel(c);
  }
}

TEST_CASE("epilogue: bias of every type, aligned or not", "[gemm]") {
  for (const Types &types : kTypes) {
    for (const mp_dtype_t bias : {MP_FP16, MP_BF16, MP_FP32}) {
      for (const int64_t offset : {0, 1}) {
        GemmCase c = base_case(types);
        c.bias = bias;
        c.offset = offset;
        check_every_kernel(c);
      }
    }
  }
}

TEST_CASE("epilogue: forward activations, with and without aux", "[gemm][short]") {
  for (const Types &types : kTypes) {
    for (const mp_activation_t activation : kForwardActivations) {
      for (const bool aux : {false, true}) {
        GemmCase c = base_case(types);
        c.activation = activation;
        c.aux = aux;
        check_every_kernel(c);
        c.fill = Fill::kReal;
        check_every_kernel(c);
      }
    }
  }
}

TEST_CASE("epilogue: backward activations read aux", "[gemm][short]") {
  for (const Types &types : kTypes) {
    for (const mp_activation_t activation : kBackwardActivations) {
      GemmCase c = base_case(types);
      c.activation = activation;
      c.aux = true;
      check_every_kernel(c);
      c.fill = Fill::kReal;
      check_every_kernel(c);
    }
  }
}

TEST_CASE("epilogue: aux with the rows of D", "[gemm]") {
  for (const mp_activation_t activation : {MP_ACT_RELU, MP_ACT_DRELU}) {
    GemmCase c = base_case({MP_FP16, MP_FP16});
    c.activation = activation;
    c.aux = true;
    c.pad = 0;  // ld_aux = 0 then
    check_every_kernel(c);
    c.offset = 1;
    c.multiple = 1;
    check_every_kernel(c);
  }
}

TEST_CASE("epilogue: amax and found_inf look at D as rounded", "[gemm][short]") {
  for (const Types &types : kTypes) {
    GemmCase c = base_case(types);
    c.amax = true;
    check_every_kernel(c);
    c.amax = false;
    c.found_inf = true;
    check_every_kernel(c);
    c.amax = true;
    c.fill = Fill::kReal;
    check_every_kernel(c);
  }
}

TEST_CASE("epilogue: the forward pass of a layer", "[gemm][short]") {
  for (const mp_activation_t activation : kForwardActivations) {
    GemmCase c = base_case({MP_FP16, MP_FP16});
    c.op = "NT";
    c.bias = MP_FP32;
    c.activation = activation;
    c.aux = c.amax = c.found_inf = true;
    check_every_kernel(c);
    check_library_choice(c);
  }
}

TEST_CASE("epilogue: the backward pass of a layer", "[gemm][short]") {
  for (const mp_activation_t activation : kBackwardActivations) {
    GemmCase c = base_case({MP_FP16, MP_FP16});
    c.scale = 0.5f;
    c.fill = Fill::kReal;
    c.activation = activation;
    c.aux = c.dbias = c.amax = c.found_inf = true;
    check_every_kernel(c);
    check_library_choice(c);
  }
}

TEST_CASE("epilogue: everything at once, in place", "[gemm][short]") {
  for (const Types &types : kTypes) {
    GemmCase c = base_case(types);
    c.op = "TN";
    c.alpha = -1.0f;
    c.beta = -2.0f;
    c.scale = 2.0f;
    c.bias = MP_BF16;
    c.activation = MP_ACT_RELU;
    c.in_place = true;
    c.aux = c.dbias = c.amax = c.found_inf = true;
    check_every_kernel(c);
  }
}
