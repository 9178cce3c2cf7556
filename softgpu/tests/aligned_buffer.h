// Device memory with the alignment of cudaMalloc.
#pragma once

#include <cstdint>
#include <vector>

#include "softgpu/tests/harness.h"

namespace softgpu::test {

constexpr uint64_t kAlignment = 256;

/// Buffer whose address is passed to a kernel as a number: address().
template <class T>
class AlignedBuffer {
 public:
  explicit AlignedBuffer(const std::vector<T> &values)
      : buffer_(values.size() + kAlignment / sizeof(T)), size_(values.size()) {
    const uint64_t begin = buffer_.address();
    first_ = static_cast<size_t>((kAlignment - begin % kAlignment) % kAlignment / sizeof(T));
    for (size_t i = 0; i < values.size(); i++) (*this)[i] = values[i];
  }
  explicit AlignedBuffer(size_t size, T fill = T()) : AlignedBuffer(std::vector<T>(size, fill)) {}

  uint64_t address() const { return buffer_.address() + first_ * sizeof(T); }
  size_t size() const { return size_; }
  T &operator[](size_t i) { return buffer_[first_ + i]; }
  const T &operator[](size_t i) const { return buffer_[first_ + i]; }

 private:
  Buffer<T> buffer_;
  size_t size_, first_ = 0;
};

}  // namespace softgpu::test
