// mp_gemm_ragged: a case as plain data that prints as one line, and its run on the device: an OutputRun, whose
// expected D is made of the sums of each group.
//
//   MP_REPRO="m=230 n=40 k=24 op=TN ab=fp16 ... ragged=m ends=1,1,70" mptests "[repro-ragged]"
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gemm_case.h"
#include "tests/support/output_run.h"

namespace mptest {

struct RaggedCase : GemmCase {  ///< without batch and special; shared_b with MP_RAGGED_M alone
  mp_ragged_t dimension = MP_RAGGED_M;
  std::vector<int32_t> ends;  ///< as they are given: perhaps bad
  int64_t infinite = -1;      ///< row of A (MP_RAGGED_M) or element of k that holds an infinity
};

std::string to_string(const RaggedCase &c);
RaggedCase parse_ragged_case(const std::string &line);

class RaggedRun : public OutputRun {
 public:
  /// What lies past the last end is NaN in A and B, and D must keep what it held there.
  explicit RaggedRun(const RaggedCase &c);

  std::vector<std::string> kernels() const override;
  size_t workspace_bytes(const std::string &kernel) const override;
  std::string repro() const override;

  /// Calls for one list of ends after the other, with one workspace and nothing between them but what writes the
  /// ends: so a CUDA graph is replayed.  verify() is then about the last list.
  void replay(const std::string &kernel, const std::vector<std::vector<int32_t>> &lists);

 private:
  mp_gemm_desc_t desc(const std::string &kernel) const;
  mp_status_t call(const std::string &kernel, const mp_epilogue_t *epilogue, void *workspace,
                   size_t workspace_bytes) override;
  std::vector<uint8_t> input_bits() const override;

  Layout layout(const Matrices &matrices) const;
  void fill_inputs();
  void expect();

  RaggedCase case_;
  oracle::GemmInputs inputs_;
  Matrices before_;  ///< D
  std::optional<DeviceMatrices> a_, b_, c_;
  Layout layout_a_, layout_b_, layout_c_;  ///< D has that of C
  DeviceBuffer<int32_t> ends_;
};

/// Every kernel that can run the case, and the library's choice.  Returns their names.
std::vector<std::string> check_ragged(const RaggedCase &c);

}  // namespace mptest
