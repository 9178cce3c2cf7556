// Operands: PTX ISA, chapter Instruction Operands.
#pragma once

#include "softgpu/ptx/reader.h"
#include "softgpu/ptx/scopes.h"
#include "softgpu/ptx/syntax.h"

namespace softgpu::ptx {

class OperandReader {
 public:
  OperandReader(Reader &reader, const Scopes &scopes, const Body &body)
      : reader_(reader), scopes_(scopes), body_(body) {}

  Operand read();
  /// Returns the operand for `%p`.  Fails if the name is not a register.
  Operand read_register();

 private:
  Operand read_one();
  Operand read_address();
  Operand read_named();
  int64_t read_offset();
  void set_register(Operand &, int reg) const;

  Reader &reader_;
  const Scopes &scopes_;
  const Body &body_;
};

}  // namespace softgpu::ptx
