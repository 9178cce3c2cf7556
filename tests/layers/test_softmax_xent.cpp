// Softmax cross-entropy of rows of any length: loss, number of correct rows and scaled gradient.
#include "tests/layers/xent_case.h"

using namespace mptest;

// ---------------------------------------------------------------------------- ordinary logits

TEST_CASE("xent: all types and numbers of classes", "[xent]") {
  uint64_t seed = 0;
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int64_t classes : {1, 2, 10, 31, 32, 33, 1000})
      check(random_case(dtype, 7, classes, 8.0, ++seed));
    check(random_case(dtype, 2, 50257, 8.0, ++seed));
  }
}

TEST_CASE("xent: small batches", "[xent][short]") {
  uint64_t seed = 100;
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int64_t rows : {1, 3, 4, 5, 33}) check(random_case(dtype, rows, 10, 4.0, ++seed));
    check(random_case(dtype, 3, 70, 4.0, ++seed));
  }
}

TEST_CASE("xent: more rows than concurrent blocks", "[xent]") {
  check(random_case(MP_FP16, 3001, 10, 4.0, 200));
}

TEST_CASE("xent: in place, forward only, padded and misaligned", "[xent][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    XentCase c = random_case(dtype, 9, 43, 6.0, 300);
    c.loss_scale = 1024.0f;
    c.in_place = true;
    check(c);
    c.padding = 5;
    c.offset = 3;
    check(c);
    c.in_place = false;
    check(c);
    c.forward_only = true;
    check(c);
  }
}

TEST_CASE("xent: same bits in repeated calls, in place and out of place", "[xent][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    XentCase c = random_case(dtype, 40, 77, 6.0, 302);
    const XentResult beside = run(c);
    check_same(run(c), beside);
    c.in_place = true;
    check_same(run(c), beside);
  }
}

TEST_CASE("xent: the loss scale multiplies the gradient and not the loss", "[xent][short]") {
  XentCase c = random_case(MP_FP32, 5, 12, 3.0, 303);
  c.loss_scale = 65536.0f;
  c.weight = 0.25f;
  check(c);
  const XentResult scaled = run(c);
  c.loss_scale = 1.0f;
  const XentResult unscaled = run(c);
  CHECK(scaled.row_loss == unscaled.row_loss);
  for (size_t i = 0; i < scaled.dlogits.values.size(); ++i) {
    CHECK(scaled.dlogits.values[i] == 65536.0 * unscaled.dlogits.values[i]);
  }
  c.null_scale = true;
  CHECK(run(c).dlogits.values == unscaled.dlogits.values);
}

TEST_CASE("xent: a loss scale that overflows the type gives infinity", "[xent][short]") {
  XentCase c = row_case(MP_FP16, {0.0, 0.0}, 0);
  c.loss_scale = 0x1p20f;
  CHECK(run(c).dlogits.values == std::vector<double>{-kInfinity, kInfinity});
}

// ---------------------------------------------------------------------------- exact rows

TEST_CASE("xent: equal logits have exactly equal probabilities", "[xent][short]") {
  for (const int64_t classes : {1, 2, 32, 64, 1024, 2048, 16384, 131072}) {  // 1 / classes is exact
    XentCase c = row_case(MP_FP32, std::vector<double>(static_cast<size_t>(classes), -3.25), 0);
    const XentResult got = run(c);
    const double share = 1.0 / static_cast<double>(classes);
    CAPTURE(classes);
    CHECK(within(log(Bounded(static_cast<double>(classes))), got.row_loss[0]));
    CHECK(got.dlogits.at(0, 0, 0) == share - 1.0);
    int64_t wrong = 0;
    for (int64_t j = 1; j < classes; ++j) wrong += got.dlogits.at(0, 0, j) != share;
    CHECK(wrong == 0);
  }
}

