#include "softgpu/tests/arithmetic_check.h"

#include <algorithm>
#include <array>
#include <random>

#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

constexpr size_t kThreads = 1024, kStride = 8;

const char *const kNames[] = {"%a", "%b", "%c", "%e"};

std::string bits_type(int bits) {
  return ".b" + std::to_string(bits);
}

/// Loads the thread's operand from a buffer.
std::string load(const std::string &name, int bits, size_t buffer) {
  const std::string address = "add.u64 %at, %p" + std::to_string(buffer) + ", %offset;\n";
  if (bits == 1)
    return ".reg .pred " + name + ";\n" + address + "ld.global.b32 %word, [%at];\n" +
           "setp.ne.b32 " + name + ", %word, 0;\n";
  return ".reg " + bits_type(bits) + " " + name + ";\n" + address + "ld.global" + bits_type(bits) +
         " " + name + ", [%at];\n";
}
std::string store(int bits) {
  const std::string address = "add.u64 %at, %p0, %offset;\n";
  if (bits == 1) return address + "selp.b32 %word, 1, 0, %d;\nst.global.b32 [%at], %word;\n";
  return address + "st.global" + bits_type(bits) + " [%at], %d;\n";
}

/// Buffers: p0 for results, p1 for the executing lanes, p2 and up for operands.
std::string kernel_text(const std::string &opcode, const std::string &rest, int result_bits,
                        const std::vector<int> &operand_bits) {
  std::string body =
      ".reg .b32 %word;\n.reg .b64 %at, %offset;\n.reg .pred %executes;\n"
      "mul.wide.u32 %offset, %t, 8;\n"
      "add.u64 %at, %p1, %offset;\nld.global.b32 %word, [%at];\nsetp.ne.b32 %executes, %word, 0;\n";
  body += load("%d", result_bits, 0);
  std::string statement = "@%executes " + opcode + " %d";
  for (size_t k = 0; k < operand_bits.size(); k++) {
    body += load(kNames[k], operand_bits[k], 2 + k);
    statement += std::string(", ") + kNames[k];
  }
  return body_text(2 + operand_bits.size(), body + statement + rest + ";\n" + store(result_bits));
}

uint64_t mask_of(int bits) {
  return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

/// Integers at which formats and instructions change behavior.
std::vector<uint64_t> special_integers(int bits) {
  std::vector<uint64_t> values;
  for (uint64_t x : {0, 1, 2, 3, 7, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x5555})
    for (uint64_t y :
         {x, ~x, x << (bits - 1), (uint64_t{1} << (bits - 1)) + x, (uint64_t{1} << (bits - 1)) - x})
      values.push_back(y);
  return values;
}
/// Numbers of a format with `fraction` fraction bits and `exponent` exponent bits.
std::vector<uint64_t> special_floats(int exponent, int fraction) {
  const uint64_t one_exponent = uint64_t{1} << fraction;
  const uint64_t infinity = ((uint64_t{1} << exponent) - 1) << fraction;
  const uint64_t one = ((uint64_t{1} << (exponent - 1)) - 1) << fraction;
  const uint64_t sign = uint64_t{1} << (exponent + fraction);
  std::vector<uint64_t> values;
  for (uint64_t x : {uint64_t{0},
                     uint64_t{1},
                     uint64_t{2},
                     one_exponent / 2,
                     one_exponent - 1,
                     one_exponent,
                     one_exponent + 1,
                     infinity - 1,
                     infinity,
                     infinity + 1,
                     infinity + one_exponent / 2,
                     infinity + one_exponent - 1,
                     one,
                     one - 1,
                     one + 1,
                     one + one_exponent,
                     one - one_exponent,
                     one + one_exponent / 2,
                     one + 7 * one_exponent + 1,
                     infinity - one_exponent})
    for (uint64_t y : {x, x | sign}) values.push_back(y);
  return values;
}
std::vector<uint64_t> special_values(int bits, bool is_float) {
  if (!is_float) return special_integers(bits);
  if (bits == 64) return special_floats(11, 52);
  std::vector<uint64_t> values = bits == 32 ? special_floats(8, 23) : special_floats(5, 10);
  if (bits == 16) {  // fp16 or bf16
    const auto more = special_floats(8, 7);
    values.insert(values.end(), more.begin(), more.end());
  }
  return values;
}

/// Returns numbers of all magnitudes; every other float is near 1, so that sums do not absorb one
/// of the operands.
uint64_t random_value(std::mt19937_64 &random, int bits, bool is_float) {
  const uint64_t x = random();
  if (!is_float) return x >> (random() % 64);
  if (random() % 2) return x;
  if (bits == 64)
    return std::bit_cast<uint64_t>(std::ldexp(1.0 + 0x1p-52 * (x >> 12), x % 20 - 10.0));
  const float near =
      std::ldexp(1.0f + 0x1p-23f * static_cast<float>(x >> 41), static_cast<int>(x % 20) - 10);
  const uint32_t near_bits = std::bit_cast<uint32_t>(x & 1024 ? -near : near);
  return bits == 32 ? near_bits : near_bits >> 16;
}

/// Selects full warps, single lanes and random sets.
bool executes(size_t thread) {
  const size_t warp = thread / 32, lane = thread % 32;
  if (warp % 4 == 0) return true;
  if (warp % 4 == 1) return lane == warp / 4 % 32;
  return (0x9E3779B9u * static_cast<uint32_t>(warp) >> lane & 1) != 0;
}

}  // namespace

