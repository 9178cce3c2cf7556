// The fields of a GemmCase.
#include "gemm_case.h"

#include "tests/support/case_text.h"
#include "tests/support/named_plan.h"

namespace mptest {

namespace {

constexpr size_t kAlwaysTold = 6;  // m n k op ab cd

constexpr auto kEachField = [](auto &c, auto visit) {
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
};

}  // namespace

mp_gemm_desc_t descriptor(const GemmCase &c, int64_t m, int64_t n, int64_t k,
                          const std::string &kernel) {
  mp_gemm_desc_t desc = mp_gemm_desc_default(m, n, k, c.ab, c.cd);
  desc.op_a = c.op[0] == 'N' ? MP_OP_N : MP_OP_T;
  desc.op_b = c.op[1] == 'N' ? MP_OP_N : MP_OP_T;
  desc.alpha = c.alpha;
  desc.beta = c.beta;
  desc.plan = named_plan(kernel.empty() ? nullptr : kernel.c_str());
  return desc;
}

std::string to_string(const GemmCase &c) {
  return to_line(c, kAlwaysTold, kEachField);
}

GemmCase parse_gemm_case(const std::string &line) {
  return parse_line<GemmCase>(line, kEachField);
}

}  // namespace mptest
