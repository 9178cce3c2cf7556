// Softmax cross-entropy of rows of any length: loss, number of correct rows and scaled gradient.
//
// Rows of up to 1024 classes belong to a warp, others to a block: elements before and after 16-byte
// vectors, several vectors per thread, and rows that exceed shared memory.
#include <thread>

#include "tests/layers/xent_case.h"
#include "tests/support/any.h"

using namespace mptest;

// ---------------------------------------------------------------------------- any options

namespace {

/// Adds class weights, of which the first is 0, soft targets, of which about half are 0, or
/// log-probabilities in place of logits.
void choose_targets(XentCase &c, Random &random) {
  if (one_in(3, random))
    for (int64_t j = 0; j < c.classes(); ++j)
      c.class_weights.push_back(
          j == 0 && c.classes() > 1 ? 0.0 : static_cast<double>(random.integer(1, 16)) / 8);
  if (one_in(4, random)) {
    c.dtype_labels = any(random, kDtypes);
    c.targets = Matrices(1, c.rows(), c.classes());
    for (double &target : c.targets.values)
      target = round_to(c.dtype_labels, std::max(random.real(-1.0, 1.0), 0.0));
  }
  if (one_in(4, random)) {
    c.flags |= MP_XENT_FLAG_LOG_PROBABILITIES;
    c.z_loss = 0.0f;
    for (double &x : c.logits.values) x = -std::fabs(x);
  }
}

/// Returns a class, mostly one of the first or last 8, which may lie outside the aligned vectors.
int64_t any_class(const XentCase &c, Random &random) {
  const int64_t last = c.classes() - 1, near_end = random.integer(0, std::min<int64_t>(last, 7));
  return any(random, {near_end, last - near_end, random.integer(0, last)});
}

/// Makes a row special: ignored and not readable, with a label that is not a class, with a logit
/// that is not a number, or with a masked class, which may be the label.
void make_special(XentCase &c, int64_t row, Random &random) {
  int64_t &label = c.labels[static_cast<size_t>(row)];
  double &logit = c.logits.at(0, row, any_class(c, random));
  switch (random.integer(0, 4)) {
    case 0:
      label = c.ignore_label;
      for (int64_t j = 0; j < c.classes(); ++j) c.logits.at(0, row, j) = kNaN;
      break;
    case 1:
      label = any(random, {int64_t{-1}, int64_t{-99}, c.classes(), int64_t{1000000000}});
      break;
    case 2:
      logit = any(random, {kNaN, -kNaN, kInfinity});
      break;
    case 3:
      logit = -kInfinity;
      break;
    default:
      if (label >= 0 && label < c.classes()) c.logits.at(0, row, label) = -kInfinity;
  }
}

/// Returns a case with any options, layout and rows.  The first row is an ordinary one.
XentCase any_case(mp_dtype_t dtype, int64_t rows, int64_t classes, uint64_t seed) {
  Random random(seed);
  XentCase c = random_case(dtype, rows, classes, 6.0, seed);
  c.labels[0] = classes - 1;
  c.dtype_labels = any(random, {MP_INT32, MP_INT64});
  c.flags = one_in(3, random) ? 0 : uint32_t{MP_XENT_FLAG_IGNORE_LABEL};
  c.ignore_label = any(random, {-100, -100, 0, 255, std::numeric_limits<int32_t>::max()});
  c.loss_scale = any(random, {1.0f, 512.0f});
  c.weight = any(random, {1.0f, 0.75f});
  c.label_smoothing = any(random, {0.0f, 0.0f, 0.1f, 0.9f});
  c.z_loss = any(random, {0.0f, 0.0f, 0.125f});
  choose_targets(c, random);
  c.padding = any(random, {0, 5});
  c.offset = random.integer(0, 8);
  c.gradient_padding = any(random, {0, 2});
  c.gradient_offset = any(random, {0, 1});
  c.in_place = one_in(3, random);
  c.forward_only = one_in(6, random);
  c.null_scale = one_in(6, random);
  for (int64_t i = 1; i < rows; ++i)
    if (one_in(3, random)) make_special(c, i, random);
  if (c.label(0) == c.ignore_label) c.ignore_label = -100;
  return c;
}

void check_any(const std::vector<int64_t> &lengths, int64_t rows, uint64_t cases) {
  for (const mp_dtype_t dtype : kDtypes)
    for (const int64_t classes : lengths)
      for (uint64_t seed = 1; seed <= cases; ++seed) {
        const XentCase c =
            any_case(dtype, rows, classes, 1000 * seed + static_cast<uint64_t>(classes));
        CAPTURE(mp_dtype_name(dtype), classes, seed, c.is_soft(), c.is_nll(), c.label_smoothing,
                c.z_loss, c.class_weights.size(), c.offset, c.padding, c.in_place);
        check(c);
      }
}

}  // namespace

TEST_CASE("xent: any options for short rows", "[xent][short]") {
  check_any({1, 2, 10, 32, 33, 100}, 9, 24);
  check_any({1025, 1500}, 4, 16);
}

TEST_CASE("xent: any options for rows of any length", "[xent]") {
  check_any({3, 31, 1000, 1023, 1024, 1031}, 5, 12);
  check_any({4096, 8192, 8193, 32000}, 5, 4);
  check_any({50257, 65536, 65537, 151936}, 3, 1);
}

TEST_CASE("xent: same bits in repeated calls, in place and out of place", "[xent][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int64_t classes : {77, 9001}) {
      XentCase c = random_case(dtype, 7, classes, 6.0, 302);
      c.labels[1] = c.ignore_label;
      c.label_smoothing = 0.125f;
      const XentResult beside = run(c);
      check_same(run(c), beside);
      c.in_place = true;
      check_same(run(c), beside);
    }
  }
}

