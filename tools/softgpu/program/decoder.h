// What the instruction set sees of a statement that it decodes.
//
// A kernel is decoded twice.  The first time the decoder notes which registers each statement reads
// and writes; then registers that are never alive together get the same row
// (program/registers.cpp), since the 8,000 registers of a large kernel would not fit into any
// cache; the second time the rows are real.
#pragma once

#include <string_view>
#include <vector>

#include "tools/softgpu/program/instruction.h"
#include "tools/softgpu/program/program.h"
#include "tools/softgpu/ptx/syntax.h"

namespace softgpu {

/// An address operand: a row, of 4 or 8 bytes a lane, and an offset.
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
  /// The i-th part of the opcode, "" behind the last.
  std::string_view part(size_t i) const;
  /// The last part: the type of most instructions.
  std::string_view type() const { return statement_->opcode.back(); }
  bool has(std::string_view modifier) const;

  /// The row of an operand that is read `width` bytes wide: 1 for a predicate, 4 for up to 32 bits,
  /// 8.  It is a register of just that width (Operand::width tells which it has), an immediate, a
  /// special register, or the address of a symbol.  An immediate fills all of the width: -1 in an
  /// instruction of 16 bits has its upper half set.  Negated it is unknown.
  virtual RegisterSlot read(const ptx::Operand &, int width) = 0;
  /// The row of a predicate that may be negated.
  RegisterSlot read_predicate(const ptx::Operand &, bool *is_negated);
  /// The row of an operand that is written; of `_` one that nothing reads.  No other register that
  /// the statement reads or writes has this row, so that results may be written before all operands
  /// are read.
  virtual RegisterSlot write(const ptx::Operand &, int width) = 0;
  /// The same of `%r|%p`, whose second part is a predicate and may be missing.
  RegisterSlot write_pair(const ptx::Operand &, int width, bool *has_second, RegisterSlot *second);
  virtual Address address(const ptx::Operand &) = 0;
  /// Registers that an asynchronous instruction reads and writes until the next wait: keeps them
  /// alive till there.  Their rows are asked for besides.
  virtual void hold(const ptx::Operand &) = 0;
  /// This instruction is such a wait: wgmma.wait_group.
  virtual void release_held() = 0;
  /// Appends to Program::lists; returns where.
  virtual uint32_t list(const std::vector<RegisterSlot> &) = 0;
  /// The condition code of add.cc, addc and so on: a predicate.
  virtual RegisterSlot carry() = 0;
  /// The index in Program::code of a label, and where the table of a brx.idx begins in
  /// Program::branch_targets.
  virtual uint32_t label(const ptx::Operand &) = 0;
  virtual uint32_t branch_table(const ptx::Operand &, uint32_t *size) = 0;
  /// True of a variable in the thread's local memory, such as the parameter of a call.
  virtual bool is_local(std::string_view symbol) const = 0;
  virtual Program &program() = 0;

  /// Throws ptx::Error: "FILE.ptx:120: WHAT: the statement".
  [[noreturn]] void unknown(const std::string &what) const;

 protected:
  const ptx::Statement *statement_ = nullptr;
  const Program *for_messages_ = nullptr;
};

/// Decodes a statement of a part of the instruction set into the instruction; false if it is not of
/// this part.
using Decode = bool (*)(Decoder &, Instruction &);
bool decode_arithmetic(Decoder &, Instruction &);  // isa/arithmetic.cpp: integer, float, half
bool decode_move(Decoder &, Instruction &);        // isa/move.cpp: mov, cvt, cvta, selp, predicates
bool decode_memory(Decoder &, Instruction &);      // isa/memory.cpp: ld, st, atom, cp.async, fences
bool decode_control(Decoder &, Instruction &);     // isa/control.cpp: branches, barriers, exchange
bool decode_tensor(Decoder &,
                   Instruction &);  // isa/tensor.cpp: wmma, mma, ldmatrix, stmatrix, wgmma
bool decode_async(Decoder &, Instruction &);  // isa/async.cpp: mbarrier, TMA, tensor maps

}  // namespace softgpu
