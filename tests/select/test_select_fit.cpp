// The fit of mptune: recovers constants from the times that they predict, also with disturbed
// times; the least-squares solver.
#include <cmath>

#include "bench/tune/fit.h"
#include "bench/tune/nonnegative.h"
#include "select_cases.h"

using namespace mptest;

namespace {

/// Returns the samples mptune would measure on a GPU: all kernels on problems that separate
/// constants.
std::vector<mptune::Sample> samples_on(const mp::Device &device, const mp::ClassTuning &truth) {
  std::vector<mp::GemmProblem> problems;
  for (const int64_t edge : {128, 512, 1024, 2048, 4096, 8192})
    for (const int64_t k : {128, 1024, 8192}) problems.push_back(problem(edge, edge, k));
  for (const int64_t k : {1001, 3003}) problems.push_back(problem(1000, 1000, k));
  for (const int64_t m : {1, 4, 8, 16}) {
    problems.push_back(problem(m, 8192, 8192));
    problems.push_back(problem(m, 1024, 2048));
  }
  problems.push_back(problem(64, 65536, 1024));
  problems.push_back(problem(3072, 768, 32768));
  for (const int64_t edge : {512, 1000, 4096}) {
    for (const int64_t k : {256, 4096}) {
      problems.push_back(with_ld_of_d(problem(edge, edge, k), edge + 1));
      problems.push_back(with_fp32_d(problem(edge, edge, k), 0));
      problems.push_back(with_fp32_d(problem(edge, edge, k), 1));
    }
  }

  std::vector<mptune::Sample> samples;
  for (const mp::GemmProblem &p : problems) {
    for (const mp::RankedGemm &choice : ranking(p, device)) {
      const mp::PlanCost cost = plan_named(choice.name, p, device).cost;
      const mp::GemmKernel &kernel = *choice.variant->kernel;
      samples.push_back({&kernel, cost, predicted_us(cost, truth, truth.of(kernel))});
    }
  }
  return samples;
}

/// Returns the built-in constants, each multiplied by a factor between 1/2 and 2.
mp::ClassTuning disturbed(const mp::ClassTuning &tuning, Random &random) {
  mp::ClassTuning other = tuning;
  const auto disturb = [&](double &value) { value *= std::exp2(random.real(-1, 1)); };
  for (double *value : {&other.launch_us, &other.dram_us_per_mb, &other.l2_us_per_mb,
                        &other.partial_us_per_mb, &other.copy_us_per_mb, &other.direct_store_us,
                        &other.staged_store_us, &other.source_us_per_mb, &other.scalar_load_us})
    disturb(*value);
  for (const mp::GemmKernel &row : mp::gemm_kernels()) {
    mp::KernelTuning &kernel = other.of(row);
    if (row.family == mp::GemmFamily::wgmma) kernel.start_us = random.real(0, 5);
    disturb(kernel.tile_us);
    disturb(kernel.k_us);
    kernel.c2 = random.real(0.7, 1.1);
  }
  return other;
}

double worst_error(const std::vector<mptune::Sample> &samples, const mp::ClassTuning &tuning) {
  double worst = 0;
  for (const mptune::Sample &sample : samples)
    worst = std::max(worst, std::abs(relative_error(sample, tuning)));
  return worst;
}

double median_error(const std::vector<mptune::Sample> &samples, const mp::ClassTuning &tuning) {
  std::vector<double> errors;
  for (const mptune::Sample &sample : samples)
    errors.push_back(std::abs(relative_error(sample, tuning)));
  return mptune::median(errors);
}

}  // namespace

TEST_CASE("fit: constants are recovered from their predicted times") {
  for (const mp::Device &device : {kT4, kA100, kH200, kHost}) {
    CAPTURE(device.arch, device.target);
    const mp::ClassTuning &start = mp::builtin_gemm_tuning().of(class_of(device));
    Random random(4);
    for (int i = 0; i < 5; ++i) {
      const mp::ClassTuning truth = disturbed(start, random);
      const std::vector<mptune::Sample> samples = samples_on(device, truth);
      CHECK(worst_error(samples, start) > 0.2);
      const mp::ClassTuning fitted = mptune::fit_tuning(samples, start);
      CAPTURE(i);
      CHECK(worst_error(samples, fitted) < 0.01);
      CHECK(fitted.launch_us == Approx(truth.launch_us).epsilon(0.02));
      CHECK(fitted.scalar_load_us == Approx(truth.scalar_load_us).epsilon(0.02).margin(1e-6));
      CHECK(fitted.copy_us_per_mb == Approx(truth.copy_us_per_mb).epsilon(0.02));
    }
  }
}

