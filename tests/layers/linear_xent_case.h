// Linear layer and cross-entropy: a call of mp_linear_xent with all outputs, and the composition of
// mp_gemm and mp_softmax_xent that stores all logits.
#pragma once

#include "tests/layers/xent_case.h"

namespace mptest {

/// Rows of a chunk, except with very many classes.
constexpr int64_t kChunkRows = 4096;

struct LinearXentCase {
  mp_linear_xent_desc_t desc;
  Matrices x, w;             ///< values representable in desc.dtype
  std::vector<double> bias;  ///< empty: NULL
  std::vector<int64_t> labels;
  float loss_scale = 1.0f;
  std::vector<float> class_weights = {};  ///< empty: NULL
  float count = 0.0f;                     ///< 0: NULL
  int64_t padding = 0;                    ///< ld - width, in elements
  bool in_place = false;                  ///< dx = x
  bool has_dx = true, has_dw = true, has_dbias = true;
  float before = 0.0f;  ///< dw and dbias before the call

  LinearXentCase(mp_dtype_t dtype, int64_t rows, int64_t width, int64_t classes)
      : desc(mp_linear_xent_desc_default(rows, width, classes, dtype)),
        x(1, rows, width),
        w(1, classes, width),
        labels(static_cast<size_t>(rows)) {}

