// Kernels that are measured instead of predicted: mp_tuning_measure, and the lines "fastest" of
// MP_GEMM_TUNING.
#pragma once

#include <cstddef>
#include <cstdint>
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

/// Calls with equal shapes, workspace and device.
class TunedCall {
 public:
  TunedCall(const Context &, const GemmShape &, size_t workspace_bytes);
  TunedCall(const Context &, const RaggedShape &, size_t workspace_bytes);
  TunedCall(const Context &, const ConvKey &, size_t workspace_bytes);

  /// Returns the kernel that was measured to be the fastest, in static storage, or NULL.
  const char *kernel() const;
  /// Measures kernels and remembers the fastest.  Waits for the stream.
  /// @param text     describes the call
  /// @param kernels  the first one is predicted to be the fastest
  /// @param launch   enqueues a kernel
  void measure(const std::string &text, const std::vector<const char *> &kernels,
               const std::function<void(const char *kernel)> &launch, mp_stream_t stream) const;

 private:
  TunedCall(const Context &, uint64_t shape, size_t workspace_bytes);

  const Context &context_;
  const uint64_t key_;
};

/// Increases when a kernel is remembered: plans in caches may be outdated.
uint64_t tuning_generation();

/// Output in scratch memory with the layout and alignment of `out`, for launches whose results are
/// not used.  C stays where it is.
class ScratchOutput {
 public:
  ScratchOutput(const Context &, const Output &out);
  ~ScratchOutput();
  ScratchOutput(const ScratchOutput &) = delete;
  ScratchOutput &operator=(const ScratchOutput &) = delete;
  const Output &get() const { return out_; }

 private:
  const Context &context_;
  Output out_;
  void *memory_;
};

/// Returns the first kernels of a ranking that fit into the workspace, as many as the context
/// measures.
template <class Ranking>
std::vector<const char *> kernels_to_measure(const Context &context, const Ranking &ranked,
                                             size_t workspace_bytes) {
  std::vector<const char *> names;
  for (const auto &entry : ranked) {
    if (static_cast<int32_t>(names.size()) == context.measured_kernels) break;
    if (entry.workspace_bytes <= workspace_bytes) names.push_back(entry.name);
  }
  return names;
}

}  // namespace mp
