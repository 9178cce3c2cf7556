// Softmax cross-entropy with ignored rows, label smoothing, 64-bit labels and a given count.
#include "tests/layers/xent_case.h"

using namespace mptest;

namespace {

/// Numbers of classes for each kernel path.
constexpr int64_t kLengths[] = {10, 100, 1500};

/// Returns a case whose first, last and every second row are ignored; their logits are NaN.
XentCase padded_case(mp_dtype_t dtype, int64_t rows, int64_t classes, int32_t ignore_label,
                     uint64_t seed) {
  XentCase c = random_case(dtype, rows, classes, 5.0, seed);
  c.ignore_label = ignore_label;
  for (int64_t i = 0; i < rows; ++i) {
    const bool ignored = i % 2 == 0 || i == rows - 1;
    int64_t &label = c.labels[static_cast<size_t>(i)];
    if (label == ignore_label) label = 1;
    if (!ignored) continue;
    label = ignore_label;
    for (int64_t j = 0; j < classes; ++j) c.logits.at(0, i, j) = kNaN;
  }
  return c;
}

}  // namespace

TEST_CASE("xent ignore: rows with ignore_label are neither read nor counted", "[xent][short]") {
  uint64_t seed = 2000;
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int64_t classes : kLengths) {
      for (const int32_t label : {-100, 0, 255, std::numeric_limits<int32_t>::max()}) {
        XentCase c = padded_case(dtype, 9, classes, label, ++seed);
        CAPTURE(mp_dtype_name(dtype), classes, label);
        c.loss_scale = 512.0f;
        c.weight = 0.5f;
        check(c);
        c.in_place = true;
        c.offset = 3;
        c.padding = 5;
        check(c);
        c.forward_only = true;
        check(c);
      }
    }
  }
}

TEST_CASE("xent ignore: results equal those of the other rows alone", "[xent][short]") {
  for (const int64_t classes : kLengths) {
    const XentCase padded = padded_case(MP_FP32, 8, classes, -100, 2100);
    XentCase others = padded;
    others.logits = Matrices(1, 3, classes);
    others.labels.clear();
    others.padding = classes;  // keeps the distance between rows
    others.flags = 0;
    for (int64_t i = 0; i < 3; ++i) {
      others.labels.push_back(padded.label(2 * i + 1));
      for (int64_t j = 0; j < classes; ++j)
        others.logits.at(0, i, j) = padded.logits.at(0, 2 * i + 1, j);
    }
    XentCase apart = padded;
    apart.offset = classes % 4;  // aligns row 1 like row 0 of the others
    apart.offset = (4 - apart.offset) % 4;
    const XentResult got = run(apart), want = run(others);
    CAPTURE(classes);
    CHECK(same_bits(got.loss, want.loss));
    CHECK(got.correct == want.correct);
    for (int64_t i = 0; i < 3; ++i) {
      CHECK(same_bits(got.row_loss[static_cast<size_t>(2 * i + 1)],
                      want.row_loss[static_cast<size_t>(i)]));
      CHECK(row_of(got.dlogits, 2 * i + 1) == row_of(want.dlogits, i));
    }
  }
}

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

TEST_CASE("xent ignore: other labels out of range still give NaN", "[xent][short]") {
  for (const int32_t label : {-1, -99, -101, 10}) {
    XentCase c = padded_case(MP_FP16, 6, 10, -100, 2300);
    c.labels[3] = label;
    CAPTURE(label);
    check(c);
    CHECK(std::isnan(run(c).loss));
  }
}

TEST_CASE("xent ignore: without the flag no label is ignored", "[xent][short]") {
  XentCase c = random_case(MP_FP32, 6, 10, 4.0, 2400);
  c.flags = 0;
  c.ignore_label = c.label(2);  // unused
  check(c);
  c.ignore_label = -100;
  c.labels[2] = -100;
  check(c);
  CHECK(std::isnan(run(c).row_loss[2]));
}

