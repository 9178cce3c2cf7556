// Builder for graphs of tests, with a line per node, and an optimizer on their lists.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mpcore.hpp"
#include "support/device.h"
#include "tests/support/calls/graph_builder.h"
#include "tests/support/testing.h"

namespace mptest {

using ScalerHandle = mptools::Scaler;
using OptimizerHandle = mptools::Optimizer;
using ListHandle = mptools::TensorList;
using PolicyHandle = std::unique_ptr<mp_autocast, mptools::Destroyer<mp_autocast_destroy>>;

using Attributes = std::vector<mp::attribute>;
using Floats32 = std::vector<float>;

/// Like make_autocast, with a level and more flags.
PolicyHandle make_policy(mp_dtype_t low, mp_autocast_level_t level = MP_AUTOCAST_LEVEL_NORMAL,
                         uint32_t flags = 0);

/// Returns multiples of 2^-6, which every type represents.
Floats32 random_values(Random &random, int64_t count, double bound);
/// Returns values of about 1 / sqrt(fan_in).
Floats32 random_weights(Random &random, int64_t count, int64_t fan_in);

inline bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

/// Base that is initialized before GraphBuilder.
struct OwnCaller {
  Caller own_caller;
};

/// A graph; a failing call ends the test.
class Described : private OwnCaller, public GraphBuilder {
 public:
  explicit Described(mp_context_t context = mptest::context())
      : OwnCaller{Caller(context)}, GraphBuilder(own_caller), handle(graph()) {}
  ~Described() { mp_graph_destroy(handle); }

  /// Adds a node; returns its first output.
  int32_t node(const char *op, const char *name, const std::vector<int32_t> &inputs,
               const Attributes &attributes = {}) const {
    return node_of(op, name, inputs, 1, attributes).front();
  }
  std::vector<int32_t> node_of(const char *op, const char *name, const std::vector<int32_t> &inputs,
                               uint32_t num_outputs, const Attributes &attributes = {}) const;
  void output(int32_t tensor) { require_ok(mp_graph_add_output(handle, tensor)); }
  void write(int32_t tensor, const Floats32 &values);
  /// Writes random weights to all parameters.
  void write_random(Random &random, int64_t fan_in);
  int64_t numel(int32_t tensor) const { return numel_of(info(tensor)); }
  void step(mp_scaler_t scaler = nullptr);

  mp_graph_memory_t memory() const;
  std::string describe() const;
  std::string explain() const;
  /// Reads any tensor that keeps its memory, as fp64.
  std::vector<double> read(int32_t tensor) const;
  std::vector<double> gradient(int32_t tensor) const;
  /// All parameters in the order of creation.
  std::vector<float> masters() const;

  const mp_graph_t handle;
};

/// SGD with momentum on three lists of tensors.
class Trainer {
 public:
  /// @param model  nullptr: none
  /// @param numel  of the parameters
  Trainer(mp_tensor_list_t grads, mp_tensor_list_t master, mp_tensor_list_t model,
          const std::vector<int64_t> &numel);
  void step(mp_scaler_t scaler);

 private:
  std::vector<std::unique_ptr<DeviceBuffer<float>>> momentum_;
  ListHandle m_;
  OptimizerHandle optimizer_;
};

ListHandle make_tensor_list(const std::vector<void *> &data, const std::vector<int64_t> &numel,
                            const std::vector<mp_dtype_t> &dtypes);

/// A context that counts its allocations: total, live and failing ones.
class CountedContext {
 public:
  explicit CountedContext(int32_t sm_limit = 0);
  ~CountedContext();  ///< checks that nothing is left
  CountedContext(const CountedContext &) = delete;
  CountedContext &operator=(const CountedContext &) = delete;

  mp_context_t get() const { return context_; }

  int64_t count = 0, alive = 0, largest = 0;
  int64_t fails_at = -1;      ///< number of the allocation that fails
  int64_t limit = INT64_MAX;  ///< larger allocations fail

 private:
  static void *alloc(size_t bytes, void *user);
  static void free(void *ptr, size_t bytes, void *user);

  mp_context_t context_ = nullptr;
};

/// A scaler with an initial scale so high that the first steps overflow in fp16, and are skipped.
ScalerHandle make_high_scaler();

}  // namespace mptest
