// A GemmCase on the device: operands between guard zones, their oracle, a launch with any kernel,
// and the check of all that the call may and may not touch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gemm_case.h"
#include "oracle.h"
#include "testing.h"

namespace mptest {

class GemmRun {
 public:
  explicit GemmRun(const GemmCase &c);

  /// The descriptor of the case with `kernel`; "" leaves the choice to the library.
  mp_gemm_desc_t desc(const std::string &kernel) const;
  std::vector<std::string> kernels() const;
  size_t workspace_bytes(const std::string &kernel) const;

  /// Resets the outputs and makes the call, with as much workspace as the library asks for or as
  /// given; it holds NaN garbage.
  mp_status_t launch(const std::string &kernel);
  mp_status_t launch(const std::string &kernel, size_t workspace_bytes);

  /// What launch() does before the call, for a call that others make: the product as an item of a
  /// group.
  void reset_outputs();
  mp_gemm_group_item_t group_item() const;

  /// Empty, or what the last launch did wrong.
  std::string verify() const;
  /// Empty, or that a launch which failed has written something.
  std::string verify_untouched() const;
  /// All outputs, for the comparison of two launches.
  std::vector<uint8_t> output_bits() const;
  /// The last launch as a line.
  std::string repro() const;
  const oracle::GemmResult &expected() const { return expected_; }
  Matrices d() const { return d_->download(); }
  float amax() const { return amax_.download()[0]; }
  float found_inf() const { return found_inf_.download()[0]; }

  float amax_start = 0.0f;       ///< *amax before the call
  float found_inf_start = 0.0f;  ///< *found_inf before the call
  bool null_c = false;           ///< pass NULL for C

 private:
  struct Layout {
    int64_t ld, stride;
  };

  Layout layout(int64_t rows, int64_t cols, int64_t more_padding) const;
  void fill_inputs();
  void plant_in_a();
  void fill_epilogue_inputs(Random &random);
  void upload_inputs();
  void upload_pointers();
  int64_t stray_item(char operand) const;
  mp_epilogue_t epilogue() const;
  bool reads_aux() const;
  bool is_exact() const;
  std::vector<uint8_t> input_bits() const;
  std::string verify_matrix(const char *name, const DeviceMatrices &got, const Matrices &exact,
                            const Matrices &error) const;
  std::string verify_dbias(const Matrices &d) const;
  std::string verify_flags(const Matrices &d) const;

  GemmCase case_;
  oracle::GemmInputs inputs_;
  oracle::GemmResult expected_;
  Layout layout_a_, layout_b_, layout_c_, layout_d_, layout_aux_;
  std::optional<DeviceMatrices> a_, b_, c_, d_, aux_;
  std::optional<DeviceArray> bias_;
  DeviceBuffer<void *> items_;  ///< A, B, C, D of each item, for mp_gemm_batched
  DeviceBuffer<float> scale_, dbias_, amax_, found_inf_;
  std::optional<DeviceBuffer<uint8_t>> workspace_;
  std::vector<uint8_t> input_bits_, reset_bits_;
};

/// Every kernel that can run the case, by name: correct, with guard zones, padding and inputs
/// untouched.  A kernel may decline misaligned pointers, leaving D alone.
void check_every_kernel(const GemmCase &c);
/// The same for the kernels that are wanted, at least one of which must run the case.
void check_kernels(const GemmCase &c, bool (*is_wanted)(const std::string &kernel));
/// The same for the kernel that the library chooses.
void check_library_choice(const GemmCase &c);

}  // namespace mptest
