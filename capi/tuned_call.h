// Kernels that are measured instead of predicted: mp_tuning_measure, and the lines "fastest" of
// MP_GEMM_TUNING.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "capi/context.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/gemm/plan.h"

namespace mp {

/// Returns the tuning table in the file MP_GEMM_TUNING, or else the built-in one.  The first call
/// reads the file, and logs an invalid one.
const GemmTuning &gemm_tuning();

/// Identifies calls that share a measurement: those with equal shapes, workspace and device.
class TunedCall {
 public:
  TunedCall(const Context &, const GemmShape &, size_t workspace_bytes);
  TunedCall(const Context &, const ConvKey &, size_t workspace_bytes);

  /// Returns the kernel that was measured to be the fastest, in static storage, or NULL.
  const char *kernel() const;
  /// Measures plans on scratch outputs, and remembers the fastest.  Waits for the device.
  /// @param text    describes the call
  /// @param launch  launch(problem, plan) enqueues a plan
  template <class Plan, class Problem, class Launch>
  void measure(const std::string &text, const Problem &problem, const std::vector<Plan> &plans,
               const Launch &launch, mp_stream_t stream) const {
    std::vector<const char *> kernels;
    for (const Plan &plan : plans) kernels.push_back(plan.name);
    Problem measured = problem;
    measure_kernels(
        text, measured.out, kernels, [&](size_t i) { launch(measured, plans[i]); }, stream);
  }

 private:
  TunedCall(const Context &, uint64_t shape, size_t workspace_bytes);
  /// @param out     becomes a scratch output while plans are measured
  /// @param launch  enqueues a kernel, by its index
  void measure_kernels(const std::string &text, Output &out,
                       const std::vector<const char *> &kernels,
                       const std::function<void(size_t)> &launch, mp_stream_t stream) const;

  const Context &context_;
  const uint64_t key_;
};

/// Increases when a kernel is remembered: plans in caches may be outdated.
uint64_t tuning_generation();

/// Returns the number of kernels that a new call of this thread measures: mp_tuning_measure and
/// Measuring.
int32_t measured_kernels(const Context &);

}  // namespace mp