TEST_CASE("xent ignore: the flag changes no bit if no row is ignored", "[xent][short]") {
  for (const int64_t rows : {7, 600}) {
    for (const int64_t classes : kLengths) {
      XentCase c = random_case(MP_BF16, rows, classes, 4.0, 2500);
      const XentResult with = run(c);
      c.flags = 0;
      check_same(with, run(c));
    }
  }
}

TEST_CASE("xent ignore: rows are counted exactly with and without a separate launch", "[xent]") {
  for (const int64_t rows : {511, 512, 513, 1500}) {
    for (const int64_t classes : {3, 40, 1030})
      check(padded_case(MP_FP16, rows, classes, -100, 2600));
  }
}

TEST_CASE("xent ignore: more rows than concurrent warps", "[xent]") {
  XentCase c = random_case(MP_FP16, 70001, 2, 4.0, 2700);
  for (size_t i = 0; i < c.labels.size(); i += 3) c.labels[i] = -100;
  check(c);
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

TEST_CASE("xent ignore: the default descriptor ignores -100, a zeroed one nothing",
          "[xent][short]") {
  const DeviceArray logits(MP_FP32, {1.0, 2.0, 3.0, 4.0});
  const DeviceBuffer<int32_t> labels(std::vector<int32_t>{-100, 0});
  const DeviceBuffer<float> row_loss(2);
  const auto losses = [&](const mp_xent_desc_t &d) {
    auto t = initialized<mp_xent_tensors_t>();
    t.x = logits.data();
    t.labels = labels.data();
    t.row_loss = row_loss.data();
    require_ok(mp_softmax_xent(context(), &d, &t, kStream));
    return row_loss.download();
  };
  const mp_xent_desc_t defaults = mp_xent_desc_default(2, 2, MP_FP32);
  CHECK(defaults.ignore_label == -100);
  CHECK(defaults.flags == MP_XENT_FLAG_IGNORE_LABEL);
  CHECK(defaults.label_smoothing == 0.0f);
  CHECK(losses(defaults)[0] == 0.0f);

  auto zeros = initialized<mp_xent_desc_t>();
  zeros.dtype = MP_FP32;
  zeros.dtype_labels = MP_INT32;
  zeros.rows = zeros.classes = zeros.ld_logits = zeros.ld_dlogits = 2;
  zeros.weight = 1.0f;
  CHECK(std::isnan(losses(zeros)[0]));
  CHECK(std::isfinite(losses(zeros)[1]));
}

// ---------------------------------------------------------------------------- label smoothing

TEST_CASE("xent smoothing: all types and lengths", "[xent][short]") {
  uint64_t seed = 3000;
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int64_t classes : {1, 2, 10, 33, 1000, 1025, 9000}) {
      for (const float smoothing : {0.1f, 0.9f}) {
        XentCase c = random_case(dtype, 3, classes, 6.0, ++seed);
        c.label_smoothing = smoothing;
        c.loss_scale = 256.0f;
        c.offset = static_cast<int64_t>(seed % 8);
        CAPTURE(mp_dtype_name(dtype), classes, smoothing);
        check(c);
      }
    }
  }
}

TEST_CASE("xent smoothing: ignored rows", "[xent][short]") {
  for (const int64_t classes : kLengths) {
    XentCase c = padded_case(MP_FP16, 9, classes, -100, 3100);
    c.label_smoothing = 0.1f;
    check(c);
  }
}

TEST_CASE("xent smoothing: equal logits give exact gradients", "[xent][short]") {
  // p = 1 / classes; q = 1/2 (j == label) + 1/2 / classes: the loss does not depend on the target.
  for (const int64_t classes : {1, 2, 64, 1024, 2048, 16384}) {
    XentCase c = row_case(MP_FP32, std::vector<double>(static_cast<size_t>(classes), 7.5), 0);
    c.label_smoothing = 0.5f;
    const XentResult got = run(c);
    const double share = 1.0 / static_cast<double>(classes);
    CAPTURE(classes);
    CHECK(within(log(Bounded(static_cast<double>(classes))), got.row_loss[0]));
    CHECK(got.dlogits.at(0, 0, 0) == share / 2 - 0.5);
    int64_t wrong = 0;
    for (int64_t j = 1; j < classes; ++j) wrong += got.dlogits.at(0, 0, j) != share / 2;
    CHECK(wrong == 0);
  }
}

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

