// A call of mp_gemm_ragged: a GemmRun whose expected D consists of the sums of each group.
#pragma once

#include <string>
#include <vector>

#include "gemm_run.h"

namespace mptest {

class RaggedRun : public GemmRun {
 public:
  /// Sets elements past the last end to NaN in A and B; in D, they must stay unchanged.
  explicit RaggedRun(const GemmCase &c);

  std::vector<std::string> kernels() const override;
  size_t workspace_bytes(const std::string &kernel) const override;

  /// Makes one call per list of ends, like replays of a CUDA graph: the workspace is shared, and
  /// only the ends are written between calls.  Afterwards verify() checks the last list.
  void replay(const std::string &kernel, const std::vector<std::vector<int32_t>> &lists);

 private:
  mp_gemm_desc_t desc(const std::string &kernel) const;
  mp_status_t call(const std::string &kernel, const mp_epilogue_t *epilogue, void *workspace,
                   size_t workspace_bytes) override;

  Layout layout(const Matrices &matrices) const;
  void fill_inputs();
  void expect();

  Matrices before_;  ///< D before the call
  DeviceBuffer<int32_t> ends_;
};

/// Checks every kernel that supports the case, and the library's choice.  Returns their names.
std::vector<std::string> check_ragged(const GemmCase &c);
/// Checks all cases of a line with alternatives.
void check_ragged(const std::string &line);

}  // namespace mptest
