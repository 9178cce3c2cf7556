// An executable kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "softgpu/program/instruction.h"
#include "softgpu/program/kernel_counters.h"
#include "softgpu/ptx/syntax.h"

namespace softgpu {

/// Returns the value for a lane of a warp.
using SpecialValue = uint64_t (*)(const Warp &, uint32_t lane);

/// Returns null for an unknown register.
SpecialValue special_register(std::string_view name);

/// Kinds of read-only values, which are set when a warp begins.
enum class ConstantKind : uint8_t {
  kValue,
  kShared,     ///< offset from kReservedSmem; the address includes the rank of the block
  kParameter,  ///< offset in the parameters of the launch
  kLocal,      ///< offset in the local memory of the thread
};
struct ConstantRow {
  RegisterSlot row;
  uint8_t width;  ///< 1, 4 or 8, as in ptx::Register::width
  ConstantKind kind;
  uint64_t value;
};
struct SpecialRow {
  RegisterSlot row;
  uint8_t width;
  std::string name;  ///< "%tid.x"
};

struct SourceLine {
  uint32_t line = 0;  ///< in the PTX file
  std::string text;   ///< the statement
};

struct Program : ptx::LaunchBounds {
  std::string name, pretty_name, file;
  std::vector<Instruction> code;
  std::vector<SourceLine> source;        ///< source of each instruction
  std::vector<RegisterSlot> lists;       ///< operands of variable number: accumulators, coordinates
  std::vector<RegisterSlot> wgmma_a;     ///< registers of A of all wgmma
  std::vector<uint32_t> branch_targets;  ///< targets of brx.idx
  std::vector<ConstantRow> constants;
  std::vector<SpecialRow> specials;
  uint32_t register_bytes = 0;  ///< per warp, including constants and special registers
  uint32_t constant_bytes = 0;  ///< constants and special registers, which are first
  /// Registers that may be read before they are written: begin and size.
  std::vector<std::pair<RegisterSlot, uint32_t>> read_first;
  struct Parameter {
    uint32_t offset, size;
  };
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t static_smem = 0, dynamic_smem_offset = 0;  ///< relative to kReservedSmem
  bool has_dynamic_smem = false;
  uint32_t local_bytes = 0;       ///< per thread
  bool uses_async_proxy = false;  ///< contains TMA or wgmma
  std::unique_ptr<Totals> totals = std::make_unique<Totals>();

  uint32_t index_of(const Instruction &i) const { return static_cast<uint32_t>(&i - code.data()); }
};

/// Returns the address of a .global or .const variable of the module.
using GlobalAddress = uint64_t (*)(void *context, const std::string &name);

/// Decodes a kernel.  Throws ptx::Error for unsupported PTX.
std::unique_ptr<Program> compile(const ptx::Module &, const ptx::Entry &, GlobalAddress,
                                 void *context);

}  // namespace softgpu
