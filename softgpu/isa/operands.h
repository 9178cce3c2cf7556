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

/// Throws if the opcode has another part.
inline void allow_parts(const Decoder &d, std::initializer_list<std::string_view> known) {
  for (size_t i = 1; i < d.statement().opcode.size(); i++)
    if (std::find(known.begin(), known.end(), d.part(i)) == known.end())
      d.unknown("modifier ." + std::string(d.part(i)));
}

/// Throws unless the opcode has exactly these parts.
inline void need_parts(const Decoder &d, std::initializer_list<std::string_view> parts) {
  allow_parts(d, parts);
  for (std::string_view part : parts)
    if (!d.has(part)) d.unknown("form without ." + std::string(part));
}

/// Throws unless the statement has `least` to `most` operands.
inline void need_operands(const Decoder &d, size_t least, size_t most) {
  if (d.operands().size() < least || d.operands().size() > most) d.unknown("number of operands");
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
