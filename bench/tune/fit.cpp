// A predicted time is linear in the constants except for one maximum: the slowest of the busiest
// SM, L2 and DRAM.  So the fit alternates: with the current constants, it finds the bound of each
// sample; then it solves for the constants by non-negative least squares of the relative error. It
// starts with each cost at the maximum that the fastest sample with that cost allows, and keeps the
// best fit.
//
// A bound whose given constant is 0 (us per MB) is not fitted: the host target has none, and
// without samples bound by it the constant would be arbitrary.
//
// Epilogue subtiles, instructions and barriers of clusters keep the given constants: the grid has
// no epilogues, and the cost of storing a plain tile by subtiles cannot be separated from the rest
// of its TILE_US.
//
// Outliers have less weight (Huber's weights): on a machine with other work some times are too
// long, and none are too short.
#include "fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "nonnegative.h"

namespace mptune {

/// Median of unordered values.
double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

namespace {

/// The fitted constants of a class, in the order of TuningFit::ClassUnknown.
constexpr double mp::ClassTuning::*kClassConstants[] = {
    &mp::ClassTuning::launch_us,       &mp::ClassTuning::dram_us_per_mb,
    &mp::ClassTuning::l2_us_per_mb,    &mp::ClassTuning::partial_us_per_mb,
    &mp::ClassTuning::copy_us_per_mb,  &mp::ClassTuning::direct_store_us,
    &mp::ClassTuning::staged_store_us, &mp::ClassTuning::source_us_per_mb,
    &mp::ClassTuning::scalar_load_us};

class TuningFit {
 public:
  TuningFit(const std::vector<Sample> &samples, const mp::ClassTuning &given)
      : samples_(samples), given_(given) {}

  mp::ClassTuning best() {
    mp::ClassTuning tuning = start();
    constexpr int kRounds = 20;
    for (int round = 0; round < kRounds; ++round) {
      tuning = solved(tuning);
      keep_if_better(tuning);
    }
    return best_;
  }

 private:
  enum class Bound { sm, l2, dram };

  // Unknowns: those of the class first, then four per kernel.
  enum ClassUnknown { kLaunch, kDram, kL2, kPartial, kCopy, kPair, kPatch, kSource, kScalarLoad };
  static constexpr Eigen::Index kClassUnknowns = std::size(kClassConstants);
  static_assert(kScalarLoad + 1 == kClassUnknowns);
  enum KernelUnknown { kStart, kTile, kK, kKPaired, kKernelUnknowns };
  static constexpr Eigen::Index kUnknowns =
      kClassUnknowns + Eigen::Index{mp::kNumGemmTiles} * kKernelUnknowns;

  static Eigen::Index unknown(const mp::GemmKernel &kernel, KernelUnknown which) {
    return kClassUnknowns + static_cast<Eigen::Index>(kernel.tile) * kKernelUnknowns + which;
  }
  /// Blocks of other families compute one tile each.
  static bool starts(const mp::GemmKernel &kernel) {
    return kernel.family == mp::GemmFamily::wgmma || kernel.family == mp::GemmFamily::gemv;
  }
  /// Initial constants: no transfer is slower than the fastest sample that includes it, and no
  /// kernel is slower on an SM than its fastest sample.
  mp::ClassTuning start() const {
    constexpr double kUnknown = std::numeric_limits<double>::infinity();
    double dram = kUnknown, l2 = kUnknown;
    std::array<double, mp::kNumGemmTiles> speed;  // of its samples / given constants
    speed.fill(kUnknown);
    for (const Sample &sample : samples_) {
      dram = std::min(dram, sample.us / (sample.cost.dram_mb + sample.cost.post_pass_mb));
      l2 = std::min(l2, sample.us / sample.cost.l2_mb);
      double &of_kernel = speed[static_cast<size_t>(sample.kernel->tile)];
      of_kernel = std::min(of_kernel, sample.us / sm_us(sample, given_));
    }
    mp::ClassTuning tuning = given_;
    if (tuning.dram_us_per_mb > 0) tuning.dram_us_per_mb = dram;
    if (tuning.l2_us_per_mb > 0) tuning.l2_us_per_mb = l2;
    for (size_t i = 0; i < mp::kNumGemmTiles; ++i) {
      if (speed[i] == kUnknown) continue;
      tuning.kernels[i].start_us *= speed[i];
      tuning.kernels[i].tile_us *= speed[i];
      tuning.kernels[i].k_us *= speed[i];
    }
    return tuning;
  }

  /// Time of the busiest SM.
  static double sm_us(const Sample &sample, mp::ClassTuning tuning) {
    tuning.launch_us = tuning.partial_us_per_mb = tuning.copy_us_per_mb = 0;
    tuning.l2_us_per_mb = tuning.dram_us_per_mb = 0;
    return predicted(sample, tuning);
  }

  static Bound bound_of(const Sample &sample, const mp::ClassTuning &tuning) {
    const double sm = sm_us(sample, tuning);
    const double l2 = sample.cost.l2_mb * tuning.l2_us_per_mb;
    const double dram = sample.cost.dram_mb * tuning.dram_us_per_mb;
    if (sm >= std::max(l2, dram)) return Bound::sm;
    return l2 >= dram ? Bound::l2 : Bound::dram;
  }

  void keep_if_better(const mp::ClassTuning &tuning) {
    // Absolute deviations: with least squares a few disturbed samples would dominate.
    double cost = 0;
    for (const Sample &sample : samples_) cost += std::abs(relative_error(sample, tuning));
    if (!(cost < best_cost_)) return;
    best_cost_ = cost;
    best_ = tuning;
  }