TEST_CASE("xent smoothing: a masked class gives an infinite loss and a finite gradient",
          "[xent][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    for (const size_t length : {4, 2048}) {
      // Two classes share the probability; q = 1/2 (j == label) + 1/2 / length.
      std::vector<double> logits(length, -kInfinity);
      logits[0] = logits[3] = 2.0;
      const double share = 0.5 / static_cast<double>(length);
      for (const int32_t label : {0, 1}) {
        XentCase c = row_case(dtype, logits, label);
        c.label_smoothing = 0.5f;
        CAPTURE(mp_dtype_name(dtype), length, label);
        check(c);
        const XentResult got = run(c);
        CHECK(got.row_loss[0] == HUGE_VALF);
        CHECK(got.dlogits.at(0, 0, 2) == -share);
        CHECK(got.dlogits.at(0, 0, 3) == round_to(dtype, 0.5 - share));
        CHECK(got.dlogits.at(0, 0, label) == round_to(dtype, (label == 0 ? 0.0 : -0.5) - share));
      }
    }
  }
}

// ---------------------------------------------------------------------------- z-loss

TEST_CASE("xent z-loss: all types and lengths, with smoothing and ignored rows", "[xent][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int64_t classes : kLengths) {
      for (const float smoothing : {0.0f, 0.25f}) {
        XentCase c = padded_case(dtype, 9, classes, -100, 3400);
        c.z_loss = 0.125f;
        c.label_smoothing = smoothing;
        c.loss_scale = 64.0f;
        CAPTURE(mp_dtype_name(dtype), classes, smoothing);
        check(c);
        c.in_place = true;
        check(c);
        c.forward_only = true;
        check(c);
      }
    }
  }
}

TEST_CASE("xent z-loss: invalid logits and labels make their row NaN, also with smoothing",
          "[xent][short]") {
  for (const int64_t classes : kLengths) {
    for (const double bad : {kNaN, kInfinity}) {
      for (const auto &[smoothing, z_loss] : {std::pair{0.1f, 0.0f}, {0.0f, 0.1f}, {0.1f, 0.1f}}) {
        XentCase c = random_case(MP_BF16, 3, classes, 4.0, 3300);
        c.label_smoothing = smoothing;
        c.z_loss = z_loss;
        c.logits.at(0, 1, 5) = bad;
        CAPTURE(classes, bad, smoothing, z_loss);
        check(c);
        c.labels[1] = 5;
        check(c);
        c.labels[0] = classes;
        c.logits.at(0, 2, c.label(2)) = -kInfinity;
        check(c);
      }
    }
  }
}

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

TEST_CASE("xent: 64-bit and 32-bit labels give the same bits", "[xent][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int64_t classes : {5, 300, 1100}) {
      XentCase c = random_case(dtype, 600, classes, 4.0,
                               2800);  // enough rows for a separate counting launch
      for (size_t i = 0; i < c.labels.size(); i += 4) c.labels[i] = -100;
      const XentResult narrow = run(c);
      c.dtype_labels = MP_INT64;
      const XentResult wide = run(c);
      check_same(wide, narrow);
      CHECK(wide.lse == narrow.lse);
    }
  }
}

TEST_CASE("xent: a 64-bit label out of range does not wrap into range", "[xent][short]") {
  constexpr int64_t kWrap = int64_t{1} << 32;
  for (const int64_t label : {kWrap, kWrap + 2, -kWrap + 2, (kWrap << 31) + 1, kWrap / 2}) {
    for (const int64_t classes : {4, 1100}) {
      XentCase c = random_case(MP_FP32, 3, classes, 4.0, 2900);
      c.dtype_labels = MP_INT64;
      c.labels[1] = label;
      check(c);
      CHECK(std::isnan(run(c).row_loss[1]));
      c.ignore_label = label;
      check(c);
      CHECK(run(c).row_loss[1] == 0.0f);
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
