// NCHW to NHWC and back: every element, in every type, bit for bit.
#include "tests/support/testing.h"

using namespace mptest;

namespace {

struct Images {
  int64_t n, c, h, w;
  int64_t elems() const { return n * c * h * w; }
};

std::vector<double> to_nhwc(const Images &s, const std::vector<double> &nchw) {
  std::vector<double> nhwc;
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t y = 0; y < s.h; ++y)
      for (int64_t x = 0; x < s.w; ++x)
        for (int64_t c = 0; c < s.c; ++c)
          nhwc.push_back(nchw[static_cast<size_t>(((n * s.c + c) * s.h + y) * s.w + x)]);
  return nhwc;
}

void expect_equal(const std::vector<double> &got, std::vector<double> wanted, mp_dtype_t dtype) {
  REQUIRE(got.size() == wanted.size());
  int64_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) wrong += !same_value(got[i], round_to(dtype, wanted[i]));
  CHECK(wrong == 0);
}

/// Checks both directions.
void check(const Images &s, mp_dtype_t dtype_src, mp_dtype_t dtype_dst, int64_t src_offset = 0,
           int64_t dst_offset = 0) {
  CAPTURE(s.n, s.c, s.h, s.w, mp_dtype_name(dtype_src), mp_dtype_name(dtype_dst), src_offset,
          dst_offset);
  Random random(static_cast<uint64_t>(s.elems()));
  const auto images = random_reals(dtype_src, s.elems(), -60000.0, 60000.0, random);
  const DeviceArray nchw_src(dtype_src, images, src_offset);
  const DeviceArray nhwc_dst(dtype_dst, s.elems(), dst_offset);
  require_ok(mp_nchw_to_nhwc(context(), s.n, s.c, s.h, s.w, nchw_src.data(), dtype_src,
                             nhwc_dst.data(), dtype_dst, kStream));
  expect_equal(nhwc_dst.download(), to_nhwc(s, images), dtype_dst);

  const DeviceArray nhwc_src(dtype_src, to_nhwc(s, images), src_offset);
  const DeviceArray nchw_dst(dtype_dst, s.elems(), dst_offset);
  require_ok(mp_nhwc_to_nchw(context(), s.n, s.c, s.h, s.w, nhwc_src.data(), dtype_src,
                             nchw_dst.data(), dtype_dst, kStream));
  expect_equal(nchw_dst.download(), images, dtype_dst);
}

}  // namespace

TEST_CASE("layout: small, odd and aligned images", "[layers][layout][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    check({1, 1, 1, 1}, dtype, dtype);
    check({3, 1, 5, 7}, dtype, dtype);   // one channel
    check({3, 37, 1, 1}, dtype, dtype);  // one pixel
    check({2, 3, 5, 7}, dtype, dtype);
    check({2, 8, 16, 32}, dtype, dtype);  // few channels, a full tile
    check({2, 7, 27, 19}, dtype, dtype);  // also with a tile and one pixel
    check({2, 600, 2, 3}, dtype, dtype);  // few pixels
    check({1, 64, 8, 8}, dtype, dtype);   // one square tile
    check({2, 65, 7, 9}, dtype, dtype);   // one more and one less
    check({2, 9, 3, 3}, dtype, dtype);
    check({1, 130, 12, 11}, dtype, dtype);
  }
}

TEST_CASE("layout: conversions between all types, aligned or not", "[layers][layout][short]") {
  for (const mp_dtype_t src : kDtypes) {
    for (const mp_dtype_t dst : kDtypes) {
      for (const int64_t offset : {0, 1, 4}) {
        check({2, 3, 9, 11}, src, dst, offset, 0);
        check({2, 24, 4, 6}, src, dst, 0, offset);
      }
    }
  }
}

TEST_CASE("layout: many images", "[layers][layout]") {
  check({1000, 3, 4, 4}, MP_FP32, MP_FP16);
  check({70, 20, 28, 28}, MP_FP16, MP_FP32);
}

TEST_CASE("layout: overflow, infinities and NaN are converted as by mp_cast",
          "[layers][layout][short]") {
  const Images s{1, 3, 2, 2};
  const std::vector<double> values = {65519.0,   65520.0,    -1e30, 0x1p-25, 0x1p-24, -0.0,
                                      kInfinity, -kInfinity, kNaN,  1.0,     2.0,     3.0};
  const DeviceArray src(MP_FP32, values);
  const DeviceArray dst(MP_FP16, s.elems());
  require_ok(mp_nchw_to_nhwc(context(), s.n, s.c, s.h, s.w, src.data(), MP_FP32, dst.data(),
                             MP_FP16, kStream));
  expect_equal(dst.download(), to_nhwc(s, values), MP_FP16);
}
