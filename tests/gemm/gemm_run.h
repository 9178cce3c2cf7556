// A GemmCase on the device: operands between guard zones, their oracle, and the call.  OutputRun
// provides the outputs and their checks.
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

  /// Returns the descriptor of the case with `kernel`; "" leaves the selection to the library.
  mp_gemm_desc_t desc(const std::string &kernel) const;
  std::vector<std::string> kernels() const override;
  size_t workspace_bytes(const std::string &kernel) const override;
  void reset_outputs() override;
  std::string repro() const override { return repro_of(case_, launched_kernel_); }

  /// Returns the product as an item of a group that the caller launches.
  mp_gemm_group_item_t group_item() const;

  bool null_c = false;  ///< pass NULL for C

 protected:
  /// Leaves inputs, layouts, `expected_` and the call of upload_inputs() to the derived class.
  struct WithoutInputs {};
  GemmRun(const GemmCase &c, WithoutInputs) : OutputRun(c, c.n), case_(c) {}
  /// @param before  contents of D before each call
  void upload_inputs(const Matrices &before);
  std::vector<uint8_t> input_bits() const override;

  GemmCase case_;
  oracle::GemmInputs inputs_;
  Layout layout_a_, layout_b_, layout_c_, layout_d_, layout_aux_;
  std::optional<DeviceMatrices> a_, b_, c_;

 private:
  mp_status_t call(const std::string &kernel, const mp_epilogue_t *epilogue, void *workspace,
                   size_t workspace_bytes) override;

  Layout layout(int64_t rows, int64_t cols, int64_t more_padding) const;
  void fill_inputs();
  void put_special_in_a();
  void upload_pointers();
  int64_t stray_item(char operand) const;

  DeviceBuffer<void *> items_{4 * case_.batch};  ///< A, B, C, D of each item, for mp_gemm_batched
};

/// True for names like "wgmma_128x256x64_s4".
bool is_wgmma(const std::string &kernel);

// The following functions check all cases of a line with alternatives (case_text.h).

/// Checks every kernel that supports a case, by name: correct results; guard zones, padding and
/// inputs unchanged.  A kernel may reject misaligned pointers; it must then leave D unchanged.
/// Also checks the GEMV kernel, which accepts all pointers, with 1 and 13 rows or columns.
void check_every_kernel(const std::string &line);
/// Checks the kernels for which is_wanted is true; at least one must support each case.
void check_kernels(const std::string &line, bool (*is_wanted)(const std::string &kernel));
/// Checks the kernel that the library selects, or that the line names.
void check_library_choice(const std::string &line);
/// Checks every kernel and the library's choice.
void check_kernels_and_choice(const std::string &line);

}  // namespace mptest
