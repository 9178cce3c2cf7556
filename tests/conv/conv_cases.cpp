// The fields of a ConvCase, and generated cases.
#include "conv_cases.h"

#include <iterator>

#include "tests/support/any.h"
#include "tests/support/case_text.h"

namespace mptest {

// ---------------------------------------------------------------------------- fields

namespace {

constexpr size_t kAlwaysPrinted = 10;  // op n h w c k r s ab cd

constexpr auto kEachField = [](auto &c, auto visit) {
  visit("op", c.op);
  visit("n", c.n);
  visit("h", c.h);
  visit("w", c.w);
  visit("c", c.c);
  visit("k", c.k);
  visit("r", c.r);
  visit("s", c.s);
  visit("ab", c.ab);
  visit("cd", c.cd);
  visit("pad_top", c.pad_top);
  visit("pad_bottom", c.pad_bottom);
  visit("pad_left", c.pad_left);
  visit("pad_right", c.pad_right);
  visit("stride_h", c.stride_h);
  visit("stride_w", c.stride_w);
  visit("dilation_h", c.dilation_h);
  visit("dilation_w", c.dilation_w);
  visit("groups", c.groups);
  visit("alpha", c.alpha);
  visit("beta", c.beta);
  visit("offset", c.offset);
  visit("stray", c.stray);
  visit("fill", c.fill);
  visit("special", c.special);
  visit("place", c.place);
  visit("special_in_second", c.special_in_second);
  visit("aux_pad", c.aux_pad);
  each_epilogue_field(c, visit);
  visit("seed", c.seed);
  visit("kernel", c.kernel);
};

constexpr auto kEachFieldOrGroup = [](auto &c, auto visit) {
  kEachField(c, visit);
  std::vector<int32_t> layer;
  constexpr int32_t kUnset = INT32_MIN;
  int32_t pad = kUnset, stride = kUnset, dilation = kUnset;
  visit("layer", layer);
  visit("pad", pad);
  visit("stride", stride);
  visit("dilation", dilation);
  if (!layer.empty()) {
    int32_t *const extents[] = {&c.n, &c.h, &c.w, &c.c, &c.k, &c.r, &c.s};
    if (layer.size() != std::size(extents))
      throw std::invalid_argument("layer is not n,h,w,c,k,r,s");
    for (size_t i = 0; i < layer.size(); ++i) *extents[i] = layer[i];
  }
  if (pad != kUnset) c.pad_top = c.pad_bottom = c.pad_left = c.pad_right = pad;
  if (stride != kUnset) c.stride_h = c.stride_w = stride;
  if (dilation != kUnset) c.dilation_h = c.dilation_w = dilation;
};

}  // namespace

std::string to_string(const ConvCase &c) {
  return to_line(c, kAlwaysPrinted, kEachField);
}

ConvCase conv_case(const std::string &line) {
  return parse_line<ConvCase>(line, kEachFieldOrGroup);
}

std::vector<ConvCase> conv_cases(const std::string &line) {
  return parse_lines<ConvCase>(line, kEachFieldOrGroup);
}

// ---------------------------------------------------------------------------- generated cases

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

}  // namespace

ConvCase random_conv(Random &random, int64_t most_products) {
  constexpr float kAlphas[] = {1.0f, 1.0f, -1.0f, 2.0f};
  constexpr float kBetas[] = {0.0f, 0.0f, 0.0f, 1.0f, -2.0f};
  constexpr Fill kFills[] = {Fill::kExact, Fill::kExact, Fill::kRounding, Fill::kReal};
  constexpr const char *kStrays[] = {"", "1", "2", "d", "x", "2d"};
  ConvCase v = draw_shape(random);
  const auto is_wanted = [&] {
    const int64_t count = v.pixels() * v.elements_of_filter();  // products
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
