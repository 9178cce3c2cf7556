// Plans as text: mp_gemm_explain, mp_conv2d_explain, mp_attention_explain and MP_LOG_PLANS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "capi/context.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/gemm/plan.h"

namespace mp {

std::string text_of(const GemmShape &);
inline std::string text_of(const RaggedShape &shape) {
  return text_of(shape.all);
}
std::string text_of(const ConvShape &);

/// Lines of a text.
class Lines {
 public:
  template <class... Parts>
  void add(const Parts &...parts) {
    text_ += Message(parts...).c_str();
    text_ += '\n';
  }
  const std::string &text() const { return text_; }

 private:
  std::string text_;
};

/// Another kernel for the same problem.
struct PlanCandidate {
  const char *name;
  const char *reason;  ///< NULL = it can run the problem
  double predicted_us;
  size_t workspace_bytes;
};
constexpr size_t kPlanCandidates = 5;

/// Describes a plan and the next candidates.
/// @param problem       text_of its shape
/// @param name          of the kernel
/// @param copied_bytes  copies of operands, at offset 0 of the workspace
std::string plan_text(const Context &, const std::string &problem, const char *name,
                      const GemmPlan &, size_t copied_bytes, const std::vector<PlanCandidate> &);

/// Returns whether the environment variable MP_LOG_PLANS is 1.
bool logs_plans();
/// Logs the line of a plan, the first time in the process.
void log_new_plan(const Message &line);
/// Logs a plan in one line, the first time in the process.
void log_new_plan(const std::string &problem, const char *name, const GemmPlan &);

}  // namespace mp
