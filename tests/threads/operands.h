// Data of one call: inputs that depend only on their order, outputs for bit-exact comparison.
//
// Used by one thread; contains no test macros.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "support/device.h"
#include "tests/soak/checkpoint.h"

namespace mptest {

class Operands {
 public:
  explicit Operands(mp_context_t context) : context_(context) {}

  mp_context_t context() const { return context_; }
  /// Values in [-1, 1] in steps of 1/8: sums of a few hundred products are exact.
  void *input(mp_dtype_t dtype, int64_t count);
  /// Values in [0, below).
  int32_t *indices(int64_t count, int32_t below);
  /// Initially zero; its contents become part of bytes().
  void *output(mp_dtype_t dtype, int64_t count);
  int64_t *counter();
  /// Undefined contents.
  void *scratch(size_t bytes);

  /// Adds text or numbers of the host to the result.
  void tell(const std::string &text) { told_.add_bytes({text.begin(), text.end()}); }
  template <typename T>
  void tell_plain(const T &value) {
    told_.add(value);
  }
  /// Returns the added data, then all outputs in order.
  Bytes bytes() const;

 private:
  void *add(std::deque<mptools::Buffer> &buffers, int64_t bytes);

  mp_context_t context_;
  int64_t num_inputs_ = 0;
  std::deque<mptools::Buffer> inputs_, outputs_;
  CheckpointWriter told_;
};

}  // namespace mptest
