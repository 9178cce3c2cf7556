// Relations between the three convolutions, without an oracle.  For integers, exactly:
//
//     <y, conv(x, w)>  =  <dgrad(y, w), x>  =  <wgrad(x, y), w>
//
// A 1 x 1 convolution equals mp_gemm.
#include <numeric>

#include "conv_cases.h"
#include "conv_run.h"

using namespace mptest;

namespace {

constexpr int64_t kRange = 3;

std::vector<double> integers(Random &random, int64_t count) {
  std::vector<double> values(static_cast<size_t>(count));
  fill(values, random, Fill::kExact, kRange, MP_FP32);
  return values;
}

double dot(const std::vector<double> &a, const std::vector<double> &b) {
  REQUIRE(a.size() == b.size());
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Runs one pass with fp32 output and the kernel that the library selects.
std::vector<double> pass(const ConvCase &c, mp_conv_op_t op, const std::vector<double> &first,
                         const std::vector<double> &second, size_t out_count) {
  const mp_conv2d_desc_t desc = desc_of(with(c, op, {c.ab, MP_FP32}));
  const DeviceArray a(c.ab, first), b(c.ab, second);
  const DeviceArray out(MP_FP32, static_cast<int64_t>(out_count));
  const DeviceWorkspace workspace(mp_conv2d_workspace_size, context(), &desc, op, nullptr);
  const auto function = op == MP_CONV_FPROP   ? mp_conv2d_fprop
                        : op == MP_CONV_DGRAD ? mp_conv2d_dgrad
                                              : mp_conv2d_wgrad;
  require_ok(function(context(), &desc, a.data(), b.data(), out.data(), nullptr, workspace.data(),
                      workspace.bytes(), kStream));
  require_ok(mp_stream_sync(context(), kStream));
  return out.download();
}

void check_adjoint(ConvCase c, Random &random) {
  c.alpha = 1.0f;
  c.beta = 0.0f;
  const oracle::Convolution shape = convolution_of(c);
  const std::vector<double> x = integers(random, shape.n * shape.h * shape.w * shape.c);
  const std::vector<double> w = integers(random, shape.k * shape.r * shape.s * shape.group_c());
  const std::vector<double> y = integers(random, shape.n * shape.p() * shape.q() * shape.k);
  CAPTURE(to_string(c));
  const double forward = dot(y, pass(c, MP_CONV_FPROP, x, w, y.size()));
  CHECK(dot(pass(c, MP_CONV_DGRAD, y, w, x.size()), x) == forward);
  CHECK(dot(pass(c, MP_CONV_WGRAD, x, y, w.size()), w) == forward);
}

}  // namespace

TEST_CASE("conv adjoint: the passes agree on generated problems", "[conv]") {
  Random random(5);
  for (int i = 0; i < 200; ++i) check_adjoint(random_conv(random, 500000), random);
}

TEST_CASE("conv adjoint: the passes agree on a few generated problems", "[conv][short]") {
  Random random(6);
  for (int i = 0; i < 20; ++i) check_adjoint(random_conv(random, 20000), random);
}

TEST_CASE("conv adjoint: a 1 x 1 convolution equals mp_gemm", "[conv][short]") {
  Random random(7);
  const int32_t pixels = 35, c = 24, k = 40;
  const ConvCase layer = conv_case(1, 5, 7, c, k, 1, 1);
  const std::vector<double> x = integers(random, pixels * c), w = integers(random, k * c);
  const std::vector<double> y = pass(layer, MP_CONV_FPROP, x, w, static_cast<size_t>(pixels * k));

  mp_gemm_desc_t desc = mp_gemm_desc_default(pixels, k, c, MP_FP16, MP_FP32);
  desc.op_b = MP_OP_T;
  desc.ld_b = c;
  const DeviceArray a(MP_FP16, x), b(MP_FP16, w), d(MP_FP32, pixels * k);
  require_ok(mp_gemm(context(), &desc, a.data(), b.data(), nullptr, d.data(), nullptr, nullptr, 0,
                     kStream));
  require_ok(mp_stream_sync(context(), kStream));
  CHECK(y == d.download());
}
