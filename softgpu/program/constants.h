// Read-only register slots: immediates, addresses of symbols, special registers.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "softgpu/program/program.h"

namespace softgpu {

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
  std::vector<SpecialRow> specials() const;

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
  struct Special {
    uint8_t width;
    std::string name;
    RegisterSlot row;
  };

  std::unordered_map<Key, RegisterSlot, Hash> constants_;
  std::vector<Special> specials_;
};

}  // namespace softgpu
