// mp_gemm_grouped: a group as plain data that is printed as one line.  Each of its products is a
// GemmRun, which provides operands between guard zones, an oracle and checks.
//
//   export MP_REPRO="m=1 n=1 k=1 op=TN ab=fp16 ... items=129x64x72,0x5x3,64x64x64@ad"
//   mptests "[repro-group]"
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gemm_run.h"

namespace mptest {

/// Parameters in which the products of a group may differ.  Printed as 129x64x72+5@ad!
struct GroupItem {
  int64_t m = 0, n = 0, k = 0;
  int64_t pad = 0;         ///< +5: GemmCase::pad
  std::string stray = "";  ///< @ad: operands whose addresses are one element past 16-byte alignment
  bool infinite = false;   ///< !: an infinity in A
};

struct GroupCase {
  GemmCase common;  ///< m, n, k, pad unused; found_inf and scale apply to all products
  std::vector<GroupItem> items;
};

std::string to_string(const GroupCase &c);
GroupCase group_case(const std::string &line);
/// Returns the cases of a line with alternatives (case_text.h).
std::vector<GroupCase> group_cases(const std::string &line);

class GroupRun {
 public:
  explicit GroupRun(const GroupCase &c);

  /// Returns the kernels that support every product.
  std::vector<std::string> kernels() const;
  size_t workspace_bytes(const std::string &kernel) const;

  /// Launches like GemmRun.  Overwrites the items when the call has returned.
  mp_status_t launch(const std::string &kernel, size_t workspace_bytes);
  std::string verify() const;
  std::string verify_untouched() const;
  std::vector<uint8_t> output_bits() const;
  std::string repro() const;
  float found_inf() const { return found_inf_.download()[0]; }

  float found_inf_start = 0.0f;  ///< *found_inf before the call

 private:
  mp_gemm_desc_t desc(const std::string &kernel) const;
  std::vector<mp_gemm_group_item_t> items() const;

  GroupCase case_;
  std::vector<std::unique_ptr<GemmRun>> products_;
  DeviceBuffer<float> scale_, found_inf_;
  std::unique_ptr<DeviceBuffer<uint8_t>> workspace_;
};

/// Checks every kernel that supports the products, by name, and the one that the library selects.
/// A kernel may reject misaligned pointers; it must then leave every D unchanged.
void check_group(const GroupCase &c);
/// Checks all cases of a line with alternatives.
void check_group(const std::string &line);

}  // namespace mptest