  int64_t label(int64_t row) const { return labels[static_cast<size_t>(row)]; }
  bool accumulates() const { return (desc.flags & MP_XENT_FLAG_ACCUMULATE) != 0; }
  bool is_ignored(int64_t row) const {
    return (desc.flags & MP_XENT_FLAG_IGNORE_LABEL) != 0 && label(row) == desc.ignore_label;
  }
};

struct LinearXentResult {
  std::vector<float> row_loss, lse;
  float loss;
  int64_t correct;
  Matrices dx, dw;
  std::vector<float> dbias;
};

inline size_t workspace_size(const mp_linear_xent_desc_t &desc) {
  size_t bytes = 0;
  require_ok(mp_linear_xent_workspace_size(context(), &desc, &bytes));
  return bytes;
}

/// Runs mp_linear_xent in a poisoned workspace of the least size, and checks guard zones, padding,
/// statistics, and that inputs and unused outputs did not change.
inline LinearXentResult run(const LinearXentCase &c) {
  mp_linear_xent_desc_t d = c.desc;
  const int64_t ld = d.width + c.padding;
  d.ld_x = d.ld_w = d.ld_dx = d.ld_dw = ld;
  const auto matrix = [&](mp_dtype_t dtype, int64_t rows, uint8_t padding) {
    return DeviceMatrices(dtype, 1, rows, d.width, ld, 0, 0, padding);
  };
  DeviceMatrices x = matrix(d.dtype, d.rows, kPoison), beside = matrix(d.dtype, d.rows, kCanary);
  DeviceMatrices w = matrix(d.dtype, d.classes, kPoison), dw = matrix(MP_FP32, d.classes, kCanary);
  x.upload(c.x);
  w.upload(c.w);
  // NaN must be overwritten.
  const float before = c.accumulates() ? c.before : static_cast<float>(kNaN);
  dw.upload(Matrices(1, d.classes, d.width, before));
  DeviceMatrices &dx = c.in_place ? x : beside;
  const DeviceArray bias(d.dtype, c.bias);
  const DeviceIndices labels(d.dtype_labels, c.labels);
  const DeviceFloat scale(c.loss_scale), count(c.count), loss(-1.0f);
  const DeviceBuffer<float> row_loss(d.rows), lse(d.rows);
  const DeviceBuffer<float> dbias(std::vector<float>(static_cast<size_t>(d.classes), before));
  const DeviceValue<int64_t> correct(100);
  const GradStats stats;
  auto t = initialized<mp_xent_tensors_t>();
  const DeviceBuffer<float> class_weights(c.class_weights);
  t.class_weights = c.class_weights.empty() ? nullptr : class_weights.data();
  t.x = x.data();
  t.w = w.data();
  t.bias = c.bias.empty() ? nullptr : bias.data();
  t.labels = labels.data();
  t.loss_scale = scale.data();
  t.count = c.count == 0.0f ? nullptr : count.data();
  t.row_loss = row_loss.data();
  t.lse = lse.data();
  t.loss = loss.data();
  t.correct = correct.data();
  t.dx = c.has_dx ? dx.data() : nullptr;
  t.dw = c.has_dw ? static_cast<float *>(dw.data()) : nullptr;
  t.dbias = c.has_dbias ? dbias.data() : nullptr;
  t.stats = stats.pointers();
  const DeviceWorkspace space(mp_linear_xent_workspace_size, context(), &d);
  require_ok(mp_linear_xent(context(), &d, &t, space.data(), space.bytes(), kStream));

  LinearXentResult got{row_loss.download(), lse.download(), loss.value(),    correct.value() - 100,
                       dx.download(),       dw.download(),  dbias.download()};
  std::vector<double> gradients;
  if (c.has_dx) gradients = got.dx.values;
  if (c.has_dw) gradients.insert(gradients.end(), got.dw.values.begin(), got.dw.values.end());
  if (c.has_dbias) gradients.insert(gradients.end(), got.dbias.begin(), got.dbias.end());
  stats.check(gradients);
  for (const DeviceMatrices *const matrices : {&x, &beside, &w, &dw})
    CHECK(matrices->damage() == "");
  for (const DeviceBuffer<float> *const vector : {&row_loss, &lse, &dbias})
    CHECK(vector->guard_damage() == "");
  CHECK(space.guard_damage() == "");
  if (!c.in_place) {
    const Matrices after = x.download();
    int64_t changed = 0;
    for (size_t i = 0; i < after.values.size(); i++)
      changed += !same_value(after.values[i], c.x.values[i]);
    CHECK(changed == 0);
  }
  return got;
}

/// Runs mp_gemm and mp_softmax_xent on all rows.
inline XentResult compose(const LinearXentCase &c) {
  const mp_linear_xent_desc_t &d = c.desc;
  const int64_t ld = (d.classes + 7) / 8 * 8;  // as in the workspace: bits depend on alignment
  DeviceMatrices x(d.dtype, 1, d.rows, d.width, d.width, 0, 0, kPoison);
  DeviceMatrices w(d.dtype, 1, d.classes, d.width, d.width, 0, 0, kPoison);
  const DeviceMatrices logits(d.dtype, 1, d.rows, d.classes, ld, 0, 0, kCanary);
  x.upload(c.x);
  w.upload(c.w);
  const DeviceArray bias(d.dtype, c.bias);
  mp_gemm_desc_t gemm = mp_gemm_desc_default(d.rows, d.classes, d.width, d.dtype, d.dtype);
  gemm.op_b = MP_OP_T;
  gemm.ld_b = d.width;
  gemm.ld_c = gemm.ld_d = ld;
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.bias = c.bias.empty() ? nullptr : bias.data();
  epilogue.dtype_bias = d.dtype;
  require_ok(mp_gemm(context(), &gemm, x.data(), w.data(), nullptr, logits.data(), &epilogue,
                     nullptr, 0, kStream));
  XentCase xent;
  xent.dtype = d.dtype;
  xent.logits = logits.download();
  xent.labels = c.labels;
  xent.class_weights.assign(c.class_weights.begin(), c.class_weights.end());
  xent.dtype_labels = d.dtype_labels;
  xent.weight = d.weight;
  xent.loss_scale = c.loss_scale;
  xent.flags = d.flags & MP_XENT_FLAG_IGNORE_LABEL;
  xent.ignore_label = d.ignore_label;
  xent.label_smoothing = d.label_smoothing;
  xent.z_loss = d.z_loss;
  xent.count = c.count;
  xent.padding = ld - d.classes;
  xent.in_place = true;
  return run(xent);
}

/// Compares bits; all NaNs are equal.
inline bool same_bits(const std::vector<float> &a, const std::vector<float> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return same_bits(x, y) || (std::isnan(x) && std::isnan(y));
  });
}