TEST_CASE("xent: every class is included at any position", "[xent][short]") {
  // Two classes are not masked and have a probability of one half each.
  constexpr int64_t kClasses = 67;
  for (int64_t other = 1; other < kClasses; ++other) {
    std::vector<double> logits(kClasses, -kInfinity);
    logits[0] = logits[static_cast<size_t>(other)] = 1.5;
    const XentResult got = run(row_case(MP_BF16, logits, 0));
    CAPTURE(other);
    CHECK(within(log(Bounded(2.0)), got.row_loss[0]));
    CHECK(got.dlogits.at(0, 0, 0) == -0.5);
    CHECK(got.dlogits.at(0, 0, other) == 0.5);
  }
}

// ---------------------------------------------------------------------------- extremes

TEST_CASE("xent: extreme logits do not overflow", "[xent][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    const double most = dtype == MP_FP32 ? 60000.0 : round_to(dtype, 60000.0);
    check(row_case(dtype, {most, -most, 0.0}, 0));
    check(row_case(dtype, {most, -most, 0.0}, 1));
    check(row_case(dtype, {-most, -most, -most, -most}, 2));
    check(row_case(dtype, {most, most}, 1));
    const XentResult sure = run(row_case(dtype, {most, -most, 0.0}, 0));
    CHECK(sure.row_loss[0] == 0.0f);
    CHECK(sure.dlogits.values == std::vector<double>(3, 0.0));
  }
}

TEST_CASE("xent: masked classes have probability 0", "[xent][short]") {
  check(row_case(MP_FP16, {1.0, -kInfinity, 2.0, -kInfinity, 0.5}, 2));
  const XentResult impossible = run(row_case(MP_FP16, {0.0, -kInfinity}, 1));
  CHECK(impossible.row_loss[0] == HUGE_VALF);
  CHECK(impossible.dlogits.values == std::vector<double>{1.0, -1.0});
}

TEST_CASE("xent: a NaN or infinite logit makes only its row NaN", "[xent][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    for (const double bad : {kNaN, -kNaN, kInfinity}) {
      for (const int64_t at : {0, 15, 39}) {
        XentCase c = random_case(dtype, 3, 40, 4.0, 400);
        c.logits.at(0, 1, at) = bad;
        CAPTURE(mp_dtype_name(dtype), bad, at);
        check(c);
        const XentResult got = run(c);
        CHECK(std::isnan(got.row_loss[1]));
        CHECK(std::isnan(got.loss));
        CHECK(std::isfinite(got.row_loss[2]));
      }
    }
    check(row_case(dtype, {-kInfinity, -kInfinity}, 0));
  }
}

TEST_CASE("xent: a label out of range makes its row NaN", "[xent][short]") {
  for (const int32_t label : {-1, 10, 1000000000, std::numeric_limits<int32_t>::min()}) {
    XentCase c = random_case(MP_FP16, 4, 10, 4.0, 500);
    c.labels[2] = label;
    CAPTURE(label);
    check(c);
    const XentResult got = run(c);
    CHECK(std::isnan(got.row_loss[2]));
    CHECK(std::isnan(got.loss));
    for (int64_t j = 0; j < 10; ++j) CHECK(std::isnan(got.dlogits.at(0, 2, j)));
    CHECK(std::isfinite(got.row_loss[3]));
  }
}

TEST_CASE("xent: a weight of 0 gives loss and gradient 0, except for NaN", "[xent][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int64_t classes : {3, 40, 2000, 20000}) {
      for (const float smoothing : {0.0f, 0.1f}) {
        XentCase c = random_case(dtype, 3, classes, 4.0, 501);
        c.weight = 0.0f;
        c.label_smoothing = smoothing;
        c.logits.at(0, 0, c.label(0)) = -kInfinity;                  // the label is masked
        c.logits.at(0, 1, (c.label(1) + 1) % classes) = -kInfinity;  // another class is
        CAPTURE(mp_dtype_name(dtype), classes, smoothing);
        check(c);
        const XentResult got = run(c);
        CHECK(got.row_loss == std::vector<float>(3, 0.0f));
        CHECK(got.loss == 0.0f);
        for (const double gradient : got.dlogits.values) REQUIRE(gradient == 0.0);
        c.logits.at(0, 2, 0) = kNaN;
        const XentResult bad = run(c);
        CHECK(std::isnan(bad.row_loss[2]));
        CHECK(std::isnan(bad.dlogits.at(0, 2, 1)));
        CHECK(bad.row_loss[0] == 0.0f);
      }
    }
  }
}

