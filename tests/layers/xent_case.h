// Softmax cross-entropy against fp64: a call of mp_softmax_xent, and checks of all outputs.
//
// Rows whose exponentials are exact (equal logits, or all except some equal to -inf) are compared
// to the last rounding, so a class missing from a sum is detected; others within their running
// error.
#pragma once

#include "tests/step/oracle_step.h"
#include "tests/step/step_fixtures.h"
#include "tests/support/grad_stats.h"

namespace mptest {

struct XentCase {
  mp_dtype_t dtype = MP_FP32;
  Matrices logits;  ///< one matrix, of values representable in `dtype`
  std::vector<int64_t> labels;
  Matrices targets;  ///< soft targets, of values representable in dtype_labels; none: `labels`
  std::vector<double> class_weights;  ///< none: NULL
  mp_dtype_t dtype_labels = MP_INT32;
  float weight = 1.0f;
  float loss_scale = 1.0f;
  uint32_t flags = MP_XENT_FLAG_IGNORE_LABEL;
  int64_t ignore_label = -100;
  float label_smoothing = 0.0f, z_loss = 0.0f;
  float count = 0.0f;   ///< 0: pass NULL, which means the number of rows that are not ignored
  int64_t padding = 0;  ///< ld - classes, in elements
  int64_t offset = 0;   ///< offset of the matrices from 256-byte alignment, in elements
  int64_t gradient_padding = 0;  ///< added to both for the gradient
  int64_t gradient_offset = 0;
  bool in_place = false;
  bool forward_only = false;
  bool null_scale = false;  ///< pass NULL for loss_scale, which means 1

