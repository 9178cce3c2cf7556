// A GEMM or a convolution on the device: its output D with all that the epilogue
// reads and writes, between guard zones; a launch with any kernel; and the check of all that the
// call may and may not touch.  Inputs and the call itself are those of a GemmRun or a ConvRun.
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
  /// The last launch as a line.
  virtual std::string repro() const = 0;

  /// Resets the outputs and makes the call, with as much workspace as the library asks for or as
  /// given; it holds NaN garbage.  "" leaves the choice of the kernel to the library.
  mp_status_t launch(const std::string &kernel);
  mp_status_t launch(const std::string &kernel, size_t workspace_bytes);

  /// What launch() does before the call, for a call that others make.
  virtual void reset_outputs();

  /// Empty, or what the last launch did wrong.
  std::string verify() const;
  /// Empty, or that a launch which failed has written something.
  std::string verify_untouched() const;
  /// All outputs, for the comparison of two launches.
  std::vector<uint8_t> output_bits() const;

  const oracle::EpilogueResult &expected() const { return expected_; }
  Matrices d() const { return d_->download(); }
  std::vector<uint8_t> workspace() const { return workspace_->download(); }  ///< of the last launch
  float amax() const { return amax_.download()[0]; }
  float found_inf() const { return found_inf_.download()[0]; }

  float amax_start = 0.0f;       ///< *amax before the call
  float found_inf_start = 0.0f;  ///< *found_inf before the call

 protected:
  struct Layout {
    int64_t ld, stride;
  };

  /// `common` is the derived class's own case; `columns` that of D.
  OutputRun(const OutputCase &common, int64_t columns);

  virtual mp_status_t call(const std::string &kernel, const mp_epilogue_t *epilogue,
                           void *workspace, size_t workspace_bytes) = 0;
  virtual std::vector<uint8_t> input_bits() const = 0;

  /// Random C, bias and aux, rounded to their types, and the scalars.
  void fill_epilogue_inputs(oracle::EpilogueInputs &inputs, Random &random, const Matrices &shape);
  /// Once the inputs are on the device and `expected_` is known.
  /// @param before    what D holds before each call
  /// @param stray_*   see DeviceMatrices
  void place_outputs(const oracle::EpilogueInputs &inputs, const Matrices &before, Layout d,
                     Layout aux, int64_t stray_d, int64_t stray_aux);

  oracle::EpilogueResult expected_;
  std::optional<DeviceMatrices> d_;
  std::string launched_kernel_;

 private:
  mp_epilogue_t epilogue() const;
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

// ---------------------------------------------------------------------------- fills

constexpr int64_t kSmallInteger = 4;  ///< |C|, |bias|, |aux| in integer fills

/// The fill for sums of `terms` products with which D, or for Fill::kRounding the accumulator, is
/// exact with the rest of the epilogue.
ExactPlan plan_fill(const OutputCase &c, int64_t terms);
/// Reals in [-1, 1) or integers in [-range, range], rounded to `dtype`.
void fill(std::vector<double> &values, Random &random, Fill fill, int64_t range, mp_dtype_t dtype);
/// The index at that place of a dimension.
int64_t place_in(int64_t extent, Place place);
double value_of(Special special);

// ---------------------------------------------------------------------------- checks

/// A launch must succeed and verify; a kernel that was asked for by name may decline a case whose
/// pointers are misaligned, leaving its outputs alone.
enum class Misaligned { kNo, kYes };
void check_launch(OutputRun &run, const std::string &kernel, Misaligned misaligned);
void check_launch(OutputRun &run, const std::string &kernel, size_t workspace_bytes,
                  Misaligned misaligned = Misaligned::kNo);

/// All kernels that can run the product and are wanted.  Returns how many.
int check_kernels(OutputRun &run, Misaligned misaligned,
                  bool (*is_wanted)(const std::string &kernel));

/// Two launches with the same kernel, the second with more workspace at another address, must give
/// the same bits.
void check_same_bits(OutputRun &run, const std::string &kernel);

}  // namespace mptest