  /// Huber's weights, with the usual constants for 95 % efficiency.
  std::vector<double> weights(const mp::ClassTuning &tuning) const {
    std::vector<double> errors;
    for (const Sample &sample : samples_)
      errors.push_back(std::abs(relative_error(sample, tuning)));
    const double limit = std::max(1.345 * 1.4826 * median(errors), 1e-6);
    std::vector<double> weights;
    for (const double error : errors) weights.push_back(std::min(1.0, limit / error));
    return weights;
  }

  mp::ClassTuning solved(const mp::ClassTuning &tuning) const {
    const std::vector<double> weight = weights(tuning);
    const auto count = static_cast<Eigen::Index>(samples_.size());
    Eigen::MatrixXd a(count, kUnknowns);
    Eigen::VectorXd b(count);
    for (Eigen::Index i = 0; i < count; ++i) {
      const Sample &sample = samples_[static_cast<size_t>(i)];
      const Bound bound = bound_of(sample, tuning);
      const double root = std::sqrt(weight[static_cast<size_t>(i)]);
      a.row(i) = root * equation(sample, bound, tuning);
      b[i] = root * (1 - given_us(sample, bound, tuning) / sample.us);
    }
    return from_unknowns(solve_nonnegative(a, b), a, tuning);
  }

  static mp::SmTime sm_time(const Sample &sample, const mp::ClassTuning &tuning) {
    return mp::sm_time(sample.cost, tuning, tuning.of(*sample.kernel));
  }

  /// Part of the sample's time that does not depend on unknowns.
  static double given_us(const Sample &sample, Bound bound, const mp::ClassTuning &tuning) {
    const mp::EpilogueCost &epilogue = sample.cost.epilogue;
    const double us = epilogue.tma_store_elems * tuning.tma_store_us + epilogue.ops * tuning.op_us;
    if (bound != Bound::sm) return 0;
    return sm_time(sample, tuning).epilogues * us +
           sample.cost.cluster_sums * tuning.cluster_sum_us;
  }

  /// Contribution of each unknown to the sample's time, as a fraction of it.
  Eigen::RowVectorXd equation(const Sample &sample, Bound bound,
                              const mp::ClassTuning &tuning) const {
    const mp::PlanCost &cost = sample.cost;
    Eigen::RowVectorXd a = Eigen::RowVectorXd::Zero(kUnknowns);
    a[kLaunch] = cost.launches;
    a[kPartial] = cost.partial_mb;
    a[kCopy] = cost.copied_mb;
    if (bound == Bound::dram) a[kDram] = cost.dram_mb;
    if (given_.dram_us_per_mb > 0) a[kDram] += cost.post_pass_mb;
    if (bound == Bound::l2) a[kL2] = cost.l2_mb;
    if (bound == Bound::sm) {
      if (starts(*sample.kernel)) a[unknown(*sample.kernel, kStart)] = cost.starts;
      const mp::SmTime time = sm_time(sample, tuning);
      a[unknown(*sample.kernel, kTile)] = time.mains;
      const double k = time.mains * cost.slice_k;
      a[unknown(*sample.kernel, cost.is_clustered ? kKPaired : kK)] = k;
      a[kScalarLoad] = k * cost.scalar_elems;
      a[kPair] = time.epilogues * cost.epilogue.direct_store_elems;
      a[kPatch] = time.epilogues * cost.epilogue.staged_store_elems;
      a[kSource] = time.epilogues * cost.epilogue.source_mb;
    }
    return a / sample.us;
  }

  /// Constants without samples keep their values.
  static mp::ClassTuning from_unknowns(const Eigen::VectorXd &x, const Eigen::MatrixXd &a,
                                       const mp::ClassTuning &before) {
    mp::ClassTuning tuning = before;
    const auto set = [&](double &value, Eigen::Index which) {
      if (!a.col(which).isZero(0)) value = x[which];
    };
    for (Eigen::Index i = 0; i < kClassUnknowns; ++i) set(tuning.*kClassConstants[i], i);
    for (const mp::GemmKernel &kernel : mp::gemm_kernels()) {
      mp::KernelTuning &constants = tuning.of(kernel);
      set(constants.start_us, unknown(kernel, kStart));
      set(constants.tile_us, unknown(kernel, kTile));
      set(constants.k_us, unknown(kernel, kK));
      const double paired = x[unknown(kernel, kKPaired)];
      if (constants.k_us > 0 && paired > 0) constants.c2 = paired / constants.k_us;
    }
    tuning.estimated = 0;
    return tuning;
  }

  const std::vector<Sample> &samples_;
  const mp::ClassTuning given_;
  mp::ClassTuning best_{};
  double best_cost_ = std::numeric_limits<double>::infinity();
};

/// Rounds to four digits, more than the measurement provides.
double rounded(double value) {
  constexpr double kDigits = 4;
  if (value == 0) return 0;
  const double scale = std::pow(10, kDigits - 1 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

}  // namespace

mp::ClassTuning fit_tuning(const std::vector<Sample> &samples, const mp::ClassTuning &given) {
  if (samples.empty()) return given;
  mp::ClassTuning tuning = TuningFit(samples, given).best();
  for (const auto constant : kClassConstants) tuning.*constant = rounded(tuning.*constant);
  for (mp::KernelTuning &kernel : tuning.kernels)
    for (double *value : {&kernel.start_us, &kernel.tile_us, &kernel.k_us, &kernel.c2})
      *value = rounded(*value);
  return tuning;
}

}  // namespace mptune
