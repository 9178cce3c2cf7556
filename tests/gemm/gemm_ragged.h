// mp_gemm_ragged: a case as plain data that is printed as one line, and its run on the device: a
// GemmRun whose expected D consists of the sums of each group.
//
//   MP_REPRO="m=230 n=40 k=24 op=TN ab=fp16 ... ragged=m ends=1,1,70" mptests "[repro-ragged]"
#pragma once

#include <string>
#include <vector>

#include "gemm_run.h"

namespace mptest {

struct RaggedCase : GemmCase {  ///< batch and special unused; shared_b only with MP_RAGGED_M
  mp_ragged_t dimension = MP_RAGGED_M;
  std::vector<int32_t> ends;  ///< passed unchanged; may be invalid
  int64_t infinite = -1;      ///< row of A (MP_RAGGED_M) or element of k that holds an infinity
};

std::string to_string(const RaggedCase &c);
RaggedCase ragged_case(const std::string &line);
/// Returns the cases of a line with alternatives (case_text.h).
std::vector<RaggedCase> ragged_cases(const std::string &line);

class RaggedRun : public GemmRun {
 public:
  /// Sets elements past the last end to NaN in A and B; in D, they must stay unchanged.
  explicit RaggedRun(const RaggedCase &c);

  std::vector<std::string> kernels() const override;
  size_t workspace_bytes(const std::string &kernel) const override;
  std::string repro() const override;

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

  RaggedCase case_;
  Matrices before_;  ///< D before the call
  DeviceBuffer<int32_t> ends_;
};

/// Checks every kernel that supports the case, and the library's choice.  Returns their names.
std::vector<std::string> check_ragged(const RaggedCase &c);
/// Checks all cases of a line with alternatives.
void check_ragged(const std::string &line);

}  // namespace mptest
