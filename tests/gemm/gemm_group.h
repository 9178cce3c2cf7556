// mp_gemm_grouped: a group as plain data that prints as one line, and each of its products as a
// GemmRun, which has operands between guard zones, an oracle, and the check of what was written.
//
//   MP_REPRO="m=1 n=1 k=1 op=TN ab=fp16 ... items=129x64x72,0x5x3,64x64x64@ad" mptests "[repro-group]"
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gemm_run.h"

namespace mptest {

/// What products of a group may differ in.  Prints as 129x64x72+5@ad!
struct GroupItem {
  int64_t m, n, k;
  int64_t pad = 0;         ///< +5: GemmCase::pad
  std::string stray = "";  ///< @ad: these operands miss 16-byte alignment by one element
  bool infinite = false;   ///< !: an infinity in A
};

struct GroupCase {
  GemmCase common;  ///< without m, n, k, pad; found_inf and scale are shared by the products
  std::vector<GroupItem> items;
};

std::string to_string(const GroupCase &c);
GroupCase parse_group_case(const std::string &line);

class GroupRun {
 public:
  explicit GroupRun(const GroupCase &c);

  /// Those that can run every product.
  std::vector<std::string> kernels() const;
  size_t workspace_bytes(const std::string &kernel) const;

  /// As GemmRun's.  The items are overwritten as soon as the call has returned.
  mp_status_t launch(const std::string &kernel);
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

/// Every kernel that can run the products, by name, and the one that the library chooses.  A kernel
/// may decline misaligned pointers, leaving all D alone.
void check_group(const GroupCase &c);

}  // namespace mptest
