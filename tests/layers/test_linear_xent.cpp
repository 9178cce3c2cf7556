// Linear layer with cross-entropy: chunks of rows, micro-batches, workspace.
#include "tests/layers/linear_xent_case.h"

using namespace mptest;

namespace {

/// Compares a call, and the same in place, with mp_gemm and mp_softmax_xent of all rows.
void check_composed(LinearXentCase c, bool is_repeated = true) {
  CAPTURE(mp_dtype_name(c.desc.dtype), c.desc.rows, c.desc.width, c.desc.classes);
  const LinearXentResult got = run(c);
  const XentResult want = compose(c);
  check_same_losses(got, want);
  check_gradients(c, want.dlogits, got);
  if (!is_repeated) return;
  check_same(got, run(c));
  c.in_place = true;
  check_same(got, run(c));
}

}  // namespace

TEST_CASE("linear xent: chunks of rows have the bits of mp_gemm and mp_softmax_xent", "[xent]") {
  for (const mp_dtype_t dtype : kDtypes)
    for (const int64_t rows :
         {int64_t{1}, kChunkRows - 1, kChunkRows, kChunkRows + 1, 2 * kChunkRows + 1}) {
      LinearXentCase c = integer_case(dtype, rows, 9, 32, 4100);
      check_composed(c, false);
      for (size_t i = 4; i < c.labels.size(); i += 5) c.labels[i] = c.desc.ignore_label;
      c.desc.flags |= MP_XENT_FLAG_ACCUMULATE;
      c.before = 3.0f;
      c.padding = 5;
      check_composed(c);
    }
}

TEST_CASE("linear xent: chunks of 112 rows with half a million classes", "[xent][long]") {
  // All rows but three are ignored: the composition of all would take gigabytes.
  constexpr int64_t kWidth = 2, kKept[] = {0, 111, 112};
  LinearXentCase c = integer_case(MP_FP32, 113, kWidth, 1 << 19, 4150);
  LinearXentCase kept = integer_case(MP_FP32, 3, kWidth, 1 << 19, 4151);
  c.padding = 3;
  c.count = kept.count = 3.0f;
  std::ranges::fill(c.labels, c.desc.ignore_label);
  c.w = kept.w;
  for (int64_t i = 0; i < 3; i++) {
    c.labels[static_cast<size_t>(kKept[i])] = kept.label(i);
    for (int64_t p = 0; p < kWidth; p++) c.x.at(0, kKept[i], p) = kept.x.at(0, i, p);
  }
  const LinearXentResult all = run(c);
  LinearXentResult got{{}, {}, all.loss, all.correct, kept.x, all.dw, all.dbias};
  for (int64_t i = 0; i < 3; i++) {
    got.row_loss.push_back(all.row_loss[static_cast<size_t>(kKept[i])]);
    got.lse.push_back(all.lse[static_cast<size_t>(kKept[i])]);
    for (int64_t p = 0; p < kWidth; p++) got.dx.at(0, i, p) = all.dx.at(0, kKept[i], p);
  }
  const XentResult want = compose(kept);
  check_same_losses(got, want);
  check_gradients(kept, want.dlogits, got);
}