TEST_CASE("xent: small batches", "[xent][short]") {
  uint64_t seed = 100;
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int64_t rows : {1, 3, 4, 5, 33}) check(random_case(dtype, rows, 10, 4.0, ++seed));
    check(random_case(dtype, 3, 70, 4.0, ++seed));
  }
}

TEST_CASE("xent long: all types and lengths", "[xent]") {
  uint64_t seed = 1000;
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int64_t classes : {1025, 1031, 4096, 8192, 8193, 32000})
      check(random_case(dtype, 2, classes, 8.0, ++seed));
  }
}

TEST_CASE("xent long: a smaller launch of another thread keeps the limit of shared memory",
          "[xent]") {
  // CUDA's shared-memory limit of a kernel is the same for all threads.
  const XentCase large = random_case(MP_FP32, 2, 32000, 8.0, 1150);
  const XentCase small = random_case(MP_FP32, 2, 16000, 8.0, 1151);
  check(large);
  std::thread([&] { check(small); }).join();
  check(large);
}

TEST_CASE("xent: more rows than concurrent blocks", "[xent]") {
  check(random_case(MP_FP16, 3001, 10, 4.0, 200));
}

TEST_CASE("xent: a loss scale that overflows the type gives infinity", "[xent][short]") {
  XentCase c = row_case(MP_FP16, {0.0, 0.0}, 0);
  c.loss_scale = 0x1p20f;
  CHECK(run(c).dlogits.values == std::vector<double>{-kInfinity, kInfinity});
}

// ---------------------------------------------------------------------------- exact rows

TEST_CASE("xent: equal logits give exact losses and gradients", "[xent][short]") {
  // p = 1 / classes is exact, and the loss of every target is log(classes).
  for (const auto &[smoothing, weight] : {std::pair{0.0f, 0.0f}, {0.5f, 0.0f}, {0.0f, 4.0f}})
    for (const int64_t classes : {1, 2, 32, 64, 1024, 2048, 16384, 131072}) {
      const auto count = static_cast<size_t>(classes);
      const int64_t label = classes / 2;
      XentCase c = row_case(MP_FP32, std::vector<double>(count, -3.25), label);
      c.label_smoothing = smoothing;
      if (weight != 0.0f) {
        c.class_weights.assign(count, 7.0);
        c.class_weights[count / 2] = weight;
      }
      const XentResult got = run(c);
      const double p = 1.0 / static_cast<double>(classes), q = 1.0 - smoothing;
      CAPTURE(classes, smoothing, weight);
      CHECK(
          within(Bounded(weight != 0.0f ? weight : 1.0) * log(Bounded(1.0 / p)), got.row_loss[0]));
      int64_t wrong = 0;
      for (int64_t j = 0; j < classes; ++j)
        wrong += got.dlogits.at(0, 0, j) != q * (j == label ? p - 1.0 : p);
      CHECK(wrong == 0);
    }
}

TEST_CASE("xent: every class is included at any position", "[xent]") {
  // Two classes are not masked and have a probability of one half each.
  for (const int64_t classes : {67, 1100})
    for (int64_t other = 1; other < classes; ++other) {
      std::vector<double> logits(static_cast<size_t>(classes), -kInfinity);
      logits[0] = logits[static_cast<size_t>(other)] = 1.5;
      XentCase c = row_case(other % 2 == 0 ? MP_BF16 : MP_FP16, logits, 0);
      c.offset = other % 8;
      const XentResult got = run(c);
      CAPTURE(classes, other);
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
        const XentResult got = check(c);
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

TEST_CASE("xent long: logits that rise and fall by orders of magnitude", "[xent][short]") {
  // The running maximum increases many times, increases after masked classes, or never increases.
  constexpr int64_t kClasses = 20000;
  for (const mp_dtype_t dtype : kDtypes) {
    for (const double slope : {0.005, -0.005, 3.0, -3.0}) {
      std::vector<double> logits;
      for (int64_t j = 0; j < kClasses; ++j) {
        const double logit = slope * static_cast<double>(j);
        logits.push_back(j % 3000 < 1500 ? -kInfinity : round_to(dtype, logit));
      }
      CAPTURE(mp_dtype_name(dtype), slope);
      check(row_case(dtype, logits, 1500));
      check(row_case(dtype, logits, static_cast<int32_t>(kClasses - 1)));
      check(row_case(dtype, logits, 0));  // masked
    }
  }
}

// ---------------------------------------------------------------------------- counting

TEST_CASE("xent: the first of equal largest logits, 0 or -0, is the prediction", "[xent][short]") {
  for (const mp_dtype_t dtype : kDtypes)
    for (const int64_t classes : {5, 40, 1025}) {
      // Boundaries of vectors and threads.
      std::vector<int64_t> places = {0, 1, 2, 4, 6, 7, 8, 9, 39, 511, 512, 1016, 1017, 1023, 1024};
      std::erase_if(places, [&](int64_t j) { return j >= classes; });
      for (const int64_t first : places) {
        std::vector<double> logits(static_cast<size_t>(classes), -2.0);
        for (const int64_t j : places)
          if (j >= first) logits[static_cast<size_t>(j)] = j % 2 == 0 ? 0.0 : -0.0;
        for (const int64_t label : places) {
          XentCase c = row_case(dtype, logits, label);
          c.offset = 3;
          CAPTURE(mp_dtype_name(dtype), classes, first, label);
          CHECK(run(c).correct == (label == first));
        }
      }
    }
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
