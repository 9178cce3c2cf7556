// found_inf and amax of all calls of the catalog that have them, and calls without elements.
//
// The tests of each call compare both with what it stored in all of their cases (GradStats).
#include <limits>

#include "tests/support/calls/catalog.h"
#include "tests/support/grad_stats.h"

using namespace mptest;

namespace {

/// Pairs of statistics in the order of the calls.
struct Values {
  std::vector<float> amax, found_inf;
};

/// Gives both outputs, or one of them, and their values before the calls.
class StatsCaller : public Caller {
 public:
  StatsCaller(bool has_amax, bool has_found_inf, float amax, float found_inf)
      : Caller(mptest::context()),
        has_amax_(has_amax),
        has_found_inf_(has_found_inf),
        amax_(amax),
        found_inf_(found_inf) {}

  mp_grad_stats_t stats() override {
    made_.push_back({number(found_inf_), number(amax_)});
    const mp_grad_stats_t &made = made_.back();
    return {has_found_inf_ ? made.found_inf : nullptr, has_amax_ ? made.amax : nullptr};
  }
  Values values() const {
    Values all;
    for (const mp_grad_stats_t &made : made_) {
      copy_bytes(&all.amax.emplace_back(), made.amax, sizeof(float));
      copy_bytes(&all.found_inf.emplace_back(), made.found_inf, sizeof(float));
    }
    return all;
  }

 private:
  bool has_amax_, has_found_inf_;
  float amax_, found_inf_;
  std::vector<mp_grad_stats_t> made_;
};

}  // namespace

TEST_CASE("grad stats: each output is optional and never cleared or lowered",
          "[layers][stats][short]") {
  size_t pairs = 0;
  for (const Entry &entry : calls_named({"layers", "gemm", "conv"})) {
    CAPTURE(entry.name);
    const auto run = [&](bool has_amax, bool has_found_inf, float amax, float found_inf) {
      StatsCaller caller(has_amax, has_found_inf, amax, found_inf);
      entry.run(caller);
      return caller.values();
    };
    const Values both = run(true, true, 0.0f, 0.0f);
    const std::vector<float> zeros(both.amax.size(), 0.0f);
    pairs += zeros.size();
    CHECK(both.found_inf == zeros);
    CHECK(std::ranges::count(both.amax, 0.0f) == 0);
    const Values only_amax = run(true, false, 0.0f, 0.0f);
    CHECK(only_amax.amax == both.amax);
    CHECK(only_amax.found_inf == zeros);
    const Values only_found_inf = run(false, true, 0.0f, 0.0f);
    CHECK(only_found_inf.amax == zeros);
    CHECK(only_found_inf.found_inf == zeros);
    CHECK(run(false, false, 0.0f, 0.0f).amax == zeros);
    const std::vector<float> ones(zeros.size(), 1.0f);
    for (const float before :
         {1e30f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      const Values kept = run(true, true, before, 1.0f);
      CHECK(std::ranges::all_of(kept.amax, [&](float amax) { return same_value(amax, before); }));
      CHECK(kept.found_inf == ones);
    }
  }
  CHECK(pairs > 20);
}

TEST_CASE("grad stats: calls without elements need no tensors and write nothing",
          "[layers][stats][short]") {
  const GradStats stats;
  const mp_grad_stats_t *const s = stats.get();
  const mp_context_t c = context();
  const auto dropout = mp_dropout_desc_default(0, 0.5f, MP_FP16);
  require_ok(mp_dropout(c, &dropout, nullptr, nullptr, nullptr, s, kStream));
  const auto pool = mp_pool2d_desc_default(MP_POOL_MAX, 0, 4, 4, 8, 2, 2, MP_FP16);
  require_ok(mp_pool2d_forward(c, &pool, nullptr, nullptr, nullptr, kStream));
  require_ok(mp_pool2d_backward(c, &pool, nullptr, nullptr, nullptr, nullptr, s, kStream));
  for (const auto &[rows, columns] : {std::pair<int32_t, int32_t>{0, 8}, {8, 0}, {0, 0}}) {
    CAPTURE(rows, columns);
    const auto glu = mp_glu_desc_default(MP_ACT_SILU, rows, columns, MP_BF16);
    require_ok(mp_glu_forward(c, &glu, nullptr, nullptr, kStream));
    require_ok(mp_glu_backward(c, &glu, nullptr, nullptr, nullptr, s, kStream));
    const auto softmax = mp_softmax_desc_default(rows, columns, MP_FP16);
    require_ok(mp_softmax_forward(c, &softmax, nullptr, nullptr, nullptr, kStream));
    require_ok(mp_softmax_backward(c, &softmax, nullptr, nullptr, nullptr, nullptr, s, kStream));
    const auto rope = mp_rope_desc_default(rows, columns, 8, MP_FP16);
    require_ok(mp_rope(c, &rope, nullptr, nullptr, nullptr, nullptr, s, kStream));
    const auto sum_rows = mp_sum_rows_desc_default(0, rows, columns, MP_FP16);
    require_ok(mp_sum_rows(c, &sum_rows, nullptr, nullptr, s, kStream));
    auto pointwise = mp_pointwise_desc_default(MP_POINTWISE_ADD, rows, columns, MP_BF16);
    for (const int64_t ld_b : {0, columns, columns + 2}) {
      pointwise.ld_b = ld_b;
      require_ok(mp_pointwise(c, &pointwise, nullptr, nullptr, nullptr, s, kStream));
    }
  }
  for (size_t empty = 0; empty < 4; ++empty) {
    int64_t extent[] = {2, 3, 4, 5};
    extent[empty] = 0;
    for (const auto convert : {mp_nchw_to_nhwc, mp_nhwc_to_nchw})
      require_ok(convert(c, extent[0], extent[1], extent[2], extent[3], nullptr, MP_FP16, nullptr,
                         MP_FP32, kStream));
  }
  stats.check({});
}
