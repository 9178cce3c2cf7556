// Decoder of a kernel, for both passes (decoder.h).
#pragma once

#include <string_view>
#include <vector>

#include "softgpu/program/constants.h"
#include "softgpu/program/decoder.h"
#include "softgpu/program/flow.h"
#include "softgpu/program/symbols.h"

namespace softgpu {

class KernelDecoder final : public Decoder {
 public:
  KernelDecoder(const ptx::Body &, Symbols &, Program &);

  /// First pass: records the register accesses of statements.
  Flow find_flow();
  /// Assigns register slots between the passes.
  void place_rows(const Flow &);
  /// Second pass: fills Program::code.
  void decode();

  RegisterSlot read(const ptx::Operand &, int width) override;
  RegisterSlot write(const ptx::Operand &, int width) override;
  Address address(const ptx::Operand &) override;
  void hold(const ptx::Operand &) override;
  void release_held() override;
  uint32_t list(const std::vector<RegisterSlot> &) override;
  RegisterSlot carry() override;
  uint32_t label(const ptx::Operand &) override;
  uint32_t branch_table(const ptx::Operand &, uint32_t *size) override;
  bool is_local(std::string_view symbol) const override { return symbols_.is_local(symbol); }
  Program &program() override { return program_; }

 private:
  /// Additional registers after those of the body: destinations for `_`, by width, and the carry
  /// flag.
  enum OwnRegister : uint32_t { kDiscarded8, kDiscarded4, kDiscarded1, kCarry, kNumOwn };

  void decode_statement(const ptx::Statement &, Instruction &);
  void note_statement(const ptx::Statement &);
  RegisterSlot access(uint32_t reg, AccessKind);
  RegisterSlot own(OwnRegister, AccessKind);
  uint64_t immediate(const ptx::Operand &, int width) const;
  RegisterSlot symbol(const ptx::Operand &, int64_t offset, int width);
  uint32_t target(uint64_t label);

  const ptx::Body &body_;
  Symbols &symbols_;
  Program &program_;
  std::vector<ptx::Register> registers_;  ///< registers of the body, then kNumOwn additional ones
  Constants constants_;
  bool is_first_pass_ = true;
  Flow flow_;  ///< filled by the first pass
  /// Slot of each register; provisional and distinct in the first pass.
  std::vector<RegisterSlot> rows_;
};

}  // namespace softgpu
