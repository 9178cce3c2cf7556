// mp_unscale and mp_clip_factor: preparation of gradients for an update.
//
// The product of two floats is exact in fp64, so the unscaled gradient is known bit for bit: the
// product rounded to fp32, then to the type of the output.
#include "oracle_step.h"
#include "step_fixtures.h"

using namespace mptest;

namespace {

/// Returns the specs with other types and alignments.
std::vector<TensorSpec> rotated(std::vector<TensorSpec> specs, int by) {
  for (TensorSpec &spec : specs) {
    spec.dtype = kDtypes[(spec.dtype - 1 + by) % std::size(kDtypes)];
    spec.offset = (spec.offset + by) % 8;
  }
  return specs;
}

TensorValues unscaled(const TensorValues &values, const std::vector<TensorSpec> &out,
                      float factor) {
  TensorValues results = values;
  for (size_t t = 0; t < results.size(); ++t) {
    for (double &value : results[t]) {
      value = round_to(out[t].dtype, round_to(MP_FP32, value * factor));
    }
  }
  return results;
}

/// Unscales `in` into `out`; checks every element and the flag.
void check_unscale(TensorSet &in, TensorSet &out, const TensorValues &values, float factor) {
  DeviceFloat inv_scale(factor), found_inf(0.0f);
  in.upload(values);
  const std::vector<uint8_t> before = in.bits();
  require_ok(mp_unscale(in.list(), out.list(), inv_scale.data(), found_inf.data(), kStream));
  CHECK(count_differences(out.download(), unscaled(values, out.specs(), factor)) == 0);
  if (&in != &out) CHECK(in.bits() == before);
  bool nonfinite = false;
  for (std::vector<double> tensor : values) {
    nonfinite = nonfinite || oracle::any_nonfinite(tensor);
    for (double &value : tensor) value = round_to(MP_FP32, value * static_cast<double>(factor));
    nonfinite = nonfinite || oracle::any_nonfinite(tensor);
  }
  CHECK(found_inf.value() == (nonfinite ? 1.0f : 0.0f));
}

/// Returns real values that are representable in the types of `specs`.
TensorValues representable(const std::vector<TensorSpec> &specs, uint64_t seed) {
  Random random(seed);
  TensorValues values;
  for (const TensorSpec &spec : specs)
    values.push_back(random_reals(spec.dtype, spec.numel, -100.0, 100.0, random));
  return values;
}

}  // namespace

TEST_CASE("unscale: all types, sizes and alignments are exact", "[unscale]") {
  for (const int by : {0, 1, 2}) {
    TensorSet in(awkward_tensors()), out(rotated(awkward_tensors(), by));
    check_unscale(in, out, representable(in.specs(), 1), 0.3f);
  }
}

TEST_CASE("unscale: small lists are exact, in place and out of place", "[unscale][short]") {
  for (const float factor : {1.0f, 0x1p-16f, 1.0f / 3.0f, 0.0f, 0x1p-140f}) {
    TensorSet in(small_tensors()), out(rotated(small_tensors(), 1));
    const TensorValues values = representable(in.specs(), 2);
    check_unscale(in, out, values, factor);
    check_unscale(in, in, values, factor);
  }
}

TEST_CASE("unscale: empty lists and empty tensors are accepted", "[unscale][short]") {
  for (const std::vector<TensorSpec> &specs : std::vector<std::vector<TensorSpec>>{
           {}, {{MP_FP16, 0}}, {{MP_FP16, 0}, {MP_FP32, 9, 1}}, {{MP_FP32, 9, 1}, {MP_FP16, 0}}}) {
    TensorSet in(specs), out(specs);
    check_unscale(in, out, representable(specs, 4), 0.5f);
  }
}

TEST_CASE("unscale: found_inf covers every element of the input", "[unscale][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    TensorSet in({{dtype, 0}, {dtype, 3}, {dtype, 299, 1}});
    TensorSet out({{MP_FP32, 0}, {MP_FP32, 3, 1}, {MP_FP32, 299}});
    const TensorValues finite = representable(in.specs(), 5);
    for (const double value : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
      for (const auto &[t, at] : {std::pair{1, 0}, {1, 2}, {2, 0}, {2, 150}, {2, 298}}) {
        TensorValues values = finite;
        values[static_cast<size_t>(t)][static_cast<size_t>(at)] = value;
        CAPTURE(mp_dtype_name(dtype), value, t, at);
        check_unscale(in, out, values, 0.25f);
      }
    }
  }
}

TEST_CASE("unscale: only a product that is not finite in fp32 sets found_inf, not a rounded output",
          "[unscale][short]") {
  TensorSet in({{MP_FP32, 20}}), out({{MP_FP16, 20}});
  check_unscale(in, out, {std::vector<double>(20, 70000.0)}, 1.0f);
  check_unscale(in, out, {std::vector<double>(20, 0x1p127)}, 4.0f);
  check_unscale(in, out, {std::vector<double>(20, HUGE_VAL)}, 0.0f);  // NaN
}

TEST_CASE("unscale: found_inf is never cleared", "[unscale][short]") {
  TensorSet tensors({{MP_FP16, 20}});
  tensors.fill(1.0);
  DeviceFloat inv_scale(1.0f), found_inf(1.0f);
  require_ok(
      mp_unscale(tensors.list(), tensors.list(), inv_scale.data(), found_inf.data(), kStream));
  CHECK(found_inf.value() == 1.0f);
}

// ---------------------------------------------------------------------------- clip factor

namespace {

float clip(float scaled_norm, float inv_scale, float max_norm) {
  DeviceFloat norm(scaled_norm), inverse(inv_scale), grad_scale(-1.0f);
  require_ok(
      mp_clip_factor(context(), norm.data(), inverse.data(), max_norm, grad_scale.data(), kStream));
  return grad_scale.value();
}

}  // namespace

TEST_CASE("clip: the factor equals the documented formula", "[clip][short]") {
  Random random(6);
  for (int i = 0; i < 300; ++i) {
    const float norm = static_cast<float>(std::exp2(random.real(-10.0, 30.0)));
    const float inv_scale = static_cast<float>(std::exp2(random.real(-24.0, 0.0)));
    const float max_norm = static_cast<float>(std::exp2(random.real(-12.0, 12.0)));
    CAPTURE(norm, inv_scale, max_norm);
    CHECK(within(oracle::clip_factor(norm, inv_scale, max_norm), clip(norm, inv_scale, max_norm)));
  }
}

TEST_CASE("clip: gradients within, at and infinitely beyond the limit", "[clip][short]") {
  CHECK(same_bits(clip(0.0f, 0x1p-16f, 1.0f), 0x1p-16f));
  CHECK(same_bits(clip(65536.0f * 0.99f, 0x1p-16f, 1.0f), 0x1p-16f));
  CHECK(same_bits(clip(3.0f, 0.3f, HUGE_VALF), 0.3f));
  CHECK(same_bits(clip(HUGE_VALF, 0x1p-16f, 1.0f), 0.0f));
  const float at_limit = clip(1.0f, 1.0f, 1.0f);  // reduced only by the 1e-6
  CHECK(at_limit < 1.0f);
  CHECK(at_limit > 1.0f - 2e-6f);
}
