// Descriptor and text of a GemmCase.
#include "gemm_case.h"
#include "tests/support/named_plan.h"

namespace mptest {

mp_gemm_desc_t descriptor(const GemmCase &c, int64_t m, int64_t n, int64_t k,
                          const std::string &kernel) {
  mp_gemm_desc_t desc = mp_gemm_desc_default(m, n, k, c.ab, c.cd);
  if (c.op.size() != 2 || c.op.find_first_not_of("NT") != std::string::npos)
    throw std::invalid_argument("op is not NN, NT, TN or TT: " + c.op);
  desc.op_a = c.op[0] == 'N' ? MP_OP_N : MP_OP_T;
  desc.op_b = c.op[1] == 'N' ? MP_OP_N : MP_OP_T;
  desc.alpha = c.alpha;
  desc.beta = c.beta;
  desc.plan = named_plan(kernel.empty() ? nullptr : kernel.c_str());
  return desc;
}

namespace {

constexpr auto kEachField = [](auto &c, auto visit) { each_gemm_field(c, visit); };

}  // namespace

std::string to_string(const GemmCase &c) {
  return to_line(c, kAlwaysPrinted, kEachField);
}

GemmCase gemm_case(const std::string &line) {
  return parse_line<GemmCase>(line, kEachField);
}

std::vector<GemmCase> gemm_cases(const std::string &line) {
  return parse_lines<GemmCase>(line, kEachField);
}

}  // namespace mptest
