// Variable names in a kernel, and the layout of its parameters and shared variables.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>

#include "softgpu/program/program.h"
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

}  // namespace softgpu
