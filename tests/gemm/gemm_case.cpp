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

// ---------------------------------------------------------------------------- text

std::ostream &operator<<(std::ostream &out, const GroupItem &item) {
  out << item.m << 'x' << item.n << 'x' << item.k;
  if (item.pad != 0) out << '+' << item.pad;
  if (!item.stray.empty()) out << '@' << item.stray;
  return out << (item.infinite ? "!" : "");
}

std::istream &operator>>(std::istream &in, GroupItem &item) {
  char cross[2] = {}, mark = 0;
  in >> item.m >> cross[0] >> item.n >> cross[1] >> item.k;
  if (cross[0] != 'x' || cross[1] != 'x') in.setstate(std::ios::failbit);
  if (!in) return in;
  while (in >> mark) {
    if (mark == '+')
      in >> item.pad;
    else if (mark == '!')
      item.infinite = true;
    else if (mark != '@')
      item.stray += mark;
  }
  in.clear();
  return in;
}

namespace {

constexpr size_t kAlwaysPrinted = 6;  // m n k op ab cd

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
  visit("items", c.items);
  visit("ragged", c.ragged);
  visit("infinite", c.infinite);
  visit("ends", c.ends);
};

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

std::string repro_of(GemmCase c, const std::string &kernel) {
  c.kernel = kernel;
  return "MP_REPRO=\"" + to_string(c) + "\" mptests \"[repro]\"";
}

}  // namespace mptest
