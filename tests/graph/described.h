// Builder for graphs of tests, with a line per node, and an optimizer of their parameters.
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
using PolicyHandle = std::unique_ptr<mp_autocast, mptools::Destroyer<mp_autocast_destroy>>;

using Attributes = std::vector<mp::attribute>;
using Floats32 = std::vector<float>;

/// Like make_autocast, with a level and more flags.
PolicyHandle make_policy(mp_dtype_t low, mp_autocast_level_t level = MP_AUTOCAST_LEVEL_NORMAL,
                         uint32_t flags = 0);

/// Returns a policy that allows every node; NULL for MP_FP32.
PolicyHandle allow_all(mp_dtype_t low);
/// The growth interval is short, so that S also grows in short runs.
ScalerHandle make_scaler(mp_scaler_policy_t policy, float init_scale);

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
  ~Described() {
    optimizer_.reset();  // uses lists of the graph
    mp_graph_destroy(handle);
  }

  /// Adds a node; returns its first output.
  int32_t node(const char *op, const char *name, const std::vector<int32_t> &inputs,
               const Attributes &attributes = {}) const {
    return node_of(op, name, inputs, 1, attributes).front();
  }
  std::vector<int32_t> node_of(const char *op, const char *name, const std::vector<int32_t> &inputs,
                               uint32_t num_outputs, const Attributes &attributes = {}) const;
  void output(int32_t tensor) { require_ok(mp_graph_add_output(handle, tensor)); }
  void keep_gradient(int32_t tensor) { require_ok(mp_graph_keep_gradient(handle, tensor)); }
  /// Returns the input that contains the gradient of a tensor.
  int32_t seed_gradient(int32_t tensor);
  /// Makes the loss the cross-entropy of the columns of `y`; returns its outputs.
  /// @param classes  of the rows; empty: the labels are not bound
  std::vector<int32_t> xent(int32_t y, const std::vector<int32_t> &classes,
                            uint32_t num_outputs = 1);
  void compile(mp_autocast_t policy = nullptr);
  /// Binds a copy of the values, which lives as long as the graph; before compile(), compile()
  /// binds it.
  template <class T>
  void feed(int32_t tensor, const std::vector<T> &values) {
    const auto data = std::make_shared<DeviceBuffer<T>>(values);
    feed(tensor, data->data(), data);
  }
  void feed(int32_t tensor, mp_dtype_t dtype, const std::vector<double> &values) {
    const auto data = std::make_shared<DeviceArray>(dtype, values);
    feed(tensor, data->data(), data);
  }
  void write(int32_t tensor, const Floats32 &values);
  /// Writes random weights to all parameters.
  void write_random(Random &random, int64_t fan_in);
  int64_t numel(int32_t tensor) const { return numel_of(info(tensor)); }
  void forward(mp_graph_mode_t mode = MP_GRAPH_MODE_INFERENCE) {
    require_ok(mp_graph_forward(handle, mode, kStream));
  }
  /// Forward and backward pass.
  void step(mp_scaler_t scaler = nullptr);
  /// A step, and an update of the parameters by SGD with momentum.
  void train(mp_scaler_t scaler);

  mp_graph_memory_t memory() const;
  std::string describe() const;
  std::string explain() const;
  /// Reads any tensor that keeps its memory, as fp64.
  std::vector<double> read(int32_t tensor) const;
  std::vector<double> gradient(int32_t tensor) const;
  /// All parameters in the order of creation.
  std::vector<float> masters() const;

  const mp_graph_t handle;
  int32_t labels = -1;  ///< input of xent()

 private:
  void feed(int32_t tensor, const void *data, const std::shared_ptr<void> &owner);

  struct Fed {
    int32_t tensor;
    const void *data;
    std::shared_ptr<void> owner;
  };
  std::vector<Fed> fed_;
  mptools::Optimizer optimizer_;
  bool is_compiled_ = false;
};

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

}  // namespace mptest
