// Decoder of a kernel, for both passes (decoder.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "softgpu/program/decoder.h"
#include "softgpu/program/program.h"
#include "softgpu/program/registers.h"
#include "softgpu/ptx/syntax.h"

namespace softgpu {

struct Symbol {
  ConstantKind kind;
  uint64_t value;
};

class Symbols {
 public:
  /// Lays out the parameters and the variables of the body.
  Symbols(const ptx::Module &, const ptx::Entry &, const ptx::Body &, GlobalAddress, void *context,
          Program &);

  /// Finds a variable.  A shared variable of the module is placed in the kernel at its first
  /// lookup.  Addresses in dynamic shared memory are relative to kDynamic until all shared
  /// variables are known.
  std::optional<Symbol> find(std::string_view name);
  bool is_local(std::string_view name) const;
  /// Places dynamic shared memory after static shared memory.
  void finish();
  /// Returns the final value of a kShared constant.
  uint64_t shared_value(uint64_t value) const;

 private:
  void add_parameters(const ptx::Entry &);
  Symbol add_shared(const ptx::Variable &);

  /// Marks offsets in dynamic shared memory, which may be negative.
  static constexpr uint64_t kDynamic = uint64_t{1} << 40;

  const ptx::Module &module_;
  GlobalAddress global_address_;
  void *context_;
  Program &program_;
  std::unordered_map<std::string_view, Symbol> symbols_;
  uint32_t dynamic_alignment_ = 16;
};

/// Assigns one slot to each constant.  Slots are provisional during the first pass, because their
/// positions depend on all constants: slots with 8 bytes per lane come first, then slots with 4
/// bytes, then predicates.
class Constants {
 public:
  RegisterSlot constant(uint8_t width, ConstantKind, uint64_t value);
  RegisterSlot special(uint8_t width, std::string_view name);

  /// Assigns final slots from 0 on and returns their end.  No constant may be added afterwards.
  uint32_t place();
  std::vector<ConstantRow> constants() const;
  const std::vector<SpecialRow> &specials() const { return specials_; }

 private:
  struct Key {
    uint64_t value;
    ConstantKind kind;
    uint8_t width;
    bool operator==(const Key &) const = default;
  };
  struct Hash {
    size_t operator()(const Key &key) const {
      return (key.value ^ uint64_t{key.width} << 56 ^ static_cast<uint64_t>(key.kind) << 60) *
             0x9E3779B97F4A7C15;
    }
  };

  std::unordered_map<Key, RegisterSlot, Hash> constants_;
  std::vector<SpecialRow> specials_;
};

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
