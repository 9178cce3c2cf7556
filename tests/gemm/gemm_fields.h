// The fields of a GemmCase, in the order in which they are printed.
#pragma once

#include "gemm_case.h"
#include "tests/support/case_text.h"

namespace mptest {

constexpr size_t kAlwaysPrinted = 6;  ///< m n k op ab cd

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

}  // namespace mptest
