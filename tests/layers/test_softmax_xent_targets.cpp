// Softmax cross-entropy with ignored rows, label smoothing, 64-bit labels, a given count, class
// weights and soft targets.
#include "tests/layers/xent_case.h"

using namespace mptest;

namespace {

/// Numbers of classes for each kernel path.
constexpr int64_t kLengths[] = {10, 100, 1500};

/// Returns a case whose first, last and every third row are ignored.
XentCase padded_case(int64_t rows, int64_t classes, uint64_t seed) {
  XentCase c = random_case(MP_FP16, rows, classes, 5.0, seed);
  for (size_t i = 0; i < c.labels.size(); i += 3) c.labels[i] = -100;
  c.labels.back() = -100;
  return c;
}

}  // namespace

TEST_CASE("xent ignore: if no row is left, the loss is NaN and the gradient 0", "[xent][short]") {
  for (const int64_t rows : {1, 5, 700}) {
    for (const int64_t classes : kLengths) {
      XentCase c = random_case(MP_FP16, rows, classes, 5.0, 2200);
      std::fill(c.labels.begin(), c.labels.end(), -100);
      const XentResult got = run(c);
      CAPTURE(rows, classes);
      CHECK(std::isnan(got.loss));
      CHECK(got.correct == 0);
      CHECK(got.row_loss == std::vector<float>(static_cast<size_t>(rows), 0.0f));
      CHECK(got.dlogits.values == std::vector<double>(c.logits.values.size(), 0.0));
    }
  }
}

TEST_CASE("xent ignore: rows are counted exactly with and without a separate launch", "[xent]") {
  for (const int64_t rows : {511, 512, 513, 1500})
    for (const int64_t classes : {3, 40, 1030}) check(padded_case(rows, classes, 2600));
}

TEST_CASE("xent ignore: more rows than concurrent warps", "[xent]") {
  check(padded_case(70001, 2, 2700));
}

TEST_CASE("xent ignore: a block proceeds to a second row after an ignored one", "[xent]") {
  // 65536 blocks, the maximum, share the rows.  Only the second row of the first block is not
  // ignored.  The number of counted rows is passed in the row_loss element of the block's first
  // row.
  constexpr int64_t kRows = 65537, kClasses = 1025;
  std::vector<int32_t> labels(kRows, -100);
  labels.back() = 3;
  const DeviceBuffer<uint16_t> logits(kRows * kClasses, 0, 0);  // also the gradient
  const DeviceBuffer<int32_t> on_device(labels);
  const DeviceBuffer<float> row_loss(kRows);
  const mp_xent_desc_t desc = mp_xent_desc_default(kRows, kClasses, MP_FP16);
  const DeviceFloat loss(-1.0f);
  auto t = initialized<mp_xent_tensors_t>();
  t.x = logits.data();
  t.labels = on_device.data();
  t.row_loss = row_loss.data();
  t.loss = loss.data();
  t.dx = logits.data();
  require_ok(mp_softmax_xent(context(), &desc, &t, kStream));
  // All probabilities are 1 / 1025.
  std::vector<uint16_t> last(kClasses);
  copy_bytes(last.data(), logits.data() + (kRows - 1) * kClasses, kClasses * sizeof(uint16_t));
  int64_t wrong = 0;
  for (int64_t j = 0; j < kClasses; ++j) {
    const double wanted = (j == 3 ? -1024.0 : 1.0) / 1025.0;
    wrong += last[static_cast<size_t>(j)] != encode(MP_FP16, wanted);
  }
  CHECK(wrong == 0);
}

// ---------------------------------------------------------------------------- label smoothing

TEST_CASE("xent smoothing: a constant added to all logits changes no bit", "[xent][short]") {
  for (const int64_t classes : kLengths) {
    XentCase c = random_case(MP_FP32, 3, classes, 1.0, 3200);
    c.label_smoothing = 0.25f;
    for (double &logit : c.logits.values) logit = std::round(logit * 64) / 64;
    const XentResult near = run(c);
    for (double &logit : c.logits.values) logit += 65536.0;
    check_same(run(c), near);
  }
}

