// A GEMM call as plain data that is printed as one line, "m=129 n=64 k=72 op=TN ab=fp16 ...", and
// parsed from it: MP_REPRO="<the line>" mptests "[repro]" reruns the case.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/case_text.h"

namespace mptest {

struct GemmCase : OutputCase {
  int64_t m = 1, n = 1, k = 1;
  std::string op = "NN";  ///< op_a, op_b
  int64_t batch = 1;
  bool shared_a = false, shared_b = false;  ///< one matrix for all batch items
  bool pointers = false;                    ///< mp_gemm_batched
  bool in_place = false;                    ///< D is C
  int64_t pad = 0;                          ///< ld is at least the row length + pad ...
  int64_t multiple = 8;                     ///< ... rounded up to a multiple of this
  /// "ad2": A and D of batch item 2 are offset by one element; requires pointers or a group.
  std::string stray;
};

/// Returns the elements between starts of rows of `cols` columns.
inline int64_t leading_dimension(const GemmCase &c, int64_t cols) {
  return (cols + c.pad + c.multiple - 1) / c.multiple * c.multiple;
}

/// Returns the descriptor of a dense product with the options of the case.  `kernel`, "" for the
/// library's choice, must outlive the descriptor.
mp_gemm_desc_t descriptor(const GemmCase &c, int64_t m, int64_t n, int64_t k,
                          const std::string &kernel);

// ---------------------------------------------------------------------------- text

constexpr size_t kAlwaysPrinted = 6;  ///< m n k op ab cd

/// Calls visit(name, field) for all fields, in the order in which they are printed.
template <class Case, class Visit>
void each_gemm_field(Case &c, Visit visit) {
  visit("m", c.m);
  visit("n", c.n);
  visit("k", c.k);
  visit("op", c.op);
  visit("ab", c.ab);
  visit("cd", c.cd);
  visit("alpha", c.alpha);
  visit("beta", c.beta);
  visit("batch", c.batch);
  visit("shared_a", c.shared_a);
  visit("shared_b", c.shared_b);
  visit("pointers", c.pointers);
  visit("in_place", c.in_place);
  visit("pad", c.pad);
  visit("multiple", c.multiple);
  visit("offset", c.offset);
  visit("stray", c.stray);
  visit("fill", c.fill);
  visit("special", c.special);
  visit("place", c.place);
  each_epilogue_field(c, visit);
  visit("seed", c.seed);
  visit("kernel", c.kernel);
}

/// Prints the fields that differ from a default GemmCase.
std::string to_string(const GemmCase &c);
GemmCase gemm_case(const std::string &line);
/// Returns the cases of a line with alternatives (case_text.h).
std::vector<GemmCase> gemm_cases(const std::string &line);

}  // namespace mptest