inline void check_same_losses(const LinearXentResult &got, const XentResult &want) {
  CHECK(same_bits(got.row_loss, want.row_loss));
  CHECK(same_bits(got.lse, want.lse));
  CHECK(same_bits(std::vector{got.loss}, std::vector{want.loss}));
  CHECK(got.correct == want.correct);
}

/// Compares all outputs with those of another call that has the same tensors.
inline void check_same(const LinearXentResult &a, const LinearXentResult &b) {
  CHECK(same_bits(a.row_loss, b.row_loss));
  CHECK(same_bits(a.lse, b.lse));
  CHECK(same_bits(a.loss, b.loss));
  CHECK(a.correct == b.correct);
  CHECK(a.dx.values == b.dx.values);
  CHECK(a.dw.values == b.dw.values);
  CHECK(same_bits(a.dbias, b.dbias));
}

/// Checks the gradients against products of the composed gradient of the logits in fp64.  Each
/// product adds the five roundings of its epilogue (gemm_error), those of dw once per chunk.
inline void check_gradients(const LinearXentCase &c, const Matrices &dlogits,
                            const LinearXentResult &got) {
  const mp_linear_xent_desc_t &d = c.desc;
  const auto add_epilogues = [](BoundedSum &sum, int64_t count) {
    for (int64_t i = 0; i < 5 * count; i++) sum.add(0.0);
  };
  int64_t wrong_dx = 0, wrong_dw = 0, wrong_dbias = 0;
  for (int64_t i = 0; i < d.rows; i++)
    for (int64_t p = 0; p < d.width; p++) {
      BoundedSum sum;
      for (int64_t j = 0; j < d.classes; j++)
        sum.add(Bounded(dlogits.at(0, i, j)) * c.w.at(0, j, p));
      add_epilogues(sum, 1);
      wrong_dx += !within(sum.total(), got.dx.at(0, i, p), d.dtype);
    }
  // A chunk has at most 224 MiB of logits.
  const int64_t rows =
      std::min(kChunkRows, (int64_t{224} << 20) / (d.classes * format_of(d.dtype).bits / 8));
  const int64_t chunks = (d.rows + rows - 1) / rows;
  const double before = c.accumulates() ? c.before : 0.0;
  for (int64_t j = 0; j < d.classes; j++) {
    BoundedSum of_rows;
    of_rows.add(before);
    for (int64_t i = 0; i < d.rows; i++) of_rows.add(dlogits.at(0, i, j));
    add_epilogues(of_rows, chunks);
    wrong_dbias += !within(of_rows.total(), got.dbias[static_cast<size_t>(j)]);
    for (int64_t p = 0; p < d.width; p++) {
      BoundedSum sum;
      sum.add(before);
      for (int64_t i = 0; i < d.rows; i++) sum.add(Bounded(dlogits.at(0, i, j)) * c.x.at(0, i, p));
      add_epilogues(sum, chunks);
      wrong_dw += !within(sum.total(), got.dw.at(0, j, p));
    }
  }
  CHECK(wrong_dx == 0);
  CHECK(wrong_dw == 0);
  CHECK(wrong_dbias == 0);
}

/// Returns a case with integers whose logits are exact, so that they are the same for each kernel.
inline LinearXentCase integer_case(mp_dtype_t dtype, int64_t rows, int64_t width, int64_t classes,
                                   uint64_t seed) {
  Random random(seed);
  LinearXentCase c(dtype, rows, width, classes);
  const ExactPlan plan = exact_plan(width, 60, 2);  // sums of at most 60, and a bias of 4
  for (int64_t i = 0; i < rows; i++)
    for (int64_t p = 0; p < width; p++)
      if ((p + i) % plan.period == 0)
        c.x.at(0, i, p) = static_cast<double>(random.integer(-plan.range, plan.range));
  for (double &w : c.w.values) w = static_cast<double>(random.integer(-plan.range, plan.range));
  for (int64_t &label : c.labels) label = random.integer(0, classes - 1);
  return c;
}

}  // namespace mptest
