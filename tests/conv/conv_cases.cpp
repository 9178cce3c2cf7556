// Draws convolutions: see conv_cases.h.
#include "conv_cases.h"

#include "conv_run.h"
#include "oracle_conv.h"
#include "tests/support/any.h"

namespace mptest {

namespace {

constexpr mp_conv_op_t kPasses[] = {MP_CONV_FPROP, MP_CONV_DGRAD, MP_CONV_WGRAD};

ConvCase draw_shape(Random &random) {
  constexpr int32_t kGroups[] = {1, 1, 1, 1, 2, 3, 8};
  constexpr int32_t kChannels[] = {1, 2, 3, 4, 5, 7, 8, 8, 16, 16, 24, 33, 40};
  constexpr int32_t kFilters[] = {1, 1, 2, 3, 3, 3, 4, 5, 7};
  constexpr int32_t kStrides[] = {1, 1, 1, 2, 2, 3};
  constexpr int32_t kDilations[] = {1, 1, 1, 2, 3};
  const auto extent = [&] { return static_cast<int32_t>(random.integer(1, 14)); };
  const auto pad = [&](int32_t filter) { return static_cast<int32_t>(random.integer(0, filter)); };

  const int32_t groups = any(random, kGroups);
  const bool depthwise = one_in(8, random);
  const int32_t group_c = depthwise ? 1 : any(random, kChannels);
  ConvCase v;
  v.c = groups * group_c;
  v.n = one_in(40, random) ? 0 : static_cast<int32_t>(random.integer(1, 3));
  v.h = one_in(6, random) ? 1 : extent();
  v.r = v.h == 1 ? 1 : any(random, kFilters);
  v.k = groups * any(random, kChannels);
  v.s = any(random, kFilters);
  v.w = extent();
  v.groups = groups;
  v.stride_h = any(random, kStrides);
  v.stride_w = any(random, kStrides);
  v.dilation_h = any(random, kDilations);
  v.dilation_w = any(random, kDilations);
  if (one_in(3, random)) return v;
  v.pad_right = pad(v.s);
  v.pad_left = pad(v.s);
  v.pad_bottom = pad(v.r);
  v.pad_top = pad(v.r);
  return v;
}

int64_t products(const ConvCase &v) {
  const oracle::Convolution shape = convolution_of(v);
  return shape.n * shape.p() * shape.q() * shape.k * shape.r * shape.s * shape.group_c();
}

}  // namespace

ConvCase random_conv(Random &random, int64_t most_products) {
  constexpr float kAlphas[] = {1.0f, 1.0f, -1.0f, 2.0f};
  constexpr float kBetas[] = {0.0f, 0.0f, 0.0f, 1.0f, -2.0f};
  constexpr Fill kFills[] = {Fill::kExact, Fill::kExact, Fill::kRounding, Fill::kReal};
  constexpr const char *kStrays[] = {"", "1", "2", "d", "x", "2d"};
  ConvCase v = draw_shape(random);
  const auto is_wanted = [&] {
    const int64_t count = products(v);
    return count <= most_products && (count > 0 || one_in(10, random));
  };
  while (!is_wanted()) v = draw_shape(random);
  v.ab = any(random, kDtypes);
  v.cd = any(random, kDtypes);
  v.op = any(random, kPasses);
  v.alpha = any(random, kAlphas);
  v.beta = any(random, kBetas);
  v.fill = any(random, kFills);
  if (one_in(6, random)) v.offset = 1;
  if (one_in(6, random)) v.stray = any(random, kStrays);
  v.seed = random.integer(1, 1 << 20);
  return v;
}

ConvCase random_conv_with_epilogue(Random &random, int64_t most_products) {
  constexpr mp_activation_t kActivations[] = {
      MP_ACT_NONE, MP_ACT_NONE,  MP_ACT_RELU,     MP_ACT_GELU,     MP_ACT_SIGMOID,
      MP_ACT_TANH, MP_ACT_DRELU, MP_ACT_DGELU,    MP_ACT_DSIGMOID, MP_ACT_DTANH,
      MP_ACT_SILU, MP_ACT_DSILU, MP_ACT_GELU_ERF, MP_ACT_DGELU_ERF};
  constexpr mp_dtype_t kBiases[] = {MP_DTYPE_NONE, MP_FP16, MP_BF16, MP_FP32};
  ConvCase v = random_conv(random, most_products);
  v.scale = one_in(2, random) ? 2.0f : 0.0f;
  v.amax = one_in(2, random);
  v.found_inf = one_in(2, random);
  if (v.op == MP_CONV_WGRAD) return v;
  v.activation = any(random, kActivations);
  v.bias = any(random, kBiases);
  v.dbias = one_in(2, random);
  v.aux = reads_aux(v) || one_in(2, random);
  v.aux_pad = v.aux && one_in(2, random) ? random.integer(1, 8) : 0;
  return v;
}

}  // namespace mptest
