// The shared memory of one block: an arena with a guard zone on either side of every variable.
//
// Variables start as NaN.  The guard zones hold a pattern that is checked when the block has
// finished; in the strict mode everything outside the variables is guarded.  Under
// AddressSanitizer it is poisoned instead, which names the line of the bad access.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/simt/sim/engine.h"

namespace mp::host::engine {

class SharedMemory {
 public:
  SharedMemory();
  SharedMemory(const SharedMemory &) = delete;
  SharedMemory &operator=(const SharedMemory &) = delete;
  ~SharedMemory();

  /// Forgets all variables; the first new one is the dynamic part.
  void begin_block(size_t dynamic_bytes, const Mode &);
  void *dynamic() const { return arena_ + variables_.front().offset; }

  /// NULL if there is no such variable yet.
  void *find(const void *key) const {
    for (const Variable &variable : variables_)
      if (variable.key == key) return arena_ + variable.offset;
    return nullptr;
  }
  /// NULL if the block would use more than kSmemBytes.
  void *add(const void *key, const char *name, size_t bytes, size_t alignment);

  const std::byte *begin() const { return arena_; }
  std::byte *at(size_t offset) const { return arena_ + offset; }
  static size_t capacity();
  /// True if all of the range lies in one variable.
  bool holds(const void *address, size_t bytes) const;
  /// "tile + 12 bytes", for reports.
  Text locate(const void *address) const;

  /// Empty, or which variable was overrun.
  std::string damage() const;

 private:
  struct Variable {
    const void *key;
    const char *name;
    size_t offset;
    size_t bytes;
    size_t end() const { return offset + bytes; }
  };

  const Variable *variable_at(size_t offset) const;
  void guard(size_t begin, size_t end);
  bool intact(size_t begin, size_t end) const;
  std::string describe_damage(const Variable *below, const Variable *above, size_t begin,
                              size_t end) const;

  std::byte *arena_;
  std::vector<Variable> variables_;
  size_t top_ = 0;          ///< end of the last variable
  size_t guarded_end_ = 0;  ///< of the zone above it
  size_t used_bytes_ = 0;   ///< by variables
  bool guard_all_ = false;
};

}  // namespace mp::host::engine
