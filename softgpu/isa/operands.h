// Shared decoders for tensor cores and asynchronous copies.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "softgpu/isa/lane_addresses.h"
#include "softgpu/machine/faults.h"

namespace softgpu {

/// Removes and returns the text before a separator, which is removed as well.
inline std::string_view take_until(std::string_view &text, char separator) {
  const std::string_view head = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), head.size() + 1));
  return head;
}

/// Throws unless the opcode has exactly the modifiers of a pattern, in any order, and the statement
/// has `least` to `most` operands.  "cta? sync|arrive" has two words: an optional .cta, and one of
/// .sync and .arrive.
inline void need_form(const Decoder &d, std::string_view pattern, size_t least, size_t most) {
  std::vector<std::string_view> parts(d.statement().opcode.begin() + 1, d.statement().opcode.end());
  while (!pattern.empty()) {
    std::string_view word = take_until(pattern, ' '), choice = word;
    if (choice.ends_with('?')) choice.remove_suffix(1);
    auto found = parts.end();
    while (!choice.empty() && found == parts.end())
      found = std::ranges::find(parts, take_until(choice, '|'));
    if (found != parts.end())
      parts.erase(found);
    else if (!word.ends_with('?'))
      d.unknown("form without ." + std::string(word));
  }
  if (!parts.empty()) d.unknown("modifier ." + std::string(parts[0]));
  if (d.operands().size() < least || d.operands().size() > most) d.unknown("number of operands");
}
inline void need_form(const Decoder &d, std::string_view pattern, size_t num_operands) {
  need_form(d, pattern, num_operands, num_operands);
}

/// Reads the operands from `first` on into slots of 4 bytes per lane.
inline void read_each(Decoder &d, size_t first, std::initializer_list<RegisterSlot *> slots) {
  for (RegisterSlot *slot : slots) *slot = d.read(d.operands().at(first++), 4);
}

/// Returns the registers of a vector operand, or a single register.
inline std::vector<ptx::Operand> registers_of(const ptx::Operand &operand) {
  if (operand.kind == ptx::OperandKind::kVector) return operand.items;
  return {operand};
}
inline std::vector<RegisterSlot> read_rows(Decoder &d, const ptx::Operand &operand) {
  std::vector<RegisterSlot> rows;
  for (const ptx::Operand &x : registers_of(operand)) rows.push_back(d.read(x, 4));
  return rows;
}
inline std::vector<RegisterSlot> write_rows(Decoder &d, const ptx::Operand &operand) {
  std::vector<RegisterSlot> rows;
  for (const ptx::Operand &x : registers_of(operand)) rows.push_back(d.write(x, 4));
  return rows;
}

/// Returns the value of an operand that must be a number.
inline int64_t constant_of(const Decoder &d, const ptx::Operand &operand) {
  if (operand.kind != ptx::OperandKind::kImmediate) d.unknown("operand that is not a constant");
  return static_cast<int64_t>(operand.bits);
}

inline const RegisterSlot *rows_at(const Warp &warp, uint32_t list) {
  return warp.program->lists.data() + list;
}

/// Returns the address that a lane passes.
inline uint64_t address_of(Warp &warp, const AddressOperand &address, int lane) {
  const auto offset = static_cast<uint64_t>(int64_t{address.offset});
  if (address.width == 8) return warp.row<uint64_t>(address.base)[lane] + offset;
  return warp.row<uint32_t>(address.base)[lane] + static_cast<uint32_t>(offset);
}
inline uint32_t shared_address_of(Warp &warp, const AddressOperand &address, int lane) {
  return static_cast<uint32_t>(address_of(warp, address, lane));
}

/// Returns whether all lanes of the warp are here.  Faults if some have exited: `what` requires all
/// 32.
inline bool has_whole_warp(Warp &warp, const Instruction &i, Lanes lanes, const char *what) {
  if (!warp.is_converged()) return false;
  if (lanes != kAllLanes) fault(warp, i, first_lane(~lanes), "%s without all lanes", what);
  return true;
}

}  // namespace softgpu