TEST_CASE("linear xent: losses have the bits of mp_gemm and mp_softmax_xent", "[xent][short]") {
  const struct {
    int64_t rows, width, classes;
  } shapes[] = {{1, 1, 1},     {7, 5, 3},      {33, 16, 32},  {40, 24, 100},
                {65, 33, 127}, {37, 2, 128},   {18, 64, 129}, {9, 40, 1023},
                {5, 8, 1500},  {37, 65, 2048}, {3, 17, 8200}};
  uint64_t seed = 4200;
  for (const mp_dtype_t dtype : kDtypes) {
    for (const auto &shape : shapes) {
      LinearXentCase c = integer_case(dtype, shape.rows, shape.width, shape.classes, ++seed);
      c.loss_scale = 256.0f;
      check_composed(c);
      Random random(seed);
      c.bias = random_integers(shape.classes, 4, random);
      c.desc.dtype_labels = MP_INT64;
      c.desc.label_smoothing = 0.25f;
      c.desc.z_loss = 0.01f;
      c.desc.weight = 0.75f;
      c.desc.ignore_label = c.label(shape.rows / 2);
      c.desc.flags |= MP_XENT_FLAG_ACCUMULATE;
      for (int64_t j = 0; seed % 2 == 0 && j < shape.classes; j++)
        c.class_weights.push_back(static_cast<float>(j % 4) / 2.0f);
      c.count = seed % 3 == 0 ? 4096.0f : 0.0f;
      c.padding = 3;
      c.before = -1.0f;
      check_composed(c);
    }
  }
}

TEST_CASE("linear xent: unequal micro-batches have the bits of the whole batch", "[xent]") {
  // The fastest kernel for few rows would split 1032 classes.
  constexpr int64_t kRows = kChunkRows + 1000, kWidth = 40, kClasses = 1032;
  for (const mp_dtype_t dtype : kDtypes) {
    // Real values, whose sums depend on their order.
    Random random(4500);
    LinearXentCase whole(dtype, kRows, kWidth, kClasses);
    whole.x.values = random_reals(dtype, kRows * kWidth, -1.0, 1.0, random);
    whole.w.values = random_reals(dtype, kClasses * kWidth, -1.0, 1.0, random);
    whole.bias = random_integers(kClasses, 4, random);
    for (int64_t i = 0; i < kRows; i++)
      whole.labels[static_cast<size_t>(i)] =
          i % 7 < 2 || i < 20 ? -100 : random.integer(0, kClasses - 1);
    whole.loss_scale = 4096.0f;
    const LinearXentResult want = run(whole);
    CAPTURE(mp_dtype_name(dtype));

    const int64_t cuts[] = {0, 1, 20, 149, 150, kChunkRows + 151, kRows};
    const DeviceFloat counted(0.0f);
    for (size_t i = 0; i + 1 < std::size(cuts); i++) {
      const DeviceIndices labels(
          MP_INT32, {whole.labels.begin() + cuts[i], whole.labels.begin() + cuts[i + 1]});
      require_ok(mp_xent_count(context(), cuts[i + 1] - cuts[i], MP_INT32, labels.data(), -100,
                               counted.data(), kStream));
    }
    double loss = 0.0, losses = 0.0;
    for (size_t i = 0; i + 1 < std::size(cuts); i++) {
      const int64_t first = cuts[i], rows = cuts[i + 1] - first;
      LinearXentCase part(dtype, rows, kWidth, kClasses);
      const auto begin = whole.x.values.begin() + first * kWidth;
      part.x.values.assign(begin, begin + rows * kWidth);
      part.w = whole.w;
      part.bias = whole.bias;
      part.labels.assign(whole.labels.begin() + first, whole.labels.begin() + first + rows);
      part.loss_scale = whole.loss_scale;
      part.count = counted.value();
      const LinearXentResult got = run(part);
      CAPTURE(first, rows);
      for (int64_t r = 0; r < rows; r++) {
        const size_t row = static_cast<size_t>(first + r);
        REQUIRE(same_bits(got.row_loss[static_cast<size_t>(r)], want.row_loss[row]));
        REQUIRE(same_bits(got.lse[static_cast<size_t>(r)], want.lse[row]));
        losses += want.row_loss[row];
      }
      const auto rows_of_whole = want.dx.values.begin() + first * kWidth;
      CHECK(got.dx.values == std::vector<double>(rows_of_whole, rows_of_whole + rows * kWidth));
      loss += got.loss;
    }
    // Each loss is a quotient in fp64, rounded to fp32.
    CHECK(std::fabs(loss - losses / counted.value()) <= 7.0 * 0x1p-24 * loss);
    CHECK(within(rounded(losses / counted.value(), 0.0), want.loss));
  }
}

