// The rows that nothing writes: immediates, addresses of symbols, special registers.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/softgpu/program/program.h"

namespace softgpu {

/// Each constant has one row.  Where it lies is known when all constants are, so in the first pass
/// they have no real one: rows of 8 bytes a lane come first, then those of 4, then the predicates.
class Constants {
 public:
  RegisterSlot constant(uint8_t width, ConstantKind, uint64_t value);
  RegisterSlot special(uint8_t width, std::string_view name);

  /// Places the rows from 0 on; there must be no new ones later.  Returns the end of them.
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
