// Layer and RMS normalization: a case with its calls on guarded memory, and the documented formulas
// in fp64 with the error of fp32 (running_error.h).
#pragma once

#include <string>

#include "tests/step/oracle_rounding.h"
#include "tests/step/step_fixtures.h"
#include "tests/support/grad_stats.h"
#include "tests/support/running_error.h"

namespace mptest::norm {

using Vector = std::vector<double>;
constexpr mp_norm_kind_t kKinds[] = {MP_NORM_LAYER, MP_NORM_RMS};

/// All tensors are dense, rows x groups x columns, in fp64.
struct Case {
  mp_norm_desc_t desc;
  Vector x, residual, gamma, beta, dy, dsum;  ///< empty: pass NULL
  int64_t gap = 0;          ///< elements between vectors; twice as many between rows
  bool rows_first = false;  ///< in x, rows of a group are adjacent
  int64_t offset = 0;       ///< in elements, from 256-byte alignment
  bool in_place = false;    ///< y = x, sum = residual, dx = dy, dresidual = dsum
  uint64_t dropout_offset = 0;
  double previous = 0.0;  ///< dgamma and dbeta before the call

  int64_t vectors() const { return desc.rows * desc.groups; }
  int64_t elems() const { return vectors() * desc.columns; }
  bool has_mean() const { return desc.kind == MP_NORM_LAYER; }
  bool adds() const { return (desc.flags & MP_NORM_FLAG_ACCUMULATE) != 0; }
};

struct Forward {
  Vector y, sum, mean, rstd;
  bool operator==(const Forward &) const = default;
};
struct Gradients {
  Vector dx, dresidual, dgamma, dbeta;
  bool operator==(const Gradients &) const = default;
};

/// Returns a case with gamma, for MP_NORM_LAYER beta, and dy.
inline Case make_case(mp_norm_kind_t kind, mp_dtype_t dtype, int64_t rows, int64_t columns,
                      int32_t groups = 1) {
  Case c{};
  c.desc = mp_norm_desc_default(kind, rows, columns, dtype);
  c.desc.groups = groups;
  Random random(static_cast<uint64_t>(rows * 100003 + columns * 7 + groups));
  c.x = random_reals(dtype, c.elems(), -1.0, 3.0, random);
  c.gamma = random_reals(MP_FP32, columns, -2.0, 2.0, random);
  if (c.has_mean()) c.beta = random_reals(MP_FP32, columns, -1.0, 1.0, random);
  c.dy = random_reals(dtype, c.elems(), -3.0, 3.0, random);
  return c;
}

/// Adds a residual, dropout and a gradient of the sum.
inline void add_residual(Case &c, mp_dtype_t dtype, float dropout) {
  Random random(77);
  c.desc.dtype_residual = dtype;
  c.desc.dropout = dropout;
  c.desc.dropout_seed = 0x123456789abcdef0;
  c.dropout_offset = 5;
  c.residual = random_reals(dtype, c.elems(), -2.0, 2.0, random);
  c.dsum = random_reals(dtype, c.elems(), -1.0, 1.0, random);
}

/// Distances in x between rows and between groups.
struct Strides {
  int64_t row, group;
};
inline Strides strides_of(const Case &c) {
  const int64_t inner = c.desc.columns + c.gap;
  const int64_t outer = (c.rows_first ? c.desc.rows : c.desc.groups) * inner + c.gap;
  return c.rows_first ? Strides{inner, outer} : Strides{outer, inner};
}

/// Tensor with the strides of x.
class Strided {
 public:
  Strided(const Case &c, const Vector &values)
      : memory_(c.desc.dtype, c.desc.rows, c.desc.groups, c.desc.columns, strides_of(c).group,
                strides_of(c).row, c.offset, values.empty() ? kCanary : kPoison) {
    if (!values.empty()) memory_.upload({c.desc.rows, c.desc.groups, c.desc.columns, values});
  }
  void *data() const { return memory_.data(); }
  Vector download() const {
    CHECK(memory_.damage() == "");
    return memory_.download().values;
  }

