// min |A x - b| over x >= 0, by the active-set method of Lawson and Hanson.
//
// The rows are added one by one into A^T A and A^T b, whose columns are then scaled to length 1.
// Unknowns that are positive form the passive set; the others are 0 and enter it while the gradient
// says that this helps.
// Source: Lawson & Hanson, Solving Least Squares Problems, 1974, chapter 23.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace mptune {

template <size_t kUnknowns>
class LeastSquares {
 public:
  using Vector = std::array<double, kUnknowns>;

  /// One equation, a . x = b.
  void add(const Vector &a, double b, double weight) {
    std::vector<size_t> used;
    for (size_t i = 0; i < kUnknowns; ++i)
      if (a[i] != 0) used.push_back(i);
    for (const size_t i : used) {
      atb_[i] += weight * a[i] * b;
      for (const size_t j : used) ata_[i][j] += weight * a[i] * a[j];
    }
  }

  /// An equation depends on this unknown.
  bool has(size_t i) const { return ata_[i][i] > 0; }

  Vector solve_nonnegative() const {
    constexpr double kTolerance = 1e-14;
    constexpr size_t kMaxSteps = 10 * kUnknowns;
    Vector x{};  // of the scaled unknowns
    std::vector<size_t> passive;
    for (size_t step = 0; step < kMaxSteps; ++step) {
      const size_t entering = steepest(x, passive);
      if (entering == kUnknowns || gradient(x, entering) <= kTolerance) break;
      passive.push_back(entering);
      if (!move_to_optimum(passive, x)) break;
    }
    for (size_t i = 0; i < kUnknowns; ++i)
      if (has(i)) x[i] /= scale(i);
    return x;
  }

 private:
  double scale(size_t i) const { return std::sqrt(ata_[i][i]); }
  double scaled(size_t i, size_t j) const { return ata_[i][j] / (scale(i) * scale(j)); }

  /// How much faster the error falls when x[i] grows.
  double gradient(const Vector &x, size_t i) const {
    double g = atb_[i] / scale(i);
    for (size_t j = 0; j < kUnknowns; ++j)
      if (x[j] != 0) g -= scaled(i, j) * x[j];
    return g;
  }

  size_t steepest(const Vector &x, const std::vector<size_t> &passive) const {
    size_t best = kUnknowns;
    for (size_t i = 0; i < kUnknowns; ++i) {
      const bool is_passive = std::find(passive.begin(), passive.end(), i) != passive.end();
      if (!has(i) || is_passive) continue;
      if (best == kUnknowns || gradient(x, i) > gradient(x, best)) best = i;
    }
    return best;
  }

  /// To the optimum over the passive set, dropping what would become negative on the way.
  /// @return false if the newcomer itself had to be dropped: rounding, not progress.
  bool move_to_optimum(std::vector<size_t> &passive, Vector &x) const {
    const size_t newcomer = passive.back();
    while (true) {
      const std::vector<double> target = solve(passive);
      double way = 1;
      for (size_t i = 0; i < passive.size(); ++i) {
        const double from = x[passive[i]];
        if (target[i] <= 0) way = std::min(way, from / (from - target[i]));
      }
      for (size_t i = 0; i < passive.size(); ++i)
        x[passive[i]] += way * (target[i] - x[passive[i]]);
      if (way == 1) return true;
      constexpr double kZero = 1e-14;
      for (const size_t i : passive)
        if (x[i] <= kZero) x[i] = 0;
      if (x[newcomer] == 0) {
        std::erase(passive, newcomer);
        return false;
      }
      std::erase_if(passive, [&](size_t i) { return x[i] == 0; });
    }
  }

  /// The unrestricted optimum over these unknowns, by Cholesky's method.
  std::vector<double> solve(const std::vector<size_t> &which) const {
    constexpr double kRidge = 1e-12;  // for unknowns that the samples cannot tell apart
    const size_t n = which.size();
    std::vector<std::vector<double>> l(n, std::vector<double>(n));
    std::vector<double> y(n);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j <= i; ++j) {
        double sum = scaled(which[i], which[j]) + (i == j ? kRidge : 0);
        for (size_t p = 0; p < j; ++p) sum -= l[i][p] * l[j][p];
        l[i][j] = i == j ? std::sqrt(std::max(sum, kRidge)) : sum / l[j][j];
      }
      y[i] = atb_[which[i]] / scale(which[i]);
      for (size_t p = 0; p < i; ++p) y[i] -= l[i][p] * y[p];
      y[i] /= l[i][i];
    }
    for (size_t i = n; i-- > 0;) {
      for (size_t p = i + 1; p < n; ++p) y[i] -= l[p][i] * y[p];
      y[i] /= l[i][i];
    }
    return y;
  }

  std::array<Vector, kUnknowns> ata_{};
  Vector atb_{};
};

}  // namespace mptune