TEST_CASE("xent: a confident row keeps its loss and the gradient of its label", "[xent][short]") {
  // exp(-20) = 2.06e-9 is far below an ulp of the label's probability.
  for (const int64_t classes : {2, 5, 33, 1000, 5000, 20000}) {
    for (const int64_t label : {int64_t{0}, classes / 2, classes - 1}) {
      std::vector<double> logits(static_cast<size_t>(classes), -20.0);
      logits[static_cast<size_t>(label)] = 0.0;
      XentCase c = row_case(MP_FP32, logits, static_cast<int32_t>(label));
      check(c);
      const double others = static_cast<double>(classes - 1) * std::exp(-20.0);
      CAPTURE(classes, label);
      // The bound of softmax_xent.h: an exponential with error 2 ulp, at most `classes` additions
      // in sequence, 6 roundings.
      const double bound = (2.0 + static_cast<double>(classes) + 6.0) * unit_roundoff(MP_FP32);
      const XentResult got = run(c);
      const double gradient = got.dlogits.at(0, 0, label);
      CHECK(std::fabs(gradient / (-others / (1.0 + others)) - 1.0) <= bound);
      CHECK(std::fabs(got.row_loss[0] / std::log1p(others) - 1.0) <= bound);
      double sum = 0.0;  // sum of the gradients, which is 0
      for (const double g : got.dlogits.values) sum += g;
      CHECK(std::fabs(sum) <= 2.0 * bound * others);
      // A loss scale makes it representable in 16 bits.
      c.dtype = MP_FP16;
      c.loss_scale = 0x1p15f;
      if (classes == 5) CHECK(run(c).dlogits.at(0, 0, label) < 0.0);
    }
  }
}

// ---------------------------------------------------------------------------- counting

TEST_CASE("xent: the first of equal largest logits is the prediction", "[xent][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    const std::vector<double> tied = {1.0, 5.0, 5.0, -2.0, 5.0};
    CHECK(run(row_case(dtype, tied, 1)).correct == 1);
    CHECK(run(row_case(dtype, tied, 2)).correct == 0);
    CHECK(run(row_case(dtype, tied, 0)).correct == 0);
    CHECK(run(row_case(dtype, std::vector<double>(40, -1.0), 0)).correct == 1);
    CHECK(run(row_case(dtype, std::vector<double>(40, -1.0), 33)).correct == 0);
    CHECK(run(row_case(dtype, {-3.0, -1.0, -2.0}, 1)).correct == 1);
  }
}

TEST_CASE("xent: 0 and -0 are equal", "[xent][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    CHECK(run(row_case(dtype, {-1.0, -0.0, 0.0}, 1)).correct == 1);
    CHECK(run(row_case(dtype, {-1.0, -0.0, 0.0}, 2)).correct == 0);
    CHECK(run(row_case(dtype, {-1.0, 0.0, -0.0}, 1)).correct == 1);
  }
}

TEST_CASE("xent: loss, correct and dlogits are optional", "[xent][short]") {
  const DeviceArray logits(MP_FP32, {1.0, 2.0});
  const DeviceBuffer<int32_t> labels(std::vector<int32_t>{1});
  const DeviceFloat row_loss(-1.0f);
  const mp_xent_desc_t desc = mp_xent_desc_default(1, 2, MP_FP32);
  auto t = initialized<mp_xent_tensors_t>();
  t.x = logits.data();
  t.labels = labels.data();
  t.row_loss = row_loss.data();
  require_ok(mp_softmax_xent(context(), &desc, &t, kStream));
  const oracle::XentOptions one_row{.dtype = MP_FP32, .counted = 1};
  CHECK(within(oracle::softmax_xent({1.0, 2.0}, 1, one_row).loss, row_loss.value()));
}

TEST_CASE("xent: no rows", "[xent][short]") {
  XentCase c;
  c.logits = Matrices(1, 0, 10);
  const XentResult got = run(c);
  CHECK(std::isnan(got.loss));
  CHECK(got.correct == 0);
  c.count = 7.0f;  // an empty micro-batch
  CHECK(run(c).loss == 0.0f);
}
