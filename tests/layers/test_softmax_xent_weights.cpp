// Softmax cross-entropy with class weights and soft targets, and negative log-likelihood.
#include "tests/layers/xent_case.h"

using namespace mptest;

namespace {

/// Numbers of classes: fewer than threads, not a multiple of them, and for the larger block.
constexpr int64_t kLengths[] = {1, 10, 100, 1500};

/// Weights whose sums are exact; the first is 0.
void weight_classes(XentCase &c, uint64_t seed) {
  Random random(seed);
  for (int64_t j = 0; j < c.classes(); ++j)
    c.class_weights.push_back(j == 0 ? 0.0 : static_cast<double>(random.integer(1, 16)) / 8);
}

/// Targets whose sum per row is not 1; about half of them are 0.
void soften(XentCase &c, mp_dtype_t dtype, uint64_t seed) {
  Random random(seed);
  c.dtype_labels = dtype;
  c.targets = Matrices(1, c.rows(), c.classes());
  for (double &target : c.targets.values)
    target = round_to(dtype, std::max(random.real(-1.0, 1.0), 0.0));
}

/// Replaces logits by values close to log-probabilities.
void normalize(XentCase &c) {
  c.flags |= MP_XENT_FLAG_LOG_PROBABILITIES;
  for (double &x : c.logits.values) x = -std::fabs(x);
}

/// Checks a case in all layouts.
void check_layouts(XentCase c) {
  check(c);
  c.loss_scale = 512.0f;
  c.weight = 0.75f;
  c.in_place = true;
  c.padding = 5;
  c.offset = 3;
  check(c);
  c.label_smoothing = 0.25f;
  check(c);
  if (!c.is_nll()) c.z_loss = 0.125f;
  check(c);
  c.forward_only = true;
  check(c);
}

}  // namespace

TEST_CASE("xent weights: all types and lengths", "[xent][short]") {
  uint64_t seed = 4000;
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int64_t classes : kLengths) {
      for (const bool is_nll : {false, true}) {
        XentCase c = random_case(dtype, 9, classes, 5.0, ++seed);
        c.labels[0] = classes - 1;  // the sum of weights is not 0
        c.labels[4] = -100;
        if (is_nll) normalize(c);
        CAPTURE(mp_dtype_name(dtype), classes, is_nll);
        if (is_nll) check_layouts(c);
        weight_classes(c, seed);
        if (classes == 1) c.class_weights[0] = 3.0;
        check_layouts(c);
      }
    }
  }
}

TEST_CASE("xent soft: all types and lengths", "[xent][short]") {
  uint64_t seed = 4100;
  for (const mp_dtype_t dtype : kDtypes) {
    for (const mp_dtype_t dtype_targets : kDtypes) {
      for (const int64_t classes : kLengths) {
        for (const bool is_nll : {false, true}) {
          XentCase c = random_case(dtype, 4, classes, 5.0, ++seed);
          soften(c, dtype_targets, seed);
          if (is_nll) normalize(c);
          CAPTURE(mp_dtype_name(dtype), mp_dtype_name(dtype_targets), classes, is_nll);
          check_layouts(c);
          weight_classes(c, seed);
          check_layouts(c);
        }
      }
    }
  }
}

TEST_CASE("xent weights: equal logits give exact losses and gradients", "[xent][short]") {
  // p = 1 / classes, and the loss of every class is log(classes).
  for (const int64_t classes : {2, 64, 2048}) {
    XentCase c = row_case(MP_FP32, std::vector<double>(static_cast<size_t>(classes), 2.5), 1);
    c.class_weights.assign(static_cast<size_t>(classes), 7.0);
    c.class_weights[1] = 4.0;
    const XentResult got = run(c);
    CAPTURE(classes);
    CHECK(within(Bounded(4.0) * log(Bounded(static_cast<double>(classes))), got.row_loss[0]));
    const double p = 1.0 / static_cast<double>(classes);
    CHECK(got.dlogits.at(0, 0, 0) == p);  // 4 p / 4
    CHECK(got.dlogits.at(0, 0, 1) == p - 1.0);
    CHECK(got.dlogits.at(0, 0, classes - 1) == (classes == 2 ? p - 1.0 : p));
  }
}

