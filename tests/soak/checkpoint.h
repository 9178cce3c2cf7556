// Serialization of a checkpoint: values in sequence.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "tests/support/calls/caller.h"

namespace mptest {

class CheckpointWriter {
 public:
  template <typename T>
  void add(const T &plain) {
    const auto *const first = reinterpret_cast<const uint8_t *>(&plain);
    bytes_.insert(bytes_.end(), first, first + sizeof plain);
  }
  void add_bytes(const Bytes &bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  const Bytes &bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

class CheckpointReader {
 public:
  explicit CheckpointReader(const Bytes &bytes) : bytes_(bytes) {}

  template <typename T>
  T take() {
    T plain;
    std::memcpy(&plain, take_bytes(sizeof plain), sizeof plain);
    return plain;
  }
  const uint8_t *take_bytes(size_t count) {
    if (read_ + count > bytes_.size()) throw std::runtime_error("the checkpoint is too short");
    read_ += count;
    return bytes_.data() + read_ - count;
  }

 private:
  const Bytes &bytes_;
  size_t read_ = 0;
};

}  // namespace mptest
