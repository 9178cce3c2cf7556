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

/// Output in scratch memory with the layout and alignment of `out`, for launches whose results are
/// not used.  C stays where it is.
class ScratchOutput : NotCopied {
 public:
  ScratchOutput(const Context &, const Output &out);
  ~ScratchOutput();
  const Output &get() const { return out_; }

 private:
  const Context &context_;
  Output out_;
  void *memory_;
};

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
    const ScratchOutput scratch(context_, problem.out);
    Problem measured = problem;
    measured.out = scratch.get();
    std::vector<Candidate> candidates;
    for (const Plan &plan : plans)
      candidates.push_back({plan.name, [&] { launch(measured, plan); }});
    measure(text, candidates, stream);
  }

 private:
  struct Candidate {
    const char *kernel;
    std::function<void()> launch;
  };
  TunedCall(const Context &, uint64_t shape, size_t workspace_bytes);
  void measure(const std::string &text, const std::vector<Candidate> &, mp_stream_t stream) const;

  const Context &context_;
  const uint64_t key_;
};

/// Increases when a kernel is remembered: plans in caches may be outdated.
uint64_t tuning_generation();

/// Returns the number of kernels that a new call of this thread measures: mp_tuning_measure and
/// Measuring.
int32_t measured_kernels(const Context &);

}  // namespace mp
