// mp_gemm_ragged on the device: operands between guard zones, the sums of each group in fp64, and the check of
// all that may and may not have been written.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/support/output_case.h"
#include "tests/support/testing.h"

namespace mptest {

struct RaggedCase {
  mp_ragged_t dimension = MP_RAGGED_M;
  std::string op = "NN";
  Types types = kAllTypes[0];
  int64_t m = 1, n = 1, k = 1;
  std::vector<int32_t> ends;  ///< as they are given: perhaps bad
  float alpha = 1.0f, beta = 0.0f;
  float scale = 0.0f;     ///< 0 = no pointer
  bool in_place = false;  ///< C is D
  bool shared_b = false;  ///< MP_RAGGED_M: stride_b = 0
  int64_t pad = 0;        ///< elements behind each row, which is then as long as a multiple of ...
  int64_t multiple = 8;   ///< ... this
  int64_t offset = 0;     ///< elements by which all operands miss 256 bytes
  bool found_inf = false, amax = false;
  int64_t infinite = -1;  ///< row of A (MP_RAGGED_M) or element of k that holds an infinity
};

std::string to_string(const RaggedCase &c);

class RaggedRun {
 public:
  explicit RaggedRun(const RaggedCase &c);

  /// All that may run it; some decline.
  std::vector<std::string> kernels() const;
  size_t workspace_bytes(const std::string &kernel) const;
  mp_status_t launch(const std::string &kernel);
  mp_status_t launch(const std::string &kernel, size_t workspace_bytes);
  std::string verify() const;
  std::string verify_untouched() const;
  std::vector<uint8_t> output_bits() const;

  /// Other ends for the launches that follow; as many.
  void set_ends(const std::vector<int32_t> &ends);

 private:
  int64_t group_count() const { return static_cast<int64_t>(case_.ends.size()); }
  mp_gemm_desc_t desc(const std::string &kernel) const;
  void expect();
  std::string verify_d(const Matrices &expected) const;

  RaggedCase case_;
  Matrices a_, b_, c_;          ///< op() has been applied
  Matrices before_, expected_;  ///< D; what is not to be written as it was before
  std::optional<DeviceMatrices> device_a_, device_b_, device_c_, device_d_;
  DeviceBuffer<int32_t> ends_;
  DeviceBuffer<float> scale_, found_inf_, amax_;
  std::optional<DeviceBuffer<uint8_t>> workspace_;
};

/// Every kernel by name, and the one that the library chooses.  Returns the names of those that ran.
std::vector<std::string> check_ragged(const RaggedCase &c);

}  // namespace mptest
