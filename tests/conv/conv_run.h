// A ConvCase on the device: tensors between guard zones, their oracle, and the call; the output and
// its check are OutputRun's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conv_case.h"
#include "oracle_conv.h"
#include "tests/support/output_run.h"

namespace mptest {

oracle::Convolution convolution_of(const ConvCase &c);
/// The descriptor of the case, with the kernel that the case names.
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
  oracle::Convolution shape_;
  std::vector<double> first_, second_;  ///< x or dy; filter, or dy in wgrad
  oracle::EpilogueInputs epilogue_inputs_;
  std::optional<DeviceArray> device_first_, device_second_;
};

/// Every kernel that can run the case, by name, and the library's choice with the workspace it asks
/// for, with less and with none: correct, with guard zones and inputs untouched.  A kernel may
/// decline misaligned pointers, leaving the output alone.
void check_conv(const ConvCase &c);

}  // namespace mptest
