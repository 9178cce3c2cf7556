// Base of GemmRun and ConvRun: output D with all tensors of the epilogue between guard zones; a
// launch with any kernel; and the check of all memory that the call may and may not write.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oracle.h"
#include "output_case.h"
#include "testing.h"

namespace mptest {

class OutputRun {
 public:
  virtual ~OutputRun() = default;

  /// Names of the kernels that can run the case, the library's choice first.
  virtual std::vector<std::string> kernels() const = 0;
  virtual size_t workspace_bytes(const std::string &kernel) const = 0;
  /// Text that reproduces the last launch.
  virtual std::string repro() const = 0;

  /// Resets the outputs and makes the call with the library's workspace size, or a given one,
  /// filled with NaN.  "" leaves the choice of the kernel to the library.
  mp_status_t launch(const std::string &kernel);
  mp_status_t launch(const std::string &kernel, size_t workspace_bytes);

  /// Prepares the outputs for a call that launch() does not make.
  virtual void reset_outputs();

  /// Returns the errors of the last launch, or "".
  std::string verify() const;
  /// Returns the outputs that a failed launch has written, or "".
  std::string verify_untouched() const;
  /// Returns all outputs, to compare two launches.
  std::vector<uint8_t> output_bits() const;

  const oracle::EpilogueResult &expected() const { return expected_; }
  Matrices d() const { return d_->download(); }
  /// Contents of the workspace after the last launch.
  std::vector<uint8_t> workspace() const { return workspace_->download(); }
  float amax() const { return amax_.download()[0]; }
  float found_inf() const { return found_inf_.download()[0]; }

  float amax_start = 0.0f;       ///< *amax before the call
  float found_inf_start = 0.0f;  ///< *found_inf before the call

 protected:
  struct Layout {
    int64_t ld, stride;
  };

  /// `common` is the case of the derived class; `columns` is the number of columns of D.
  OutputRun(const OutputCase &common, int64_t columns);

  mp_epilogue_t epilogue() const;
  virtual mp_status_t call(const std::string &kernel, const mp_epilogue_t *epilogue,
                           void *workspace, size_t workspace_bytes) = 0;
  virtual std::vector<uint8_t> input_bits() const = 0;

  /// Generates C, bias and aux, rounded to their types, and the scalars.
  void fill_epilogue_inputs(oracle::EpilogueInputs &inputs, Random &random, const Matrices &shape);
  /// Creates the outputs; the inputs must be on the device and `expected_` computed.
  /// @param before    contents of D before each call
  /// @param stray_*   see DeviceMatrices
  void place_outputs(const oracle::EpilogueInputs &inputs, const Matrices &before, Layout d,
                     Layout aux, int64_t stray_d, int64_t stray_aux);

  oracle::EpilogueResult expected_;
  std::optional<DeviceMatrices> d_;
  std::string launched_kernel_;

 private:
  std::string verify_matrix(const char *name, const DeviceMatrices &got, const Matrices &exact,
                            const Matrices &error) const;
  std::string verify_dbias(const Matrices &d) const;
  std::string verify_flags(const Matrices &d) const;

  OutputCase common_;
  Layout layout_d_{}, layout_aux_{};
  Matrices d_before_, aux_before_;
  std::optional<DeviceMatrices> aux_;
  std::optional<DeviceArray> bias_;
  DeviceBuffer<float> scale_, dbias_, amax_, found_inf_;
  std::optional<DeviceBuffer<uint8_t>> workspace_;
  std::vector<uint8_t> input_bits_, reset_bits_;
};

// ---------------------------------------------------------------------------- kernels

/// Returns whether the device supports wgmma; otherwise skips the test with that reason.
bool has_wgmma();
/// True for split-k kernels, which are named "..._k2", "..._k4_copied", ...
bool splits_k(const std::string &kernel);

// ---------------------------------------------------------------------------- fills

constexpr int64_t kSmallInteger = 4;  ///< |C|, |bias|, |aux| for integer values

/// Returns input ranges for sums of `terms` products such that D (for Fill::kRounding: the
/// accumulator) and the rest of the epilogue are exact.
ExactPlan plan_fill(const OutputCase &c, int64_t terms);
/// Fills with reals in [-1, 1) or integers in [-range, range], rounded to `dtype`.
void fill(std::vector<double> &values, Random &random, Fill fill, int64_t range, mp_dtype_t dtype);
/// Index of a position in a dimension.
int64_t place_in(int64_t extent, Place place);
double value_of(Special special);

// ---------------------------------------------------------------------------- checks

/// A launch must succeed and verify.  With kYes, a kernel selected by name may reject misaligned
/// pointers, and then must not write its outputs.
enum class Misaligned { kNo, kYes };
template <class Run>
void check_launch(Run &run, const std::string &kernel, size_t workspace_bytes,
                  Misaligned misaligned = Misaligned::kNo) {
  const mp_status_t status = run.launch(kernel, workspace_bytes);
  const bool may_decline = misaligned == Misaligned::kYes && !kernel.empty();
  if (status == MP_ERROR_UNSUPPORTED && may_decline) {
    expect_none(run.verify_untouched(), run.repro());
  } else if (status != MP_SUCCESS) {
    expect_none(std::string(mp_status_string(status)) + ": " + mp_last_error(), run.repro());
  } else {
    expect_none(run.verify(), run.repro());
  }
}
template <class Run>
void check_launch(Run &run, const std::string &kernel, Misaligned misaligned) {
  check_launch(run, kernel, run.workspace_bytes(kernel), misaligned);
}

/// Checks all selected kernels that can run the problem.  Returns their number.
int check_kernels(OutputRun &run, Misaligned misaligned,
                  bool (*is_wanted)(const std::string &kernel));

/// Checks that two launches with the same kernel give the same bits, the second with more workspace
/// at another address.
template <class Run>
void check_same_bits(Run &run, const std::string &kernel) {
  check_launch(run, kernel, Misaligned::kNo);
  const std::vector<uint8_t> first = run.output_bits();
  require_ok(run.launch(kernel, run.workspace_bytes(kernel) + (1 << 20)));
  expect_none(run.output_bits() == first ? "" : "two equal calls gave different bits", run.repro());
}

}  // namespace mptest
