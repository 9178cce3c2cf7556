#include "softgpu/program/kernel_counters.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace softgpu {

void KernelCounters::reset(size_t num_code) {
  executed.assign(num_code, 0);
  accesses.assign(num_code, {});
  touched.assign(num_code, {});
  num_instructions = num_launches = num_blocks = 0;
}

void KernelCounters::add(const KernelCounters &other, uint64_t factor) {
  executed.resize(std::max(executed.size(), other.executed.size()));
  accesses.resize(executed.size());
  for (size_t i = 0; i < other.executed.size(); i++) {
    if (other.executed[i] == 0 && other.accesses[i].incomplete == 0) continue;
    executed[i] += factor * other.executed[i];
    for (const AccessField &field : kAccessFields)
      accesses[i].*field.value += factor * other.accesses[i].*field.value;
  }
  num_instructions += factor * other.num_instructions;
  num_launches += factor * other.num_launches;
  num_blocks += factor * other.num_blocks;
}

namespace {

bool has(const Opcode &opcode, std::string_view part) {
  return std::find(opcode.begin(), opcode.end(), part) != opcode.end();
}

std::string_view part(const Opcode &opcode, size_t i) {
  return i < opcode.size() ? opcode[i] : std::string_view();
}

bool is_bulk(const Opcode &opcode) {
  return opcode[0] == "cp" && has(opcode, "bulk");
}

/// Returns the class of ld, st, atom, red and the loads and stores of wmma.
std::string_view class_of_space(const Opcode &opcode) {
  for (const std::string_view p : opcode) {
    if (p == "global" || p == "local") return p;
    if (p.starts_with("shared")) return "shared";
    if (p.starts_with("param")) return "param";
    if (p == "const") return "constant";
  }
  return "generic";
}

std::string_view class_of_type(const Opcode &opcode) {
  const std::string_view type = opcode.back();
  if (type == "f64") return "fp64";
  if (type == "f32" || type == "f32x2") return "fp32";
  if (type == "f16" || type == "f16x2" || type == "bf16" || type == "bf16x2") return "fp16";
  return type == "pred" ? "move" : "integer";
}

/// Opcodes whose variants all belong to one class, and those of arithmetic, whose class is that of
/// the type.
struct OpcodeClass {
  std::string_view name, opcodes;
};
constexpr OpcodeClass kClasses[] = {
    {"special", " cos ex2 lg2 rcp rsqrt sin sqrt tanh "},
    {"convert", " cvt "},
    {"move", " mov selp set setp cvta isspacep mapa getctarank "},
    {"control", " bra brx call ret exit trap "},
    {"barrier", " bar barrier mbarrier fence membar "},
    {"exchange", " shfl vote match redux elect activemask "},
    {"shared", " ldmatrix stmatrix "},
    {"mma", " mma "},
    {"tma", " tensormap "},
    {"integer", " bfe bfi bfind bmsk brev clz lop3 popc prmt sad shf "},
    {"",
     " abs add addc and copysign div fma mad madc max min mul neg not or rem shl shr sub subc "
     "xor "},
};

}  // namespace

std::string_view opcode_text(std::string_view statement) {
  constexpr std::string_view kSpace = " \t";
  size_t begin = statement.starts_with('@') ? statement.find_first_of(kSpace) : 0;
  begin = statement.find_first_not_of(kSpace, begin);
  if (begin == std::string_view::npos) return statement;
  return statement.substr(begin, statement.find_first_of(" \t;", begin) - begin);
}

Opcode opcode_parts(std::string_view text) {
  Opcode parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('.', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string_view class_of(const Opcode &opcode) {
  const std::string_view name = opcode[0];
  if (name == "ld" || name == "st" || name == "atom" || name == "red")
    return class_of_space(opcode);
  if (name == "wmma") return part(opcode, 1) == "mma" ? "mma" : class_of_space(opcode);
  if (name == "wgmma") return part(opcode, 1) == "mma_async" ? "wgmma" : "barrier";
  if (name == "cp") return is_bulk(opcode) ? "tma" : "async_copy";
  const std::string word = ' ' + std::string(name) + ' ';
  for (const OpcodeClass &known : kClasses)
    if (known.opcodes.find(word) != std::string_view::npos)
      return known.name.empty() ? class_of_type(opcode) : known.name;
  return "other";
}

std::string_view path_of(const Opcode &opcode) {
  const std::string_view name = opcode[0];
  if (is_bulk(opcode)) {
    if (has(opcode, "mbarrier::complete_tx::bytes")) return "tma_load";
    if (!has(opcode, "global")) return "";  // commit_group or wait_group
    return "tma_store";
  }
  if (name == "cp") return "cp_async";
  if (name == "ldmatrix" || name == "stmatrix") return name;
  if (name == "wmma" && part(opcode, 1) == "load") return "wmma_load";
  if (name == "wmma" && part(opcode, 1) == "store") return "wmma_store";
  if (name == "atom" || name == "red") return "atomic";
  if (name == "st") return "store";
  return name == "ld" ? "load" : "";
}

uint64_t tensor_flops(const Opcode &opcode) {
  const std::string_view kind = class_of(opcode);
  if (kind != "mma" && kind != "wgmma") return 0;
  for (const std::string_view p : opcode) {
    unsigned m = 0, n = 0, k = 0;
    if (std::sscanf(std::string(p).c_str(), "m%un%uk%u", &m, &n, &k) != 3) continue;
    return uint64_t{2} * m * n * k / (kind == "wgmma" ? 4 : 1);
  }
  return 0;
}

bool is_barrier(const Opcode &opcode) {
  return (opcode[0] == "bar" && part(opcode, 1) != "warp") || opcode[0] == "barrier";
}

bool is_mbarrier_wait(const Opcode &opcode) {
  return opcode[0] == "mbarrier" && part(opcode, 1).ends_with("_wait");
}

bool is_tensor_map_acquire(const Opcode &opcode) {
  return opcode[0] == "fence" && part(opcode, 2).starts_with("tensormap") &&
         part(opcode, 3) == "acquire";
}

bool is_bulk_wait(const Opcode &opcode) {
  return opcode[0] == "cp" && part(opcode, 2) == "bulk" && part(opcode, 3) == "wait_group";
}

bool waits_for_all(std::string_view statement) {
  const size_t number = statement.find_last_of(" \t") + 1;
  return statement.substr(number, statement.find(';') - number) == "0";
}

}  // namespace softgpu