// ---------------------------------------------------------------------------- z-loss

TEST_CASE("xent z-loss: one class is exact", "[xent][short]") {
  // The loss without z_loss is 0, and p = 1: z_loss x^2 and 2 z_loss x remain.
  for (const mp_dtype_t dtype : kDtypes) {
    for (const double x : {-8.0, 0.0, 3.0}) {
      XentCase c = row_case(dtype, {x}, 0);
      c.z_loss = 0.5f;
      const XentResult got = run(c);
      CAPTURE(mp_dtype_name(dtype), x);
      CHECK(got.row_loss[0] == static_cast<float>(0.5 * x * x));
      CHECK(got.dlogits.at(0, 0, 0) == x);
    }
  }
}

// ---------------------------------------------------------------------------- types of labels

TEST_CASE("xent: a 64-bit label out of range does not wrap into range", "[xent][short]") {
  constexpr int64_t kWrap = int64_t{1} << 32;
  for (const int64_t label : {kWrap, kWrap + 2, -kWrap + 2, (kWrap << 31) + 1, kWrap / 2}) {
    for (const int64_t classes : {4, 1100}) {
      XentCase c = random_case(MP_FP32, 3, classes, 4.0, 2900);
      c.dtype_labels = MP_INT64;
      c.labels[1] = label;
      CHECK(std::isnan(check(c).row_loss[1]));
      c.ignore_label = label;
      CHECK(check(c).row_loss[1] == 0.0f);
      c.ignore_label = static_cast<int32_t>(label);  // the low word; not equal
      CHECK(std::isnan(run(c).row_loss[1]));
    }
  }
}

TEST_CASE("xent: an ignore_label beyond 32 bits matches no 32-bit label", "[xent][short]") {
  XentCase c = random_case(MP_FP32, 3, 4, 4.0, 3000);
  c.labels = {0, 2, 3};
  const XentResult all = run(c);
  c.ignore_label = int64_t{1} << 32;  // low word 0
  check_same(run(c), all);
}

// ---------------------------------------------------------------------------- count

TEST_CASE("xent: count replaces the number of rows that are not ignored", "[xent][short]") {
  for (const int64_t rows : {4, 600}) {
    XentCase c = random_case(MP_FP32, rows, 20, 4.0, 3100);
    c.labels[1] = c.labels[2] = -100;
    const XentResult own = run(c);
    c.count = static_cast<float>(rows - 2);
    check_same(run(c), own);
    c.count *= 2.0f;  // includes another micro-batch of equal size
    const XentResult half = run(c);
    CHECK(half.row_loss == own.row_loss);
    CHECK(half.loss == own.loss / 2.0f);
    for (size_t i = 0; i < own.dlogits.values.size(); ++i)
      REQUIRE(half.dlogits.values[i] == own.dlogits.values[i] / 2.0);
    std::fill(c.labels.begin(), c.labels.end(), -100);
    CHECK(run(c).loss == 0.0f);  // other micro-batches have counted rows
  }
}

// ---------------------------------------------------------------------------- class weights

namespace {

/// Weights whose sums are exact; the first is 0.
void weight_classes(XentCase &c, uint64_t seed) {
  Random random(seed);
  for (int64_t j = 0; j < c.classes(); ++j)
    c.class_weights.push_back(j == 0 ? 0.0 : static_cast<double>(random.integer(1, 16)) / 8);
}

}  // namespace

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

TEST_CASE("xent weights: many short or long rows, and a given count", "[xent]") {
  for (const auto &[rows, classes] : {std::pair{66001, 3}, {1003, 1030}}) {
    XentCase c = padded_case(rows, classes, 4400);
    weight_classes(c, 4401);
    CAPTURE(rows, classes);
    const XentResult own = check(c);
    c.count = static_cast<float>(counted_of(c));
    check_same(run(c), own);
  }
}
