// Recorded results of instructions: each row of a table runs one text on fixed operands and
// compares a hash of the results.  The hashes were recorded when all results agreed with C++
// functions of the operands.  A failed row prints its hash, and one per statement, which can be
// compared with those of another build.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace softgpu::test {

/// Row of a table.
struct Recorded {
  /// Kinds of the result %d and of the operands %a, %b, %c and %e, one letter each: `p` predicate;
  /// 2, 4, 8 integer of these bytes; `h` 16-bit float, `x` pair of these, `f` fp32, `d` fp64 (of
  /// results, all NaNs are equal); `*` and `#` by the last and last but one type of the opcode; `w`
  /// integer of twice the last type.
  const char *signature;
  /// Opcode of "OPCODE %d, %a, ...", followed by other operands after `|`; or statements, with ';'.
  /// "<u/v>" stands for u and v in turn; "INT" and "ALL" for integer types, "ROUND" for rn, rz, rm
  /// and rp.
  const char *text;
  uint32_t hash;  ///< over all texts of the row
};

/// Runs a text in 1024 threads at a time.  Each warp executes a single opcode with a different set
/// of lanes; in other lanes %d keeps its previous value.  Statements may use the guard %executes,
/// the lane %lane, and the registers %q<4>, %h<4>, %w<24>, %f<4> and %l<8>.
/// @return results as 64-bit words
std::vector<uint64_t> run_recorded(const std::string &signature, const std::string &text);

/// Returns special and random operands of a kind as bits.
std::vector<uint64_t> operands_of(char kind, uint64_t seed, size_t count);

/// Compares each row, between `before` and `after`, with its hash.
void check_recorded(std::span<const Recorded> rows, const std::string &before = "",
                    const std::string &after = "");

}  // namespace softgpu::test
