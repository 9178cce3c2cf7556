// The fields of a ConvCase.
#include "conv_case.h"

#include "tests/support/case_text.h"

namespace mptest {

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

}  // namespace mptest
