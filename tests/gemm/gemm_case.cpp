// Descriptor and text of a GemmCase.
#include "gemm_fields.h"
#include "tests/support/named_plan.h"

namespace mptest {

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
  return to_line(c, kAlwaysPrinted, [](auto &of, auto visit) { each_gemm_field(of, visit); });
}

GemmCase parse_gemm_case(const std::string &line) {
  return parse_line<GemmCase>(line, [](auto &of, auto visit) { each_gemm_field(of, visit); });
}

}  // namespace mptest
