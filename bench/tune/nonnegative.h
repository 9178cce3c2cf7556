// min |A x - b| over x >= 0, by the active-set method of Lawson and Hanson.  (Eigen has it as
// unsupported/Eigen/NNLS only after 3.4, which is what distributions have.)
//
// Positive unknowns form the passive set; the others are 0 and enter it while the gradient shows
// that this reduces the error.
// Source: Lawson & Hanson, Solving Least Squares Problems, 1974, chapter 23.
#pragma once

#include <algorithm>
#include <eigen3/Eigen/Dense>
#include <limits>
#include <vector>

namespace mptune {

class NonnegativeLeastSquares {
 public:
  /// @param a  matrix whose columns have length 1 or 0
  NonnegativeLeastSquares(const Eigen::MatrixXd &a, const Eigen::VectorXd &b)
      : gram_(a.transpose() * a), atb_(a.transpose() * b), x_(Eigen::VectorXd::Zero(a.cols())) {
    constexpr double kRidge = 1e-12;  // for unknowns that the equations cannot distinguish
    gram_.diagonal().array() += kRidge;
  }

  Eigen::VectorXd solve() {
    constexpr double kTolerance = 1e-14;
    const Eigen::Index max_steps = 10 * x_.size();
    for (Eigen::Index step = 0; step < max_steps; ++step) {
      Eigen::VectorXd gradient = atb_ - gram_ * x_;
      gradient(passive_).setConstant(-std::numeric_limits<double>::infinity());
      Eigen::Index entering;
      if (gradient.maxCoeff(&entering) <= kTolerance) break;
      passive_.push_back(entering);
      if (!move_to_optimum()) break;
    }
    return x_;
  }

 private:
  /// Moves to the optimum over the passive set, dropping unknowns that would become negative.
  /// @return false if the new unknown itself was dropped: rounding, not progress.
  bool move_to_optimum() {
    const Eigen::Index newcomer = passive_.back();
    while (true) {
      const Eigen::VectorXd from = x_(passive_);
      const Eigen::VectorXd target = gram_(passive_, passive_).ldlt().solve(atb_(passive_));
      double way = 1;
      for (Eigen::Index i = 0; i < target.size(); ++i)
        if (target[i] <= 0) way = std::min(way, from[i] / (from[i] - target[i]));
      x_(passive_) = from + way * (target - from);
      if (way == 1) return true;
      constexpr double kZero = 1e-14;
      x_ = (x_.array() <= kZero).select(0, x_);
      const bool has_newcomer = x_[newcomer] > 0;
      std::erase_if(passive_, [&](Eigen::Index i) { return x_[i] == 0; });
      if (!has_newcomer) return false;
    }
  }

  Eigen::MatrixXd gram_;  ///< A^T A
  Eigen::VectorXd atb_;   ///< A^T b
  Eigen::VectorXd x_;
  std::vector<Eigen::Index> passive_;
};

/// Solution; 0 for a zero column of `a`.
inline Eigen::VectorXd solve_nonnegative(const Eigen::MatrixXd &a, const Eigen::VectorXd &b) {
  const Eigen::VectorXd length = a.colwise().norm();
  const Eigen::VectorXd scale = (length.array() > 0).select(length.cwiseInverse(), 0);
  return scale.cwiseProduct(NonnegativeLeastSquares(a * scale.asDiagonal(), b).solve());
}

}  // namespace mptune
