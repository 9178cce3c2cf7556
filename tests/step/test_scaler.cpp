// Loss scalers: a known sequence, and a closed loop in which the scale determines whether the next
// step overflows.
//
// Unless stated otherwise, S and all factors are powers of two, so scales are compared exactly.
#include "scaler_run.h"

using namespace mptest;

namespace {

using Config = mp_scaler_config_t;

Config backoff(float init, float min, float max, float growth, float backoff, int32_t interval,
               int32_t hysteresis = 1) {
  Config config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  config.init_scale = init;
  config.min_scale = min;
  config.max_scale = max;
  config.growth_factor = growth;
  config.backoff_factor = backoff;
  config.growth_interval = interval;
  config.hysteresis = hysteresis;
  return config;
}

Config lognormal(int32_t interval) {
  Config config = mp_scaler_config_default(MP_SCALER_POLICY_LOGNORMAL);
  config.growth_interval = interval;
  return config;
}

}  // namespace

// ---------------------------------------------------------------------------- sequences

TEST_CASE("scaler lognormal: reproduces a known sequence", "[scaler][short]") {
  CHECK(scales_of(lognormal(2000), kSequenceA) ==
        Scales{32768, 32768, 4096, 2048, 4096, 2048, 2048, 1024, 512, 256, 128, 128});
  CHECK(scales_of(lognormal(3), kSequenceA) ==
        Scales{32768, 32768, 4096, 2048, 4096, 2048, 2048, 1024, 1024, 512, 256, 512});
}

// CUDA's log2 of 2^3, 2^6, 2^12, 2^13 and 2^24 is an ulp too small.  If S were computed with it,
// the headroom would be that ulp, which costs a full bit.
TEST_CASE("scaler lognormal: overflows before the first statistics leave S at the proposed value",
          "[scaler][short]") {
  for (int bits = 0; bits <= 24; ++bits) {
    const float scale = std::ldexp(1.0f, bits);
    Config config = lognormal(2);
    config.init_scale = 2.0f * scale;
    config.max_scale = 0x1p30f;
    ScalerRun run(config);
    CHECK(run.update(1.0f) == scale);
    CHECK(run.update_scaled(0.0f, 0.9f * 0x1p14f) == scale);
    CHECK(run.state().headroom == 0.0f);
  }
}

// ---------------------------------------------------------------------------- closed loop

namespace {

struct Loop {
  double mean, deviation;  ///< distribution of log2 of the largest parameter gradient
  double activation_bits;  ///< log2 of largest activation / largest parameter gradient
};

/// Approximately normal: the sum of twelve uniform numbers.
double normal(Random &random) {
  double sum = -6.0;
  for (int i = 0; i < 12; ++i) sum += random.real(0.0, 1.0);
  return sum;
}

/// Returns the number of steps that overflow.
int overflows_of(const Config &config, const Loop &loop, int steps) {
  ScalerRun run(config);
  Random random(3);
  float scale = run.scale();
  int overflows = 0;
  for (int step = 0; step < steps; ++step) {
    const double amax = std::exp2(loop.mean + loop.deviation * normal(random));
    const bool overflow = scale * amax * std::exp2(loop.activation_bits) > 65504.0;
    overflows += overflow;
    scale = run.update(overflow ? 1.0f : 0.0f, amax);
  }
  return overflows;
}

}  // namespace

TEST_CASE("scaler lognormal: an overflowing activation gradient does not cause a livelock",
          "[scaler]") {
  // If there were no headroom, about every second step would be lost: the next clean one restores
  // S.
  constexpr int kSteps = 10000, kInterval = 2000;
  for (const Loop &loop : {Loop{0, .5, 4}, Loop{-6, 1, 4}, Loop{0, .5, 12}, Loop{4, 0, 2}}) {
    const int overflows = overflows_of(lognormal(kInterval), loop, kSteps);
    // S decreases bit by bit from 2^16, and again a few times after headroom is returned, if the
    // deviation requires it.
    const int descent = static_cast<int>(loop.activation_bits + std::max(loop.mean, 0.0)) + 4;
    CAPTURE(loop.mean, loop.deviation, loop.activation_bits);
    CHECK(overflows <= descent + 3 * kSteps / kInterval);
  }
}

// ---------------------------------------------------------------------------- state

TEST_CASE("scaler: any flag except 0 is an overflow, and an update clears it", "[scaler][short]") {
  for (const auto policy :
       {MP_SCALER_POLICY_STATIC, MP_SCALER_POLICY_BACKOFF, MP_SCALER_POLICY_LOGNORMAL}) {
    for (const float found_inf : {1.0f, 2.0f, 8.0f, -1.0f, 0x1p-149f, NAN, HUGE_VALF}) {
      ScalerRun run(mp_scaler_config_default(policy));
      CHECK(run.found_inf() == 0.0f);
      run.update(found_inf);
      CAPTURE(policy, found_inf);
      CHECK(run.state().skipped == 1);
      CHECK(run.scale() == (policy == MP_SCALER_POLICY_STATIC ? 1.0f : 32768.0f));
      CHECK(same_bits(run.found_inf(), 0.0f));
    }
  }
}

TEST_CASE("scaler: inv_scale is the rounded reciprocal of S", "[scaler][short]") {
  ScalerRun run(backoff(1000, 1, 1e9, 1.3f, .7f, 1));
  Random random(5);
  for (int step = 0; step < 60; ++step) {
    const double scale = run.update(random.integer(0, 1) == 0 ? 1.0f : 0.0f);
    CHECK(run.inv_scale() == round_to(MP_FP32, 1.0 / scale));
  }
}

TEST_CASE("scaler: device addresses never change", "[scaler][short]") {
  ScalerRun run(mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF));
  const float *const scale = mp_scaler_get_scale_address(run.get());
  const float *const inv_scale = mp_scaler_get_inv_scale_address(run.get());
  const float *const found_inf = mp_scaler_get_found_inf_address(run.get());
  run.update(1.0f);
  set_state(run.get(), run.state());
  CHECK(mp_scaler_get_scale_address(run.get()) == scale);
  CHECK(mp_scaler_get_inv_scale_address(run.get()) == inv_scale);
  CHECK(mp_scaler_get_found_inf_address(run.get()) == found_inf);
}

TEST_CASE("scaler: the loss times S is rounded once", "[scaler][short]") {
  ScalerRun run(backoff(3000, 1, 65536, 2, .5, 5));
  Random random(6);
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int64_t count : {0, 1, 9, 300}) {
      std::vector<double> losses(static_cast<size_t>(count));
      for (double &loss : losses) loss = round_to(dtype, random.real(-40.0, 40.0));
      DeviceArray loss(dtype, losses, 1), out(dtype, count);
      require_ok(mp_scale_loss(run.get(), loss.data(), out.data(), dtype, count, kStream));
      require_ok(mp_scale_loss(run.get(), loss.data(), loss.data(), dtype, count, kStream));
      std::vector<double> wanted = losses;
      for (double &value : wanted) value = round_to(dtype, round_to(MP_FP32, value * 3000.0));
      CAPTURE(mp_dtype_name(dtype), count);
      CHECK(out.download() == wanted);
      CHECK(loss.download() == wanted);
    }
  }
}
