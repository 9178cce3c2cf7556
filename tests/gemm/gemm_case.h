// One GEMM call as plain data that prints as one line, "m=129 n=64 k=72 op=TN ab=fp16 ...", and is
// read back from it:  MP_REPRO="<the line>" mptests "[repro]"  runs the case again.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/output_case.h"

namespace mptest {

inline constexpr const char *kAllOps[] = {"NN", "NT", "TN", "TT"};

struct GemmCase : OutputCase {
  int64_t m = 1, n = 1, k = 1;
  std::string op = "NN";  ///< op_a, op_b
  int64_t batch = 1;
  bool shared_a = false, shared_b = false;  ///< one matrix for all items
  bool pointers = false;                    ///< mp_gemm_batched
  bool in_place = false;                    ///< D is C
  int64_t pad = 0;                          ///< ld is at least the row length + pad ...
  int64_t multiple = 8;                     ///< ... rounded up to a multiple of this
  /// "ad2": A and D of batch item 2 lie one element further; with pointers, or in a group.
  std::string stray;
};

/// Elements from row to row of a matrix of `cols` columns.
inline int64_t leading_dimension(const GemmCase &c, int64_t cols) {
  return (cols + c.pad + c.multiple - 1) / c.multiple * c.multiple;
}

/// A dense product with what every descriptor takes from the case.  `kernel`, "" for the library's choice,
/// must live as long.
mp_gemm_desc_t descriptor(const GemmCase &c, int64_t m, int64_t n, int64_t k,
                          const std::string &kernel);

/// Whatever differs from a default GemmCase.
std::string to_string(const GemmCase &c);
GemmCase parse_gemm_case(const std::string &line);

}  // namespace mptest
