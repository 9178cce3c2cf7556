// A ConvCase on the device: tensors between guard zones, their oracle, and the call.  OutputRun
// provides the output and its checks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conv_cases.h"
#include "oracle_conv.h"
#include "tests/support/output_run.h"

namespace mptest {

/// Returns the descriptor of the case, with the kernel that the case names.
mp_conv2d_desc_t desc_of(const ConvCase &c);

class ConvRun : public OutputRun {
 public:
  explicit ConvRun(const ConvCase &c);

  std::vector<std::string> kernels() const override;
  size_t workspace_bytes(const std::string &kernel) const override;
  std::string repro() const override;

 private:
  mp_status_t call(const std::string &kernel, const mp_epilogue_t *epilogue, void *workspace,
                   size_t workspace_bytes) override;
  std::vector<uint8_t> input_bits() const override;

  void fill_inputs();
  void thin_out_second(int64_t period);
  void put_special();
  void upload_inputs();
  int64_t offset_of(char operand) const;

  ConvCase case_;
  std::vector<double> first_, second_;  ///< x or dy; filter, or dy in wgrad
  oracle::EpilogueInputs epilogue_inputs_;
  std::optional<DeviceArray> device_first_, device_second_;
};

/// Checks every kernel that supports the case, by name, and the library's choice with its preferred
/// workspace, with less and with none: correct results; guard zones and inputs unchanged.  A kernel
/// may reject misaligned pointers; it must then leave the output unchanged.
void check_conv(const ConvCase &c);
/// Checks all cases of a line with alternatives (case_text.h).
void check_conv(const std::string &line);
/// Checks the kernels for which is_wanted is true; at least one must support each case of the line.
/// Returns the number of launches.
int check_conv_kernels(const std::string &line, bool (*is_wanted)(const std::string &kernel));
/// Checks that the kernel rejects the case and writes nothing.
void check_rejected(const ConvCase &c, const std::string &kernel);

}  // namespace mptest
