// Batch normalization, backward, against the documented formulas in fp64.
#include "batch_norm_layer.h"

using namespace mptest;
using namespace mptest::batch_norm;

namespace {

struct BoundedGradients {
  std::vector<Bounded> dx, dgamma, dbeta;
};

/// Sets dy to 0 where rounding determines whether ReLU is active.
void clear_ambiguous_signs(const Layer &l, const Saved &saved, Vector &dy) {
  if (l.desc.activation == MP_ACT_NONE) return;
  int64_t cleared = 0;
  for (int64_t i = 0; i < l.rows(); ++i)
    for (int64_t j = 0; j < l.channels(); ++j) {
      const Bounded z = normalized(l, saved, i, j);
      if (std::fabs(z.value) > z.error) continue;
      dy[static_cast<size_t>(i * l.channels() + j)] = 0.0;
      ++cleared;
    }
  REQUIRE(cleared * 1000 <= static_cast<int64_t>(dy.size()));
}

BoundedGradients gradients(const Layer &l, const Saved &saved, const Vector &dy) {
  BoundedGradients result;
  result.dx.resize(dy.size());
  const double rows = static_cast<double>(l.rows());
  for (int64_t j = 0; j < l.channels(); ++j) {
    const size_t c = static_cast<size_t>(j);
    const Bounded mean = saved.mean[c], inv_std = saved.inv_std[c];
    const auto at = [&](int64_t i) { return static_cast<size_t>(i * l.channels() + j); };
    const auto g = [&](int64_t i) {
      if (l.desc.activation == MP_ACT_NONE) return dy[at(i)];
      return normalized(l, saved, i, j).value > 0.0 ? dy[at(i)] : 0.0;
    };
    BoundedSum sum, sum_centred;
    for (int64_t i = 0; i < l.rows(); ++i) {
      sum.add(g(i));
      sum_centred.add(Bounded(g(i)) * (Bounded(l.x.at(0, i, j)) - mean));
    }
    result.dbeta.push_back(sum.total());
    result.dgamma.push_back(sum_centred.total() * inv_std);
    const Bounded per_row = Bounded(1.0) / rows;
    const Bounded constant = result.dbeta.back() * per_row;
    const Bounded slope = result.dgamma.back() * (per_row * inv_std);
    const Bounded factor = Bounded(l.has_gamma ? l.gamma[c] : 1.0) * inv_std;
    for (int64_t i = 0; i < l.rows(); ++i) {
      const Bounded centred = Bounded(l.x.at(0, i, j)) - mean;
      result.dx[at(i)] = factor * (Bounded(g(i)) - constant - centred * slope);
    }
  }
  return result;
}

/// Checks the gradients after a training step, beside dy and in place, with and without dgamma and
/// dbeta.
void check_backward(Layer l) {
  const Trained trained = train(l);
  const Saved saved{trained.mean, trained.inv_std};
  Vector dy = random_dy(l, 500);
  clear_ambiguous_signs(l, saved, dy);
  const BoundedGradients wanted = gradients(l, saved, dy);
  const Gradients got = run_backward(l, saved, dy);
  CHECK(count_outside(wanted.dbeta, got.dbeta, MP_FP32) == 0);
  CHECK(count_outside(wanted.dgamma, got.dgamma, MP_FP32) == 0);
  CHECK(count_outside(wanted.dx, got.dx, l.desc.dtype) == 0);
  CHECK(run_backward(l, saved, dy, true) == got);
  l.has_grads = false;
  CHECK(run_backward(l, saved, dy).dx == got.dx);
}

}  // namespace

TEST_CASE("batch norm: gradients are within bounds for all types and shapes",
          "[layers][batch_norm]") {
  check_shapes(check_backward);
}

TEST_CASE("batch norm: gradients are within bounds if small, unaligned or in place",
          "[layers][batch_norm][short]") {
  check_small(check_backward);
}

TEST_CASE("batch norm: gradients of integers are exact", "[layers][batch_norm][short]") {
  // The statistics are powers of two and integers for any x, so all results are exact, including
  // ReLU at 0.
  Random random(600);
  for (const mp_dtype_t dtype : kDtypes)
    for (const mp_activation_t activation : kActivations)
      for (const int32_t channels : {1, 5, 8, 67})
        for (const int64_t rows : {1, 64, 512}) {
          Layer l = random_layer(dtype, rows, channels, 601);
          l.desc.activation = activation;
          Saved saved;
          l.x.values = random_integers(rows * channels, 4, random);
          for (size_t j = 0; j < l.gamma.size(); ++j) {
            saved.mean.push_back(static_cast<double>(random.integer(-2, 2)));
            saved.inv_std.push_back(random.integer(0, 1) != 0 ? 0.5 : 2.0);
            l.gamma[j] = random.integer(0, 1) != 0 ? 1.0 : -2.0;
            l.beta[j] = static_cast<double>(random.integer(-1, 1));
          }
          const Vector dy = random_integers(rows * channels, 4, random);
          CAPTURE(mp_dtype_name(dtype), activation, channels, rows);
          const BoundedGradients wanted = gradients(l, saved, dy);
          const Gradients got = run_backward(l, saved, dy);
          CHECK(count_different(wanted.dbeta, got.dbeta, MP_FP32) == 0);
          CHECK(count_different(wanted.dgamma, got.dgamma, MP_FP32) == 0);
          CHECK(count_different(wanted.dx, got.dx, dtype) == 0);
        }
}

TEST_CASE("batch norm: a non-finite gradient affects only its channel",
          "[layers][batch_norm][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    for (const double bad : {kNaN, kInfinity, -kInfinity}) {
      const Layer l = random_layer(dtype, 90, 12, 802);
      const Trained trained = train(l);
      Vector dy = random_dy(l, 803);
      dy[40 * 12 + 7] = bad;
      const Gradients got = run_backward(l, {trained.mean, trained.inv_std}, dy);
      CAPTURE(mp_dtype_name(dtype), bad);
      for (size_t c = 0; c < 12; ++c) {
        CHECK(std::isfinite(got.dbeta[c]) == (c != 7));
        CHECK(std::isfinite(got.dgamma[c]) == (c != 7));
      }
      for (size_t i = 0; i < dy.size(); ++i) CHECK(std::isfinite(got.dx[i]) == (i % 12 != 7));
    }
  }
}