 private:
  DeviceMatrices memory_;
};

/// Dense tensor, or NULL for an empty vector.
class Dense {
 public:
  Dense(mp_dtype_t dtype, const Vector &values, int64_t offset)
      : is_null_(values.empty()), array_(dtype, values, offset) {}
  void *data() const { return is_null_ ? nullptr : array_.data(); }
  Vector download() const { return is_null_ ? Vector{} : array_.download(); }

 private:
  bool is_null_;
  DeviceArray array_;
};

/// Descriptor with the strides of x and of y.
inline mp_norm_desc_t with_strides(const Case &c) {
  mp_norm_desc_t d = c.desc;
  if (c.gap == 0 && !c.rows_first) return d;
  d.x_row = strides_of(c).row, d.x_group = strides_of(c).group;
  if (c.in_place) d.y_row = d.x_row, d.y_group = d.x_group;
  return d;
}

inline Forward run_forward(const Case &c, mp_context_t context = mptest::context()) {
  const mp_norm_desc_t desc = with_strides(c);
  const mp_dtype_t wide = desc.dtype_residual;
  const Strided x(c, c.x);
  const Dense residual(wide, c.residual, c.offset), gamma(MP_FP32, c.gamma, 0),
      beta(MP_FP32, c.beta, 0);
  const DeviceArray y(desc.dtype, c.elems(), c.offset, kCanary);
  const Dense sum(wide, Vector(c.residual.size(), 7.0), c.offset);
  const DeviceBuffer<float> mean(c.vectors()), rstd(c.vectors());
  const DeviceValue<uint64_t> offset(c.dropout_offset);
  auto t = initialized<mp_norm_tensors_t>();
  t.x = x.data(), t.residual = residual.data();
  t.gamma = static_cast<float *>(gamma.data()), t.beta = static_cast<float *>(beta.data());
  t.dropout_offset = c.dropout_offset != 0 ? offset.data() : nullptr;
  t.sum = c.in_place ? residual.data() : sum.data();
  t.y = c.in_place ? x.data() : y.data();
  t.mean = c.has_mean() ? mean.data() : nullptr, t.rstd = rstd.data();
  require_ok(mp_norm_forward(context, &desc, &t, kStream));
  const auto floats = [](const DeviceBuffer<float> &buffer) {
    const std::vector<float> values = buffer.download();
    return Vector(values.begin(), values.end());
  };
  return {c.in_place ? x.download() : y.download(),
          c.in_place ? residual.download() : sum.download(), c.has_mean() ? floats(mean) : Vector{},
          floats(rstd)};
}

inline Gradients run_backward(const Case &c, const Forward &saved,
                              mp_context_t context = mptest::context()) {
  const mp_norm_desc_t desc = with_strides(c);
  const mp_dtype_t wide = desc.dtype_residual;
  const bool has_residual = !c.residual.empty();
  const Strided x(c, has_residual ? Vector(c.x.size(), std::nan("")) : c.x), dx(c, {});
  const Strided strided_dy(c, c.dy);  // in place, dy has the strides of dx
  const Dense dense_dy(desc.dtype, c.dy, c.offset);
  const Dense sum(wide, saved.sum, c.offset), dsum(wide, c.dsum, c.offset);
  const Dense dresidual(wide, Vector(c.residual.size(), 7.0), c.offset);
  const Dense gamma(MP_FP32, c.gamma, 0), mean(MP_FP32, saved.mean, 0),
      rstd(MP_FP32, saved.rstd, 0);
  const Vector before(static_cast<size_t>(desc.columns), c.previous);
  const Dense dgamma(MP_FP32, before, 0), dbeta(MP_FP32, c.has_mean() ? before : Vector{}, 0);
  const DeviceValue<uint64_t> offset(c.dropout_offset);
  const DeviceWorkspace workspace(mp_norm_backward_workspace_size, context, &desc);
  const GradStats stats;
  auto t = initialized<mp_norm_tensors_t>();
  t.x = x.data(), t.gamma = static_cast<float *>(gamma.data());
  t.dropout_offset = c.dropout_offset != 0 ? offset.data() : nullptr;
  t.sum = sum.data();
  t.mean = static_cast<float *>(mean.data()), t.rstd = static_cast<float *>(rstd.data());
  t.dy = c.in_place ? strided_dy.data() : dense_dy.data(), t.dsum = dsum.data();
  t.dx = c.in_place ? strided_dy.data() : dx.data();
  t.dresidual = !has_residual ? nullptr : c.in_place ? dsum.data() : dresidual.data();
  t.dgamma = static_cast<float *>(dgamma.data()), t.dbeta = static_cast<float *>(dbeta.data());
  t.stats = stats.pointers();
  require_ok(mp_norm_backward(context, &desc, &t, workspace.data(), workspace.bytes(), kStream));
  Gradients got{c.in_place ? strided_dy.download() : dx.download(),
                !has_residual ? Vector{}
                : c.in_place  ? dsum.download()
                              : dresidual.download(),
                dgamma.download(), dbeta.download()};
  Vector stored = got.dx;
  for (const Vector *more : {&got.dresidual, &got.dgamma, &got.dbeta})
    stored.insert(stored.end(), more->begin(), more->end());
  if (desc.rows > 0) stats.check(stored);
  return got;
}

// ---------------------------------------------------------------------------- formulas

/// Additions that a term of a sum over a vector passes through: up to 16 of a thread, 3 of its 8
/// sums, 32 lanes and 16 warps.  Sums over vectors: up to 16 of a team and 8 teams.
constexpr double kVectorDepth = 16 + 3 + 32 + 16, kRangeDepth = 16 + 8;

inline bool is_dropped(const Case &c, size_t i) {
  return oracle::is_dropped(i, c.desc.dropout, c.desc.dropout_seed, c.dropout_offset);
}

/// Returns r, which is exact.
inline Vector exact_r(const Case &c) {
  Vector r = c.x;
  for (size_t i = 0; i < r.size(); ++i) {
    if (c.desc.dropout > 0.0f)
      r[i] = is_dropped(c, i) ? 0.0 : round_to(MP_FP32, r[i] * oracle::keep_factor(c.desc.dropout));
    if (!c.residual.empty())
      r[i] = round_to(c.desc.dtype_residual, round_to(MP_FP32, c.residual[i] + r[i]));
  }
  return r;
}

inline Bounded factor(const Case &c, size_t column) {
  if (c.gamma.empty()) return 1.0;
  const bool is_centered = (c.desc.flags & MP_NORM_FLAG_ZERO_CENTERED) != 0;
  return is_centered ? Bounded(1.0) + Bounded(c.gamma[column]) : Bounded(c.gamma[column]);
}

/// Checks all outputs of the forward pass.
inline void check_forward(const Case &c, const Forward &got) {
  const auto columns = static_cast<size_t>(c.desc.columns);
  const Bounded count = static_cast<double>(columns);
  const Vector r = exact_r(c);
  int64_t wrong_y = 0;
  if (!c.residual.empty()) CHECK(got.sum == r);
  for (size_t v = 0; v < static_cast<size_t>(c.vectors()); ++v) {
    const double *const row = &r[v * columns];
    BoundedSum above, squares;
    for (size_t j = 0; j < columns; ++j) above.add(Bounded(row[j]) - Bounded(row[0]));
    const Bounded mean =
        c.has_mean() ? Bounded(row[0]) + above.total(kVectorDepth) / count : Bounded(0.0);
    for (size_t j = 0; j < columns; ++j) {
      const Bounded deviation = Bounded(row[j]) - mean;
      squares.add(deviation * deviation);
    }
    const Bounded variance = squares.total(kVectorDepth) / count + Bounded(c.desc.epsilon);
    const Bounded rstd = Bounded(1.0) / sqrt(variance);
    CAPTURE(v, mean.value, mean.error, rstd.value, rstd.error, got.rstd[v]);
    if (c.has_mean()) CHECK(within(mean, got.mean[v]));
    CHECK(within(rstd, got.rstd[v]));
    for (size_t j = 0; j < columns; ++j) {
      const Bounded y = (Bounded(row[j]) - mean) * rstd * factor(c, j) +
                        Bounded(c.beta.empty() ? 0.0 : c.beta[j]);
      wrong_y += !within(y, got.y[v * columns + j], c.desc.dtype);
    }
  }
  CHECK(wrong_y == 0);
}

/// Checks all outputs of the backward pass.
inline void check_backward(const Case &c, const Forward &saved, const Gradients &got) {
  const auto columns = static_cast<size_t>(c.desc.columns);
  const Bounded count = static_cast<double>(columns);
  const Vector r = exact_r(c);
  std::vector<BoundedSum> dgamma(columns), dbeta(columns);
  int64_t wrong_dx = 0, wrong_dresidual = 0;
  for (size_t v = 0; v < static_cast<size_t>(c.vectors()); ++v) {
    const Bounded mean = c.has_mean() ? saved.mean[v] : 0.0, rstd = saved.rstd[v];
    std::vector<Bounded> xhat(columns), g(columns);
    BoundedSum sum_g, sum_g_xhat;
    for (size_t j = 0; j < columns; ++j) {
      const Bounded dy = c.dy[v * columns + j];
      xhat[j] = (Bounded(r[v * columns + j]) - mean) * rstd;
      g[j] = dy * factor(c, j);
      sum_g.add(g[j]);
      sum_g_xhat.add(g[j] * xhat[j]);
      dgamma[j].add(dy * xhat[j]);
      dbeta[j].add(dy);
    }
    const Bounded mean_g = c.has_mean() ? sum_g.total(kVectorDepth) / count : Bounded(0.0);
    const Bounded mean_g_xhat = sum_g_xhat.total(kVectorDepth) / count;
    for (size_t j = 0; j < columns; ++j) {
      const size_t i = v * columns + j;
      Bounded dr = rstd * (g[j] - mean_g - xhat[j] * mean_g_xhat);
      if (!c.dsum.empty()) dr = dr + Bounded(c.dsum[i]);
      if (!got.dresidual.empty())
        wrong_dresidual += !within(dr, got.dresidual[i], c.desc.dtype_residual);
      if (c.desc.dropout > 0.0f)
        dr = is_dropped(c, i) ? Bounded(0.0) : dr * oracle::keep_factor(c.desc.dropout);
      wrong_dx += !within(dr, got.dx[i], c.desc.dtype);
    }
  }
  CHECK(wrong_dx == 0);
  CHECK(wrong_dresidual == 0);
  const Bounded previous = c.adds() ? c.previous : 0.0;
  int64_t wrong = 0;
  for (size_t j = 0; j < columns; ++j) {
    wrong += !within(dgamma[j].total(kRangeDepth) + previous, got.dgamma[j]);
    if (c.has_mean()) wrong += !within(dbeta[j].total(kRangeDepth) + previous, got.dbeta[j]);
  }
  CHECK(wrong == 0);
}

inline void check(const Case &c) {
  CAPTURE(c.desc.kind, mp_dtype_name(c.desc.dtype), mp_dtype_name(c.desc.dtype_residual),
          c.desc.rows, c.desc.groups, c.desc.columns, c.desc.dropout, c.gap, c.rows_first, c.offset,
          c.in_place);
  const Forward forward = run_forward(c);
  check_forward(c, forward);
  check_backward(c, forward, run_backward(c, forward));
}

}  // namespace mptest::norm
