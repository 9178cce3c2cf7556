// Runs one instruction on many values, in full and partial warps, and compares the results with a
// C++ function.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace softgpu::test {

/// Bits of an fp16 or bf16 register.
using Bits16 = uint16_t;

/// Bits of the PTX register that holds a value; 1 for a predicate.
template <class T>
constexpr int kRegisterBits = std::is_same_v<T, bool> ? 1 : 8 * sizeof(T);

/// Runs "OPCODE result, operand, operand ..., rest" for each row of operands.  Each warp executes
/// with a different set of lanes.  In other lanes the result keeps its previous value, 0x5A5A...
struct Run {
  std::vector<uint64_t> results;
  std::vector<bool> executed;
};
Run run_instruction(const std::string &opcode, const std::string &rest, int result_bits,
                    const std::vector<int> &operand_bits,
                    const std::vector<std::vector<uint64_t>> &operands);
uint64_t untouched(int bits);

/// Returns special and random register values as bits.
/// @param is_float  numbers of all magnitudes, infinities and NaN
std::vector<uint64_t> values_of(int bits, bool is_float, uint64_t seed, size_t count);

template <class T>
uint64_t to_bits(T value) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<uint32_t>(value);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(value);
  else if constexpr (std::is_same_v<T, bool>)
    return value;
  else
    return static_cast<std::make_unsigned_t<T>>(value);
}
template <class T>
T from_bits(uint64_t bits) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(bits);
  else
    return static_cast<T>(bits);
}

/// Expected result as bits; any fp32 NaN is the canonical NaN.
template <class T>
uint64_t expected_bits(T value) {
  if constexpr (std::is_same_v<T, float>)
    if (value != value) return 0x7FFFFFFF;
  return to_bits(value);
}
/// fp64 NaNs may have any bits.
template <class R>
bool agrees(uint64_t result, uint64_t expected) {
  if constexpr (std::is_same_v<R, double>)
    if (std::isnan(from_bits<double>(expected))) return std::isnan(from_bits<double>(result));
  return result == expected;
}

/// Fails the test and prints the operands and both results.
void report_mismatch(const std::string &opcode, const std::vector<uint64_t> &operands,
                     uint64_t result, uint64_t expected);
void report_success();

/// Checks an instruction against a function of its operands.  `small` operands are often below 70,
/// like shift counts.
template <class R, class... A, class F, size_t... k>
void check_on(const std::string &opcode, const std::string &rest, F &&function,
              const std::vector<std::vector<uint64_t>> &operands, std::index_sequence<k...>) {
  const Run run = run_instruction(opcode, rest, kRegisterBits<R>, {kRegisterBits<A>...}, operands);
  for (size_t i = 0; i < run.results.size(); i++) {
    const uint64_t expected = run.executed[i]
                                  ? expected_bits<R>(function(from_bits<A>(operands[k][i])...))
                                  : untouched(kRegisterBits<R>);
    if (agrees<R>(run.results[i], expected)) continue;
    std::vector<uint64_t> row;
    for (const auto &column : operands) row.push_back(column[i]);
    return report_mismatch(opcode + (run.executed[i] ? "" : " (lane left out)"), row,
                           run.results[i], expected);
  }
  report_success();
}

template <class R, class... A, class F>
void check(const std::string &opcode, F &&function, const std::string &rest = "",
           bool holds_halves = false) {
  constexpr size_t kCount = 8192;
  std::vector<std::vector<uint64_t>> operands;
  ((operands.push_back(values_of(kRegisterBits<A>, std::is_floating_point_v<A> || holds_halves,
                                 operands.size() + 1, kCount))),
   ...);
  check_on<R, A...>(opcode, rest, function, operands, std::index_sequence_for<A...>());
}

/// Checks an instruction with 16-bit operands that contain fp16 or bf16.
template <class R, class... A, class F>
void check_of_halves(const std::string &opcode, F &&function) {
  check<R, A...>(opcode, function, "", true);
}

// Helpers that the tests share.

/// PTX name of a type: "u16", "f32" or "b16".
template <class T>
std::string name() {
  const char *letter = std::is_floating_point_v<T> ? "f" : std::is_signed_v<T> ? "s" : "u";
  return letter + std::to_string(8 * sizeof(T));
}
template <class T>
std::string typeless() {
  return "b" + std::to_string(8 * sizeof(T));
}

/// Reference functions for .ftz and .sat.
inline float flush(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}
template <class T>
T saturate(T x) {
  return x > 0 ? (x < 1 ? x : T{1}) : T{0};  // a NaN becomes 0
}

struct RoundingMode {
  const char *name;
  int mode;
};
constexpr RoundingMode kModes[] = {
    {".rn", FE_TONEAREST}, {".rz", FE_TOWARDZERO}, {".rm", FE_DOWNWARD}, {".rp", FE_UPWARD}};

/// Calls a function with a rounding mode; the compiler must not know the operands.
template <class F>
auto rounded(int mode, F &&function) {
  std::fesetround(mode);
  volatile auto result = function();
  std::fesetround(FE_TONEAREST);
  return +result;
}

}  // namespace softgpu::test