TEST_CASE("xent weights: a confident row keeps loss and gradient", "[xent][short]") {
  for (const double margin : {20.0, 60.0}) {
    XentCase c = row_case(MP_FP32, {0.0, margin, 0.0, 0.0}, 1);
    c.class_weights = {1.0, 1.0, 1.0, 1.0};
    const XentResult hard = run(c);
    c.class_weights.clear();
    c.targets = Matrices(1, 1, 4);
    c.targets.values = {0.0, 1.0, 0.0, 0.0};
    c.dtype_labels = MP_FP16;
    const double small = std::exp(-margin);
    CAPTURE(margin);
    for (const XentResult &got : {hard, run(c)}) {
      CHECK(std::fabs(got.row_loss[0] / (3.0 * small) - 1.0) <= 1e-6);
      CHECK(std::fabs(got.dlogits.at(0, 0, 1) / (-3.0 * small) - 1.0) <= 1e-6);
      CHECK(std::fabs(got.dlogits.at(0, 0, 2) / small - 1.0) <= 1e-6);
    }
  }
}

TEST_CASE("xent weights: a label of weight 0 has loss 0 and gradient 0", "[xent][short]") {
  for (const int64_t classes : {3, 1500}) {
    XentCase c = random_case(MP_FP16, 3, classes, 4.0, 4200);
    weight_classes(c, 4201);
    for (const bool counts : {true, false}) {
      c.labels = {0, counts ? 1 : 0, 0};
      const XentResult got = run(c);
      CHECK(got.row_loss[0] == 0.0f);
      CHECK(std::isnan(got.loss) == !counts);
      for (int64_t j = 0; j < classes; ++j) REQUIRE(got.dlogits.at(0, 2, j) == 0.0);
    }
  }
}

TEST_CASE("xent weights: masked classes, NaN and invalid labels", "[xent][short]") {
  for (const int64_t classes : {10, 1500}) {
    for (const bool is_soft : {false, true}) {
      XentCase c = random_case(MP_BF16, 5, classes, 4.0, 4300);
      if (classes == 10) c.flags |= MP_XENT_FLAG_LOG_PROBABILITIES;
      weight_classes(c, 4301);
      c.labels = {1, 5, 5, 2, 3};
      if (is_soft) {
        soften(c, MP_FP32, 4302);
        c.targets.at(0, 0, 5) = 0.0;
        c.targets.at(0, 1, 5) = 1.0;
      }
      c.logits.at(0, 0, 5) = c.logits.at(0, 1, 5) = -kInfinity;  // not the target; the target
      c.logits.at(0, 2, 4) = kInfinity;
      c.logits.at(0, 3, 4) = kNaN;
      CAPTURE(classes, is_soft);
      check(c);
      const XentResult got = run(c);
      CHECK(std::isfinite(got.row_loss[0]));
      CHECK(got.row_loss[1] == HUGE_VALF);
      CHECK(std::isfinite(got.dlogits.at(0, 1, 5)));
      CHECK((std::isnan(got.row_loss[2]) && std::isnan(got.row_loss[3])));
      CHECK((std::isnan(got.dlogits.at(0, 2, 0)) && std::isnan(got.dlogits.at(0, 3, 0))));
      if (is_soft) continue;
      c.labels[4] = classes;
      check(c);
      const XentResult invalid = run(c);
      CHECK((std::isnan(invalid.dlogits.at(0, 4, 0)) && std::isnan(invalid.lse[4])));
    }
  }
}

TEST_CASE("xent weights: more rows than blocks, and a given count", "[xent]") {
  XentCase c = random_case(MP_FP16, 66001, 3, 4.0, 4400);
  weight_classes(c, 4401);
  for (size_t i = 0; i < c.labels.size(); i += 3) c.labels[i] = -100;
  check(c);
  const XentResult own = run(c);
  c.count = static_cast<float>(counted_of(c));
  check_same(run(c), own);
}

TEST_CASE("xent weights: log-probabilities of logits give the same loss", "[xent][short]") {
  const XentCase logits = random_case(MP_FP32, 6, 50, 3.0, 4500);
  XentCase c = logits;
  const XentResult want = run(logits);
  for (int64_t i = 0; i < c.rows(); ++i)
    for (int64_t j = 0; j < c.classes(); ++j)
      c.logits.at(0, i, j) = round_to(MP_FP32, logits.logits.at(0, i, j) - expected_lse(logits, i));
  c.flags |= MP_XENT_FLAG_LOG_PROBABILITIES;
  const XentResult got = run(c);
  CHECK(std::fabs(got.loss - want.loss) <= 1e-6f);
  CHECK(got.correct == want.correct);
  for (int64_t j = 0; j < c.classes(); ++j)
    CHECK(got.dlogits.at(0, 0, j) == (j == c.label(0) ? round_to(MP_FP32, -1.0 / 6.0) : 0.0));
}