  int64_t rows() const { return logits.rows; }
  int64_t classes() const { return logits.cols; }
  int64_t label(int64_t row) const { return labels[static_cast<size_t>(row)]; }
  bool is_soft() const { return targets.rows != 0; }
  bool is_nll() const { return (flags & MP_XENT_FLAG_LOG_PROBABILITIES) != 0; }
  bool ignored(int64_t row) const {
    return !is_soft() && (flags & MP_XENT_FLAG_IGNORE_LABEL) != 0 && label(row) == ignore_label;
  }
};

struct XentResult {
  std::vector<float> row_loss, lse;
  float loss;
  int64_t correct;  ///< added to an initial 100
  Matrices dlogits;
};

inline XentResult run(const XentCase &c) {
  const int64_t rows = c.rows(), classes = c.classes(), ld = classes + c.padding;
  const int64_t ld_beside = ld + c.gradient_padding;
  DeviceMatrices logits(c.dtype, 1, rows, classes, ld, 0, c.offset, kPoison);
  DeviceMatrices beside(c.dtype, 1, rows, classes, ld_beside, 0, c.offset + c.gradient_offset,
                        kCanary);
  logits.upload(c.logits);
  DeviceMatrices &dlogits = c.in_place ? logits : beside;
  const DeviceIndices labels(c.dtype_labels, c.labels);
  DeviceMatrices soft(c.is_soft() ? c.dtype_labels : MP_FP32, 1, c.targets.rows, c.targets.cols,
                      c.targets.cols + c.padding, 0, c.offset, kPoison);
  if (c.is_soft()) soft.upload(c.targets);
  const DeviceArray class_weights(MP_FP32, c.class_weights);
  const DeviceFloat scale(c.loss_scale), loss(-1.0f), count(c.count);
  const DeviceBuffer<float> row_loss(rows), lse(rows);
  const DeviceValue<int64_t> correct(100);

  mp_xent_desc_t desc = mp_xent_desc_default(rows, classes, c.dtype);
  desc.ld_logits = ld;
  desc.ld_dlogits = c.in_place ? ld : ld_beside;
  desc.weight = c.weight;
  desc.flags = c.flags;
  desc.ignore_label = c.ignore_label;
  desc.label_smoothing = c.label_smoothing;
  desc.z_loss = c.z_loss;
  desc.dtype_labels = c.dtype_labels;
  desc.ld_labels = c.is_soft() && c.padding != 0 ? classes + c.padding : 0;
  const GradStats stats;
  auto t = initialized<mp_xent_tensors_t>();
  t.x = logits.data();
  t.labels = c.is_soft() ? soft.data() : labels.data();
  if (!c.class_weights.empty()) t.class_weights = static_cast<const float *>(class_weights.data());
  t.loss_scale = c.null_scale ? nullptr : scale.data();
  t.count = c.count == 0.0f ? nullptr : count.data();
  t.row_loss = row_loss.data();
  t.lse = lse.data();
  t.loss = loss.data();
  t.correct = c.is_soft() ? nullptr : correct.data();
  t.dx = c.forward_only ? nullptr : dlogits.data();
  t.stats = stats.pointers();
  require_ok(mp_softmax_xent(context(), &desc, &t, kStream));
  if (c.forward_only)
    stats.check({});
  else
    stats.check(dlogits.download().values);
  CHECK(logits.damage() == "");
  CHECK(beside.damage() == "");
  CHECK(row_loss.guard_damage() == "");
  CHECK(lse.guard_damage() == "");
  if (!c.in_place) {
    const Matrices after = logits.download();
    for (size_t i = 0; i < after.values.size(); ++i) {
      if (!same_value(after.values[i], c.logits.values[i])) FAIL("the logits were changed");
    }
  }
  return {row_loss.download(), lse.download(), loss.value(), correct.value() - 100,
          dlogits.download()};
}

/// Compares the bits of loss and gradient; the loss may be NaN.
inline void check_same(const XentResult &a, const XentResult &b) {
  CHECK(a.dlogits.values == b.dlogits.values);
  CHECK(a.row_loss == b.row_loss);
  CHECK(same_bits(a.loss, b.loss));
  CHECK(a.correct == b.correct);
}

inline std::vector<double> row_of(const Matrices &matrix, int64_t i) {
  const auto begin = matrix.values.begin() + i * matrix.cols;
  return {begin, begin + matrix.cols};
}

/// Outputs of a row before they are rounded to their types.
struct XentRow {
  Bounded loss;
  std::vector<Bounded> dlogits;
  bool correct;
};

/// Returns the expected outputs of row i: values by the formulas of the header, errors by those of
/// the kernel.
inline XentRow expected_row(const XentCase &c, int64_t i, double counted) {
  if (c.ignored(i)) return {0.0, std::vector<Bounded>(static_cast<size_t>(c.classes())), false};
  const std::vector<double> x = row_of(c.logits, i);
  const size_t classes = x.size();
  const Bounded not_a_number(kNaN), label_share(1.0 - double{c.label_smoothing}, 0x1p-25),
      share = Bounded(c.label_smoothing) / static_cast<double>(classes);
  XentRow row{not_a_number, std::vector<Bounded>(classes, not_a_number), false};
  const int64_t label = c.is_soft() ? -1 : c.label(i);
  const bool is_plain = !c.is_soft() && !c.is_nll() && c.class_weights.empty();
  if (!c.is_soft() && (label < 0 || label >= c.classes())) return row;
  const size_t top = static_cast<size_t>(std::max_element(x.begin(), x.end()) - x.begin());
  if (std::isinf(x[top]) || std::any_of(x.begin(), x.end(), [](double a) { return std::isnan(a); }))
    return row;
  std::vector<Bounded> q, powers;
  BoundedSum others, rest, distance, beside_label, differences;
  double powers_sum = 0.0, targets_sum = 0.0, loss = 0.0;
  for (size_t j = 0; j < classes; ++j) {
    const int64_t column = static_cast<int64_t>(j);
    Bounded own(c.is_soft() ? c.targets.at(0, i, column) : label == column ? 1.0 : 0.0);
    if (c.label_smoothing > 0.0f) own = own * label_share + share;
    if (!c.class_weights.empty()) own = own * c.class_weights[j];
    if (own.value == 0.0) own = Bounded(0.0);
    q.push_back(own);
    powers.push_back(oracle::softmax_power(x[j], x[top], c.dtype));
    powers_sum += std::exp(x[j] - x[top]);
    targets_sum += own.value;
    if (j != top) others.add(powers[j]), rest.add(own);
    if (column != label) beside_label.add(powers[j]);
    if (is_plain && c.label_smoothing > 0.0f && std::isfinite(x[j]))
      differences.add(Bounded(x[j]) - x[static_cast<size_t>(label)]);
    if (own.value != 0.0 && std::isfinite(x[j]))
      distance.add(own * (c.is_nll() ? Bounded(-x[j]) : Bounded(x[top]) - x[j]));
  }
  const Bounded sum = others.total(), remaining = rest.total(), total = remaining + q[top];
  for (size_t j = 0; j < classes; ++j)
    if (q[j].value != 0.0)
      loss -= q[j].value * (c.is_nll() ? x[j] : x[j] - x[top] - std::log1p(sum.value));
  const bool has_z_loss = c.z_loss > 0.0f && total.value > 0.0;
  const Bounded lse = has_z_loss ? Bounded(x[top]) + log(Bounded(1.0) + sum) : Bounded(0.0);
  const Bounded of_lse = Bounded(c.z_loss) * lse * lse, growth = Bounded(2.0 * c.z_loss) * lse;
  Bounded plain = c.is_nll() ? distance.total() : total * log1p(sum) + distance.total() + of_lse;
  // Without class weights, the other classes are compared with the label.
  if (is_plain) {
    const double of_label = x[static_cast<size_t>(label)];
    plain = of_label == x[top] ? log1p(beside_label.total())
                               : log(Bounded(1.0) + sum) - (Bounded(of_label) - x[top]);
    plain = plain - share * differences.total() + of_lse;
  }
  loss += of_lse.value;
  if (c.weight == 0.0f)
    row.loss = Bounded(0.0);
  else
    row.loss = Bounded(c.weight) * Bounded(loss, std::isfinite(loss) ? plain.error : 0.0);
  row.correct = !c.is_soft() && static_cast<int64_t>(top) == label;
  const Bounded factor = Bounded(c.null_scale ? 1.0 : c.loss_scale) * c.weight / counted;
  const Bounded inverse = Bounded(1.0) / (Bounded(1.0) + sum);
  const Bounded of_others = factor * inverse * beside_label.total();
  const Bounded at_label =
      factor * (Bounded(c.label_smoothing) - share) - of_others + growth * (factor - of_others);
  for (size_t j = 0; j < classes; ++j) {
    const Bounded error = c.is_nll() ? factor * q[j]
                          : j == top
                              ? factor * ((remaining + growth) * inverse - q[j] * (sum * inverse))
                              : factor * ((total + growth) * (powers[j] * inverse) - q[j]);
    const double p = c.is_nll() ? 0.0 : std::exp(x[j] - x[top]) / powers_sum;
    row.dlogits[j] = {factor.value * (p * (targets_sum + growth.value) - q[j].value), error.error};
    if (targets_sum == 0.0) row.dlogits[j] = Bounded(0.0);
  }
  if (is_plain) row.dlogits[static_cast<size_t>(label)] = at_label;
  return row;
}

/// Returns the divisor of a call without a given count.
inline double counted_of(const XentCase &c) {
  double counted = 0.0;
  for (int64_t i = 0; i < c.rows(); ++i) {
    if (c.ignored(i)) continue;
    const bool is_valid = !c.is_soft() && c.label(i) >= 0 && c.label(i) < c.classes();
    counted += c.is_soft() || c.class_weights.empty() ? 1.0
               : is_valid ? c.class_weights[static_cast<size_t>(c.label(i))]
                          : 0.0;
  }
  return counted;
}

/// Returns log sum exp(x) of a row, or 0 if it is ignored.
inline double expected_lse(const XentCase &c, int64_t i) {
  if (c.ignored(i)) return 0.0;
  const std::vector<double> row = row_of(c.logits, i);
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0.0;
  for (const double x : row) sum += std::exp(x - largest);
  return largest + std::log(sum);
}

/// Runs the call; checks that every output is within the error bound of the oracle.
inline XentResult check(const XentCase &c) {
  const XentResult got = run(c);
  const double counted = counted_of(c);
  int64_t correct = 0, wrong = 0;
  double sum = 0.0;
  for (int64_t i = 0; i < c.rows(); ++i) {
    const XentRow row = expected_row(c, i, counted);
    const float row_loss = got.row_loss[static_cast<size_t>(i)];
    correct += row.correct;
    sum += row_loss;
    CAPTURE(i, row.loss.value, row.loss.error, row_loss);
    CHECK(within(row.loss, row_loss));
    const double lse = expected_lse(c, i);
    // lse is less accurate than the loss, which is a difference; it is NaN without a valid label.
    if (!std::isnan(row.loss.value) && std::isfinite(lse))
      CHECK(std::fabs(got.lse[static_cast<size_t>(i)] - lse) <= 0x1p-17 * (1.0 + std::fabs(lse)));
    if (c.forward_only) continue;
    for (int64_t j = 0; j < c.classes(); ++j) {
      wrong += !within(row.dlogits[static_cast<size_t>(j)], got.dlogits.at(0, i, j), c.dtype);
    }
  }
  CHECK(wrong == 0);
  CHECK(got.correct == correct);
  // The sum is fp64 in any order, and the mean is rounded to fp32 once: one ulp.
  CHECK(within(rounded(sum / counted, 0.0), got.loss));
  return got;
}

inline XentCase random_case(mp_dtype_t dtype, int64_t rows, int64_t classes, double range,
                            uint64_t seed) {
  Random random(seed);
  XentCase c;
  c.dtype = dtype;
  c.logits = Matrices(1, rows, classes);
  for (double &logit : c.logits.values) logit = round_to(dtype, random.real(-range, range));
  for (int64_t i = 0; i < rows; ++i) {
    c.labels.push_back(random.integer(0, classes - 1));
  }
  return c;
}

inline XentCase row_case(mp_dtype_t dtype, const std::vector<double> &logits, int64_t label) {
  XentCase c;
  c.dtype = dtype;
  c.logits = Matrices(1, 1, static_cast<int64_t>(logits.size()));
  c.logits.values = logits;
  c.labels = {label};
  return c;
}

}  // namespace mptest