uint64_t untouched(int bits) {
  return bits == 1 ? 1 : 0x5A5A5A5A5A5A5A5A & mask_of(bits);
}

std::vector<uint64_t> values_of(int bits, bool is_float, uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> values(count);
  if (bits == 1) {
    for (uint64_t &x : values) x = random() % 2;
    return values;
  }
  const std::vector<uint64_t> special = special_values(bits, is_float);
  for (uint64_t &x : values) {
    x = random() % 2 ? special[random() % special.size()] : random_value(random, bits, is_float);
    x &= mask_of(bits);
  }
  return values;
}

Run run_instruction(const std::string &opcode, const std::string &rest, int result_bits,
                    const std::vector<int> &operand_bits,
                    const std::vector<std::vector<uint64_t>> &operands) {
  INFO(opcode << rest);
  const Kernel kernel(kernel_text(opcode, rest, result_bits, operand_bits));
  Run run;
  const size_t count = operands[0].size();
  for (size_t begin = 0; begin < count; begin += kThreads) {
    Buffer<uint64_t> results(kThreads, untouched(result_bits)), lanes(kThreads);
    std::array<std::unique_ptr<Buffer<uint64_t>>, 4> inputs;
    for (size_t k = 0; k < operands.size(); k++) {
      inputs[k] = std::make_unique<Buffer<uint64_t>>(kThreads);
      for (size_t i = 0; i < kThreads && begin + i < count; i++)
        (*inputs[k])[i] = operands[k][begin + i];
    }
    for (size_t i = 0; i < kThreads; i++) lanes[i] = executes(i);
    const Shape shape{.threads = {kThreads, 1, 1}};
    const Outcome outcome = [&] {
      switch (operands.size()) {
        case 1:
          return kernel(shape, results, lanes, *inputs[0]);
        case 2:
          return kernel(shape, results, lanes, *inputs[0], *inputs[1]);
        case 3:
          return kernel(shape, results, lanes, *inputs[0], *inputs[1], *inputs[2]);
        default:
          return kernel(shape, results, lanes, *inputs[0], *inputs[1], *inputs[2], *inputs[3]);
      }
    }();
    CAPTURE(outcome);
    REQUIRE(outcome.is_clean());
    for (size_t i = 0; i < kThreads && begin + i < count; i++) {
      run.results.push_back(results[i] & mask_of(result_bits));
      run.executed.push_back(executes(i));
    }
  }
  return run;
}

void report_mismatch(const std::string &opcode, const std::vector<uint64_t> &operands,
                     uint64_t result, uint64_t expected) {
  std::string text = opcode + " of";
  const auto hex = [](uint64_t x) {
    char digits[32];
    std::snprintf(digits, sizeof(digits), " %#llx", static_cast<unsigned long long>(x));
    return std::string(digits);
  };
  for (uint64_t x : operands) text += hex(x);
  FAIL_CHECK(text + " is" + hex(result) + ", expected" + hex(expected));
}

void report_success() {
  SUCCEED();
}

}  // namespace softgpu::test
