#include "softgpu/tests/recorded.h"

#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <sstream>

#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

constexpr size_t kThreads = 1024, kCount = 8192, kWords = 5;  // words of a thread: lanes, operands

const std::map<std::string, std::string> kNames = {{"INT", "<u16/s16/u32/s32/u64/s64>"},
                                                   {"ALL", "<u8/s8/u16/s16/u32/s32/u64/s64>"},
                                                   {"ROUND", "<rn/rz/rm/rp>"}};

/// Replaces each "<u/v>" by its alternatives.
std::vector<std::string> alternatives(std::string text) {
  for (const auto &[name, list] : kNames)
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, name.size(), list);
  const size_t begin = text.find('<');
  if (begin == std::string::npos) return {text};
  const size_t end = text.find('>', begin);
  std::vector<std::string> all;
  std::istringstream list(text.substr(begin + 1, end - begin - 1) + "/");
  for (std::string one; std::getline(list, one, '/');)
    for (std::string &rest : alternatives(text.substr(0, begin) + one + text.substr(end + 1)))
      all.push_back(std::move(rest));
  return all;
}

int bytes_of(char kind) {
  return kind == '8' || kind == 'd' ? 8 : kind == '2' || kind == 'h' ? 2 : kind == 'p' ? 1 : 4;
}
/// Returns the kind of a PTX type: '4' for u32 and u8, 'h' for bf16, 'x' for f16x2.
char kind_of(const std::string &type) {
  if (type.ends_with("f16x2")) return 'x';
  if (type.ends_with("f16")) return 'h';
  if (type.starts_with("f")) return type == "f32" ? 'f' : 'd';
  return type.ends_with("64") ? '8' : type.ends_with("16") ? '2' : '4';
}
/// Replaces the letters of a signature that depend on the opcode.
std::string kinds_of(std::string signature, const std::string &opcode) {
  std::vector<std::string> parts;
  std::istringstream text(opcode.substr(0, opcode.find('|')));
  for (std::string part; std::getline(text, part, '.');) parts.push_back(part);
  for (char &kind : signature) {
    const char last = kind_of(parts.back());
    if (kind == '*') kind = last;
    if (kind == '#') kind = kind_of(parts.at(parts.size() - 2));
    if (kind == 'w') kind = last == '2' ? '4' : '8';
  }
  return signature;
}

uint64_t mask_of(int bytes) {
  return bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * bytes) - 1;
}

/// Integers at which formats and instructions change behavior.
std::vector<uint64_t> special_integers(int bits) {
  std::vector<uint64_t> values;
  const uint64_t top = uint64_t{1} << (bits - 1);
  for (uint64_t x : {0, 1, 2, 3, 7, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x5555})
    for (uint64_t y : {x, ~x, x << (bits - 1), top + x, top - x}) values.push_back(y);
  return values;
}
/// Numbers of a format with these exponent and fraction bits.
std::vector<uint64_t> special_floats(int exponent, int fraction) {
  const uint64_t step = uint64_t{1} << fraction, sign = uint64_t{1} << (exponent + fraction);
  const uint64_t infinity = ((uint64_t{1} << exponent) - 1) << fraction;
  const uint64_t one = ((uint64_t{1} << (exponent - 1)) - 1) << fraction;
  // Numbers at distances from zero, infinity and one.
  const uint64_t unit = 1, half = step / 2;
  const std::pair<uint64_t, std::vector<uint64_t>> groups[] = {
      {0, {0, unit, 2, half, step - 1, step, step + 1}},
      {infinity, {-step, -unit, 0, unit, half, step - 1}},
      {one, {-step, -unit, 0, unit, half, step, 7 * step + 1}}};
  std::vector<uint64_t> values;
  for (const auto &[base, distances] : groups)
    for (const uint64_t distance : distances)
      for (uint64_t y : {base + distance, (base + distance) | sign}) values.push_back(y);
  return values;
}
std::vector<uint64_t> special_values(char kind) {
  if (kind == 'd') return special_floats(11, 52);
  if (kind == 'f') return special_floats(8, 23);
  if (kind != 'h') return special_integers(8 * bytes_of(kind));
  std::vector<uint64_t> values = special_floats(5, 10), bf16 = special_floats(8, 7);
  values.insert(values.end(), bf16.begin(), bf16.end());
  return values;
}

/// Returns numbers of all magnitudes.  Half of the floats are near 1, so that sums do not absorb
/// one of the operands; half are at or next to the midpoint of two numbers of a shorter format.
uint64_t random_value(std::mt19937_64 &random, char kind) {
  uint64_t x = random();
  if (kind != 'h' && kind != 'f' && kind != 'd') return x >> (random() % 64);
  const int unused = kind == 'd' ? 0 : kind == 'f' ? 32 : 48;
  const int fraction = kind == 'd' ? 52 : 23, exponent = kind == 'd' ? 11 : 8;
  x >>= unused;
  if (kind != 'h' && random() % 2) {
    constexpr int kShorter[] = {7, 10, 23};  // fraction bits of bf16, fp16, fp32
    const int dropped = fraction - kShorter[random() % (kind == 'd' ? 3 : 2)];
    x = (x >> dropped << dropped | uint64_t{1} << (dropped - 1)) + random() % 3 - 1;
  }
  if (kind == 'h' || random() % 2) return x;
  const uint64_t bias = (uint64_t{1} << (exponent - 1)) - 1, keep = (uint64_t{1} << fraction) - 1;
  return (x & (keep | uint64_t{1} << (fraction + exponent))) | (bias + x % 20 - 10) << fraction;
}

