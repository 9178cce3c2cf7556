// A call of mp_gemm_grouped.  Each of its products is a GemmRun, which provides operands between
// guard zones, an oracle and checks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gemm_run.h"

namespace mptest {

class GroupRun {
 public:
  explicit GroupRun(const GemmCase &c);

  /// Returns the kernels that support every product.
  std::vector<std::string> kernels() const;
  size_t workspace_bytes(const std::string &kernel) const;

  /// Launches like GemmRun.  Overwrites the items when the call has returned.
  mp_status_t launch(const std::string &kernel, size_t workspace_bytes);
  std::string verify() const;
  std::string verify_untouched() const;
  std::vector<uint8_t> output_bits() const;
  std::string repro() const { return repro_of(case_, launched_kernel_); }
  float found_inf() const { return found_inf_.download()[0]; }

  float found_inf_start = 0.0f;  ///< *found_inf before the call

 private:
  mp_gemm_desc_t desc(const std::string &kernel) const;
  std::vector<mp_gemm_group_item_t> items() const;

  GemmCase case_;
  std::string launched_kernel_;
  std::vector<std::unique_ptr<GemmRun>> products_;
  DeviceBuffer<float> scale_, found_inf_;
  std::unique_ptr<DeviceBuffer<uint8_t>> workspace_;
};

/// Checks every kernel that supports the products, by name, and the one that the library selects.
/// A kernel may reject misaligned pointers; it must then leave every D unchanged.
void check_group(const GemmCase &c);
/// Checks all cases of a line with alternatives.
void check_group(const std::string &line);

}  // namespace mptest
