// Shared memory of one block: an arena with guard zones around every variable.
//
// Variables are initialized to NaN.  Guard zones hold a pattern that is checked at the end of the
// block.  Under AddressSanitizer, everything outside the variables is poisoned instead, so that the
// line of the bad access is reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "host/engine.h"

namespace mp::host::engine {

constexpr int kNanPattern = 0xFF;  // every byte; NaN in fp16, bf16, fp32 and fp64

class SharedMemory {
 public:
  SharedMemory();
  SharedMemory(const SharedMemory &) = delete;
  SharedMemory &operator=(const SharedMemory &) = delete;
  ~SharedMemory();

  /// Removes all variables and adds the first one, the dynamic shared memory.
  void begin_block(size_t dynamic_bytes);
  void *dynamic() const { return arena_ + variables_.front().offset; }

  /// Returns NULL if the variable does not exist yet.
  void *find(const void *key) const {
    for (const Variable &variable : variables_)
      if (variable.key == key) return arena_ + variable.offset;
    return nullptr;
  }
  /// Returns NULL if the block would exceed kSmemBytes.
  void *add(const void *key, const char *name, size_t bytes, size_t alignment);

  const std::byte *begin() const { return arena_; }
  std::byte *at(size_t offset) const { return arena_ + offset; }
  /// Returns whether the range is within one variable.
  bool holds(const void *address, size_t bytes) const;
  /// Returns a text like "tile + 12 bytes", for reports.
  Text locate(const void *address) const;

  /// Returns an empty string, or a report that names the variable whose guard zone was overwritten.
  std::string damage() const;

 private:
  struct Variable {
    const void *key;
    const char *name;
    size_t offset;
    size_t bytes;
    size_t end() const { return offset + bytes; }
  };

  const Variable *variable_at(const void *address) const;
  bool intact(size_t begin, size_t end) const;
  std::string describe_damage(const Variable *below, const Variable *above, size_t begin,
                              size_t end) const;

  std::byte *arena_;
  std::vector<Variable> variables_;
  size_t top_ = 0;         ///< end of the last variable
  size_t used_bytes_ = 0;  ///< total of the variables, without guard zones
};

}  // namespace mp::host::engine
