// A GemmCase on the device: operands between guard zones, their oracle, and the call; outputs and
// their check are OutputRun's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gemm_case.h"
#include "tests/support/output_run.h"

namespace mptest {

class GemmRun : public OutputRun {
 public:
  explicit GemmRun(const GemmCase &c);

  /// The descriptor of the case with `kernel`; "" leaves the choice to the library.
  mp_gemm_desc_t desc(const std::string &kernel) const;
  std::vector<std::string> kernels() const override;
  size_t workspace_bytes(const std::string &kernel) const override;
  void reset_outputs() override;
  std::string repro() const override;

  /// The product as an item of a group, for a call that others make.
  mp_gemm_group_item_t group_item() const;

  bool null_c = false;  ///< pass NULL for C

 private:
  mp_status_t call(const std::string &kernel, const mp_epilogue_t *epilogue, void *workspace,
                   size_t workspace_bytes) override;
  std::vector<uint8_t> input_bits() const override;

  Layout layout(int64_t rows, int64_t cols, int64_t more_padding) const;
  void fill_inputs();
  void put_special_in_a();
  void upload_inputs();
  void upload_pointers();
  int64_t stray_item(char operand) const;

  GemmCase case_;
  oracle::GemmInputs inputs_;
  Layout layout_a_, layout_b_, layout_c_, layout_d_, layout_aux_;
  std::optional<DeviceMatrices> a_, b_, c_;
  DeviceBuffer<void *> items_;  ///< A, B, C, D of each item, for mp_gemm_batched
};

/// "wgmma_128x256x64_s4".
bool is_wgmma(const std::string &kernel);
/// Whether the device has them; else the test is skipped, with that as its reason.
bool has_wgmma();

/// Every kernel that can run the case, by name: correct, with guard zones, padding and inputs
/// untouched.  A kernel may decline misaligned pointers, leaving D alone.
void check_every_kernel(const GemmCase &c);
/// The same for the kernels that are wanted, at least one of which must run the case.
void check_kernels(const GemmCase &c, bool (*is_wanted)(const std::string &kernel));
/// The same for the kernel that the library chooses.
void check_library_choice(const GemmCase &c);

}  // namespace mptest