TEST_CASE("linear xent: outputs do not depend on the presence of others", "[xent][short]") {
  LinearXentCase c = integer_case(MP_FP16, 50, 24, 40, 4600);
  c.loss_scale = 64.0f;
  const LinearXentResult all = run(c);
  for (int present = 0; present < 8; present++) {
    c.has_dx = (present & 1) != 0;
    c.has_dw = (present & 2) != 0;
    c.has_dbias = (present & 4) != 0;
    const LinearXentResult some = run(c);
    CAPTURE(present);
    CHECK(same_bits(some.row_loss, all.row_loss));
    CHECK(same_bits(some.loss, all.loss));
    CHECK(some.correct == all.correct);
    if (c.has_dx) CHECK(some.dx.values == all.dx.values);
    if (c.has_dw) CHECK(some.dw.values == all.dw.values);
    if (c.has_dbias) CHECK(same_bits(some.dbias, all.dbias));
  }
}

TEST_CASE("linear xent: non-finite values and invalid labels reach their rows only",
          "[xent][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    LinearXentCase c = integer_case(dtype, 20, 16, 40, 4700);
    const LinearXentResult clean = run(c);
    c.x.at(0, 3, 5) = kNaN;
    c.x.at(0, 6, 2) = kInfinity;
    c.labels[9] = 40;
    c.labels[12] = -1;
    const LinearXentResult got = run(c);  // checks found_inf
    const XentResult want = compose(c);
    CAPTURE(mp_dtype_name(dtype));
    check_same_losses(got, want);
    CHECK(std::isnan(got.loss));
    for (int64_t i = 0; i < 20; i++) {
      const bool bad = i == 3 || i == 6 || i == 9 || i == 12;
      for (int64_t p = 0; p < 16; p++) {
        if (bad)
          CHECK(std::isnan(got.dx.at(0, i, p)));
        else
          CHECK(got.dx.at(0, i, p) == clean.dx.at(0, i, p));
      }
      CHECK(std::isnan(got.row_loss[static_cast<size_t>(i)]) == bad);
    }
    CHECK(std::isnan(got.dw.at(0, 0, 0)));
    CHECK(std::isnan(got.dbias[0]));
  }
}

TEST_CASE("linear xent: an overflow of FP16 logits makes the gradient NaN", "[xent][short]") {
  LinearXentCase c(MP_FP16, 2, 4, 8);
  c.x.at(0, 1, 0) = c.w.at(0, 3, 0) = 256.0;  // 65536
  const LinearXentResult got = run(c);
  CHECK(std::isfinite(got.row_loss[0]));
  CHECK(std::isnan(got.row_loss[1]));
  CHECK(std::isnan(got.dx.at(0, 1, 2)));
}

TEST_CASE("linear xent: if all rows are ignored, the loss is NaN and the gradients 0",
          "[xent][short]") {
  LinearXentCase c = integer_case(MP_BF16, 30, 16, 40, 4800);
  std::fill(c.labels.begin(), c.labels.end(), -100);
  const LinearXentResult got = run(c);
  CHECK(std::isnan(got.loss));
  CHECK(got.dx.values == std::vector<double>(got.dx.values.size(), 0.0));
  CHECK(got.dw.values == std::vector<double>(got.dw.values.size(), 0.0));
  CHECK(got.dbias == std::vector<float>(got.dbias.size(), 0.0f));
}