TEST_CASE("fit: disturbing a tenth of the times changes constants little") {
  const mp::ClassTuning &start = mp::builtin_gemm_tuning().of(mp::DeviceClass::sm_80);
  Random random(9);
  const mp::ClassTuning truth = disturbed(start, random);
  const std::vector<mptune::Sample> clean = samples_on(kA100, truth);
  std::vector<mptune::Sample> noisy = clean;
  for (mptune::Sample &sample : noisy) {
    sample.us *= random.real(0.98, 1.02);
    if (random.integer(0, 9) == 0) sample.us *= 3;
  }
  CHECK(median_error(clean, mptune::fit_tuning(noisy, start)) < 0.02);
}

TEST_CASE("fit: constants that were not measured stay unchanged") {
  const mp::ClassTuning &start = mp::builtin_gemm_tuning().of(mp::DeviceClass::sm_80);
  std::vector<mptune::Sample> samples = samples_on(kA100, start);
  const mp::GemmKernel &absent = kernel_named("simt_64x64x16");
  std::erase_if(samples, [&](const mptune::Sample &s) { return s.kernel == &absent; });
  for (mptune::Sample &sample : samples) sample.us *= 2;
  const mp::ClassTuning fitted = mptune::fit_tuning(samples, start);
  CHECK(fitted.of(absent).tile_us == start.of(absent).tile_us);
  CHECK(fitted.of(absent).k_us == start.of(absent).k_us);
  const mp::GemmKernel &present = kernel_named("simt_128x128x16");
  CHECK(fitted.of(present).k_us == Approx(2 * start.of(present).k_us).epsilon(0.02));
  CHECK(mptune::fit_tuning({}, start).launch_us == start.launch_us);
}

TEST_CASE("fit: classes without a bound get none") {
  const mp::ClassTuning &start = mp::builtin_gemm_tuning().of(mp::DeviceClass::host);
  REQUIRE(start.dram_us_per_mb == 0);
  std::vector<mptune::Sample> samples = samples_on(kHost, start);
  Random random(6);
  for (mptune::Sample &sample : samples) sample.us *= random.real(0.5, 2);
  const mp::ClassTuning fitted = mptune::fit_tuning(samples, start);
  CHECK(fitted.dram_us_per_mb == 0);
  CHECK(fitted.l2_us_per_mb == 0);
}

TEST_CASE("least squares: the optimum over x >= 0 satisfies the KKT conditions") {
  // Karush-Kuhn-Tucker: x >= 0; the gradient is 0 where x > 0, and not negative where x = 0.
  constexpr Eigen::Index kUnknowns = 6;
  Random random(8);
  int at_zero = 0;
  for (int i = 0; i < 200; ++i) {
    const Eigen::Index rows = random.integer(3, 20);
    Eigen::MatrixXd a = Eigen::MatrixXd::NullaryExpr(
        rows, kUnknowns, [&] { return random.integer(0, 2) == 0 ? 0 : random.real(-1, 1); });
    a.col(5).setZero();
    const Eigen::VectorXd b =
        Eigen::VectorXd::NullaryExpr(rows, [&] { return random.real(-1, 1); });
    const Eigen::VectorXd x = mptune::solve_nonnegative(a, b);
    const Eigen::VectorXd gradient = a.transpose() * (a * x - b);
    CHECK(x[5] == 0);
    for (Eigen::Index j = 0; j < kUnknowns; ++j) {
      CAPTURE(i, j, x[j], gradient[j]);
      CHECK(x[j] >= 0);
      CHECK(gradient[j] > -1e-6);
      if (x[j] > 0) CHECK(gradient[j] < 1e-6);
      at_zero += x[j] == 0;
    }
  }
  CHECK(at_zero > 300);
  CHECK(at_zero < 1000);
}