/// Selects full warps, single lanes and random sets.
bool executes(size_t thread) {
  const size_t warp = thread / 32, lane = thread % 32;
  if (warp % 4 == 0) return true;
  if (warp % 4 == 1) return lane == warp / 4 % 32;
  return (0x9E3779B9u * static_cast<uint32_t>(warp) >> lane & 1) != 0;
}

std::string kernel_text(const std::string &kinds, const std::string &text) {
  constexpr const char *kOperands[] = {"%d", "%a", "%b", "%c", "%e"};
  const bool is_opcode = text.find(';') == std::string::npos;
  std::string body = R"(
    .reg .pred %executes, %q<4>; .reg .b16 %h<4>; .reg .b32 %lane, %word, %w<24>; .reg .f32 %f<4>;
    .reg .b64 %at, %l<8>; .local .align 4 .b8 depot[4]; .shared .align 8 .b8 tile[256];
    mov.u32 %lane, %laneid; mad.wide.u32 %at, %t, 40, %p1;
    ld.global.b32 %word, [%at]; setp.ne.b32 %executes, %word, 0;
  )";
  std::string statement =
      "@%executes " + text.substr(0, text.find('|')) + (kinds.empty() ? "" : " %d");
  for (size_t k = 0; k < kinds.size(); k++) {
    const std::string name = kOperands[k], from = ", [%at+" + std::to_string(8 * k) + "];\n";
    const std::string type = ".b" + std::to_string(8 * bytes_of(kinds[k]));
    if (k > 0) statement += ", " + name;
    if (kinds[k] == 'p')
      body += ".reg .pred " + name + ";\nld.global.b32 %word" + from + "setp." +
              (k == 0 ? "eq" : "ne") + ".b32 " + name + ", %word, " + (k == 0 ? "%word" : "0") +
              ";\n";
    else
      body += ".reg " + type + " " + name + ";\n" +
              (k == 0 ? "mov" + type + " %d, 0x5A5A;\n" : "ld.global" + type + " " + name + from);
  }
  if (const size_t rest = text.find('|'); rest != std::string::npos)
    statement += ", " + text.substr(rest + 1);
  body += is_opcode ? statement + ";\n" : text;
  body += "\nmad.wide.u32 %at, %t, 8, %p0;\n";
  if (kinds[0] == 'p')
    return body_text(2, body + "selp.b32 %word, 1, 0, %d; st.global.b32 [%at], %word;");
  return body_text(2,
                   body + "st.global.b" + std::to_string(8 * bytes_of(kinds[0])) + " [%at], %d;");
}

}  // namespace

std::vector<uint64_t> operands_of(char kind, uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> values(count);
  const std::vector<uint64_t> special = special_values(kind == 'x' ? 'h' : kind);
  const auto next = [&](char of) {
    const uint64_t x = random() % 2 ? special[random() % special.size()] : random_value(random, of);
    return x & mask_of(bytes_of(of));
  };
  for (uint64_t &x : values)
    x = kind == 'x' ? next('h') << 16 | next('h') : kind == 'p' ? random() % 2 : next(kind);
  return values;
}

std::vector<uint64_t> run_recorded(const std::string &signature, const std::string &text) {
  const std::string kinds = kinds_of(signature, text);
  const Kernel kernel(kernel_text(kinds, text));
  // An operand of 16 bits takes all values.
  const bool takes_all = kinds.size() == 2 && kinds[1] == 'h';
  std::vector<std::vector<uint64_t>> operands;
  for (size_t k = 1; k < kinds.size(); k++) operands.push_back(operands_of(kinds[k], k, kCount));
  std::vector<uint64_t> results;
  for (size_t begin = 0; begin < (takes_all ? 65536 : kCount); begin += kThreads) {
    Buffer<uint64_t> out(kThreads);
    AlignedBuffer<uint64_t> in(kWords * kThreads);
    for (size_t i = 0; i < kThreads; i++) {
      in[kWords * i] = executes(i);
      for (size_t k = 0; k < operands.size(); k++)
        in[kWords * i + k + 1] = takes_all ? begin + i : operands[k][begin + i];
    }
    const Outcome outcome = kernel({.threads = {kThreads, 1, 1}}, out, in.address());
    INFO(text << ": " << outcome);
    REQUIRE(outcome.is_clean());
    results.insert(results.end(), out.values().begin(), out.values().end());
  }
  if (kinds[0] == 'd')
    for (uint64_t &x : results)
      if (std::isnan(std::bit_cast<double>(x))) x = ~uint64_t{0};
  return results;
}

void check_recorded(std::span<const Recorded> rows, const std::string &before,
                    const std::string &after) {
  for (const Recorded &row : rows) {
    uint32_t all = 0;
    std::ostringstream parts;
    for (const std::string &text : alternatives(row.text)) {
      uint32_t hash = 2166136261;  // FNV-1a, by words
      for (uint64_t x : run_recorded(row.signature, before + text + after))
        hash = ((hash ^ static_cast<uint32_t>(x)) * 16777619 ^ static_cast<uint32_t>(x >> 32)) *
               16777619;
      parts << "\n  " << std::hex << hash << "  " << text;
      all = all * 31 + hash;
    }
    INFO(row.text << ": the hash is 0x" << std::hex << all << "; by statement:" << parts.str());
    CHECK(all == row.hash);
  }
}

}  // namespace softgpu::test
