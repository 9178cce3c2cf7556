// Interface between the decoder of a kernel and the instruction set.
//
// A kernel is decoded twice.  The first pass records the registers that each statement reads and
// writes.  Registers that are never live at the same time then get a common slot (registers.cpp),
// because the 8,000 registers of a large kernel would exceed any cache.  The second pass uses the
// final slots.
#pragma once

#include <string_view>
#include <vector>

#include "softgpu/program/instruction.h"
#include "softgpu/program/program.h"
#include "softgpu/ptx/syntax.h"

namespace softgpu {

/// Address operand: a register slot, with 4 or 8 bytes per lane, and an offset.
struct Address {
  int64_t offset;
  RegisterSlot base;
  uint8_t width;
};

class Decoder {
 public:
  virtual ~Decoder() = default;

  const ptx::Statement &statement() const { return *statement_; }
  const std::vector<ptx::Operand> &operands() const { return statement_->operands; }
  std::string_view opcode() const { return statement_->opcode[0]; }
  /// Returns the i-th part of the opcode, or "" if there are fewer parts.
  std::string_view part(size_t i) const;
  /// Returns the last part, which is the type in most instructions.
  std::string_view type() const { return statement_->opcode.back(); }
  bool has(std::string_view modifier) const;

  /// Returns the slot of a source operand with the given width: 1 for a predicate, 4 for up to 32
  /// bits, 8 for 64 bits.  The operand is a register of exactly this width (Operand::width), an
  /// immediate, a special register, or the address of a symbol.  Immediates are extended to the
  /// full width: the upper half of -1 is set even in 16-bit instructions.  Negated operands are
  /// unsupported.
  virtual RegisterSlot read(const ptx::Operand &, int width) = 0;
  PredicateOperand read_predicate(const ptx::Operand &);
  /// Returns the slot of a destination operand; for `_`, an unused slot.  No other operand of the
  /// statement has this slot, so results may be written before all sources are read.
  virtual RegisterSlot write(const ptx::Operand &, int width) = 0;
  /// Returns the slot of the first part of `%r|%p`.  The second part is an optional predicate.
  RegisterSlot write_pair(const ptx::Operand &, int width, bool *has_second, RegisterSlot *second);
  virtual Address address(const ptx::Operand &) = 0;
  /// Keeps the registers of an asynchronous instruction live until the next wait.  The handler
  /// requests their slots separately.
  virtual void hold(const ptx::Operand &) = 0;
  /// Marks this instruction as such a wait: wgmma.wait_group.
  virtual void release_held() = 0;
  /// Appends to Program::lists and returns the position.
  virtual uint32_t list(const std::vector<RegisterSlot> &) = 0;
  /// Returns the slot of the condition code of add.cc, addc and so on: a predicate.
  virtual RegisterSlot carry() = 0;
  /// Returns the index of a label in Program::code; branch_table() returns the start of a brx.idx
  /// table in Program::branch_targets.
  virtual uint32_t label(const ptx::Operand &) = 0;
  virtual uint32_t branch_table(const ptx::Operand &, uint32_t *size) = 0;
  /// Returns whether a variable is in local memory, such as the parameter of a call.
  virtual bool is_local(std::string_view symbol) const = 0;
  virtual Program &program() = 0;

  /// Throws ptx::Error: "FILE.ptx:120: WHAT: the statement".
  [[noreturn]] void unknown(const std::string &what) const;

 protected:
  const ptx::Statement *statement_ = nullptr;
  const Program *for_messages_ = nullptr;
};

/// Decodes a statement into the instruction (isa/decode.cpp).
void decode(Decoder &, Instruction &);

}  // namespace softgpu
