// Bit map of initialized bytes, for SOFTGPU_INITCHECK.
#pragma once

#include <cstdint>
#include <memory>

namespace softgpu {

struct UnwrittenBytes {
  uint64_t first = 0;  ///< address of the first one
  uint64_t count = 0;
};

/// Threads may write and read concurrently.
class WrittenBytes {
 public:
  WrittenBytes() = default;
  explicit WrittenBytes(uint64_t size);
  explicit operator bool() const { return bits_ != nullptr; }
  void set(uint64_t begin, uint64_t bytes, bool value = true);
  /// Copies the state of a range from another map, or from a range that does not overlap.
  void copy(uint64_t to, const WrittenBytes &from, uint64_t begin, uint64_t bytes);
  UnwrittenBytes find_unwritten(uint64_t begin, uint64_t bytes) const;

 private:
  uint64_t bits_from(uint64_t begin) const;
  struct Free {
    void operator()(uint64_t *) const;
  };
  std::unique_ptr<uint64_t[], Free> bits_;
};

}  // namespace softgpu