TEST_CASE("linear xent: no rows clear or keep the gradients of weights", "[xent][short]") {
  constexpr int64_t kClasses = 5, kWidth = 3, kLd = 4;
  for (const bool accumulates : {false, true}) {
    mp_linear_xent_desc_t d = mp_linear_xent_desc_default(0, kWidth, kClasses, MP_FP16);
    d.ld_dw = kLd;
    if (accumulates) d.flags |= MP_XENT_FLAG_ACCUMULATE;
    CHECK(workspace_size(d) == 0);
    DeviceMatrices dw(MP_FP32, 1, kClasses, kWidth, kLd, 0, 0, kCanary);
    dw.upload(Matrices(1, kClasses, kWidth, 2.0));
    const DeviceBuffer<float> dbias(std::vector<float>(kClasses, 2.0f));
    const DeviceFloat loss(-1.0f);
    auto t = initialized<mp_xent_tensors_t>();
    t.dw = static_cast<float *>(dw.data());
    t.dbias = dbias.data();
    t.loss = loss.data();
    require_ok(mp_linear_xent(context(), &d, &t, nullptr, 0, kStream));
    const double wanted = accumulates ? 2.0 : 0.0;
    CHECK(dw.download().values == std::vector<double>(kClasses * kWidth, wanted));
    CHECK(dbias.download() == std::vector<float>(kClasses, static_cast<float>(wanted)));
    CHECK(dw.damage() == "");
    CHECK(std::isnan(loss.value()));
    const DeviceFloat count(7.0f);
    t.count = count.data();
    require_ok(mp_linear_xent(context(), &d, &t, nullptr, 0, kStream));
    CHECK(loss.value() == 0.0f);
  }
}

TEST_CASE("linear xent: the workspace is at most 256 MiB for any vocabulary", "[xent][short]") {
  constexpr size_t kMiB = size_t{1} << 20;
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int64_t classes : {1, 1000, 50257, 128256, 131072, 1000003, 1 << 22}) {
      size_t previous = 0;
      for (const int64_t rows : {1, 16, 1000, 8192, 1 << 30}) {
        for (const int64_t width : {1, 4096, 65536}) {
          const mp_linear_xent_desc_t d = mp_linear_xent_desc_default(rows, width, classes, dtype);
          const size_t bytes = workspace_size(d);
          CAPTURE(mp_dtype_name(dtype), classes, rows, width);
          CHECK(bytes <= 256 * kMiB);
          // All logits of small problems, or nearly 224 MiB or 4096 rows of large ones.
          const int64_t elem = dtype == MP_FP32 ? 4 : 2;
          const auto all = static_cast<double>(std::min(rows, kChunkRows) * classes * elem);
          CHECK(static_cast<double>(bytes) >= std::min(all, 224.0 / 2.0 * kMiB));
          if (width != 4096) continue;
          CHECK(bytes >= previous);
          previous = bytes;
        }
      }
    }
  }
  // 7 x 128 rows of 131072 FP16 logits are 224 MiB.
  const mp_linear_xent_desc_t d = mp_linear_xent_desc_default(8192, 4096, 131072, MP_FP16);
  CHECK(workspace_size(d) > 224 * kMiB);
}

// ---------------------------------------------------------------------------- count

TEST_CASE("xent count: adds the rows that are not ignored", "[xent][short]") {
  for (const mp_dtype_t dtype : {MP_INT32, MP_INT64}) {
    for (const int64_t rows : {1, 511, 512, 513, 3000}) {
      std::vector<int64_t> labels;
      float counted = 0.0f;
      for (int64_t i = 0; i < rows; i++) {
        labels.push_back(i % 3 == 0 ? -100 : i - 5);  // invalid labels count too
        counted += labels.back() != -100;
      }
      const DeviceIndices on_device(dtype, labels);
      const DeviceFloat count(0.0f);
      for (int call = 1; call <= 3; call++) {
        require_ok(
            mp_xent_count(context(), rows, dtype, on_device.data(), -100, count.data(), kStream));
        CHECK(count.value() == static_cast<float>(call) * counted);
      }
      require_ok(mp_xent_count(context(), 0, dtype, nullptr, -100, count.data(), kStream));
      CHECK(count.value() == 3.0f * counted);
    }
  }
}
