// A GEMM call as plain data that is printed as one line, "m=129 n=64 k=72 op=TN ab=fp16 ...", and
// parsed from it: MP_REPRO="<the line>" mptests "[repro]" reruns the case.
//
//   "m=1 n=1 k=1 op=TN ab=fp16 ... items=129x64x72,0x5x3,64x64x64@ad"  a call of mp_gemm_grouped
//   "m=230 n=40 k=24 op=TN ab=fp16 ... ragged=m ends=1,1,70"           a call of mp_gemm_ragged
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/case_text.h"

namespace mptest {

/// Parameters in which the products of a group may differ.  Printed as 129x64x72+5@ad!
struct GroupItem {
  int64_t m = 0, n = 0, k = 0;
  int64_t pad = 0;         ///< +5: GemmCase::pad
  std::string stray = "";  ///< @ad: operands whose addresses are one element past 16-byte alignment
  bool infinite = false;   ///< !: an infinity in A
};

struct GemmCase : OutputCase {
  int64_t m = 1, n = 1, k = 1;
  std::string op = "NN";  ///< op_a, op_b
  int64_t batch = 1;
  bool shared_a = false, shared_b = false;  ///< one matrix for all items; groups: shared_a only
  bool pointers = false;                    ///< mp_gemm_batched
  bool in_place = false;                    ///< D is C
  int64_t pad = 0;                          ///< ld is at least the row length + pad ...
  int64_t multiple = 8;                     ///< ... rounded up to a multiple of this
  /// "ad2": A and D of batch item 2 are offset by one element; requires pointers or a group.
  std::string stray;
  /// Products of a group; m, n, k, pad and stray are theirs, found_inf and scale apply to all.
  std::vector<GroupItem> items;
  // Groups whose sizes are on the device; batch and special unused, shared_b only with MP_RAGGED_M.
  mp_ragged_t ragged = MP_RAGGED_M;
  std::vector<int32_t> ends;  ///< passed unchanged; may be invalid
  int64_t infinite = -1;      ///< row of A (MP_RAGGED_M) or element of k that holds an infinity
};

/// Returns the elements between starts of rows of `cols` columns.
inline int64_t leading_dimension(const GemmCase &c, int64_t cols) {
  return (cols + c.pad + c.multiple - 1) / c.multiple * c.multiple;
}

/// Returns the descriptor of a dense product with the options of the case.  `kernel`, "" for the
/// library's choice, must outlive the descriptor.
mp_gemm_desc_t descriptor(const GemmCase &c, int64_t m, int64_t n, int64_t k,
                          const std::string &kernel);

/// Prints the fields that differ from a default GemmCase.
std::string to_string(const GemmCase &c);
GemmCase gemm_case(const std::string &line);
/// Returns the cases of a line with alternatives (case_text.h).
std::vector<GemmCase> gemm_cases(const std::string &line);
/// Returns the text that reruns a case with a kernel.
std::string repro_of(GemmCase c, const std::string &kernel);

}  // namespace mptest
