// Builder for graphs of tests, with a line per node, and an optimizer on their lists.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mpcore.hpp"
#include "support/device.h"
#include "tests/support/testing.h"

namespace mptest {

using ScalerHandle = mptools::Scaler;
using OptimizerHandle = mptools::Optimizer;
using ListHandle = mptools::TensorList;
using PolicyHandle = std::unique_ptr<mp_autocast, mptools::Destroyer<mp_autocast_destroy>>;

using Attributes = std::vector<mp::attribute>;
using Floats32 = std::vector<float>;

/// Policy that ignores the environment and performance, so that casts do not depend on the device.
PolicyHandle make_policy(mp_dtype_t low, mp_autocast_level_t level = MP_AUTOCAST_LEVEL_NORMAL,
                         uint32_t flags = 0);

/// Returns multiples of 2^-6, which every type represents.
Floats32 random_values(Random &random, int64_t count, double bound);
/// Returns values of about 1 / sqrt(fan_in).
Floats32 random_weights(Random &random, int64_t count, int64_t fan_in);

/// A graph; a failing call ends the test.
class Described {
 public:
  explicit Described(mp_context_t context = mptest::context());
  ~Described();
  Described(const Described &) = delete;
  Described &operator=(const Described &) = delete;

  int32_t input(const char *name, mp_dtype_t dtype, const std::vector<int64_t> &extent);
  int32_t parameter(const char *name, const std::vector<int64_t> &extent);
  int32_t state(const char *name, const std::vector<int64_t> &extent);
  /// Adds a node; returns its first output.
  int32_t node(const char *op, const char *name, const std::vector<int32_t> &inputs,
               const Attributes &attributes = {});
  std::vector<int32_t> node_of(const char *op, const char *name, const std::vector<int32_t> &inputs,
                               uint32_t num_outputs, const Attributes &attributes = {});
  void output(int32_t tensor) { require_ok(mp_graph_add_output(handle, tensor)); }
  void loss(int32_t tensor) { require_ok(mp_graph_set_loss(handle, tensor)); }
  void compile(mp_autocast_t policy = nullptr);

  void bind(int32_t tensor, const void *data) { require_ok(mp_graph_bind(handle, tensor, data)); }
  void write(int32_t tensor, const Floats32 &values);
  void step(mp_scaler_t scaler = nullptr);

  mp_graph_tensor_t info(int32_t tensor) const;
  mp_graph_memory_t memory() const;
  std::string describe() const;
  std::string explain() const;
  /// Reads any tensor that keeps its memory, as fp64.
  std::vector<double> read(int32_t tensor) const;
  std::vector<double> gradient(int32_t tensor) const;
  /// All parameters in the order of creation.
  std::vector<float> masters() const;

  mp_graph_t handle = nullptr;
  std::vector<int32_t> parameters;
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

/// Allocations of a context: total, live and failing ones.
struct Allocations {
  int64_t count = 0, alive = 0, largest = 0;
  int64_t fails_at = -1;      ///< number of the allocation that fails
  int64_t limit = INT64_MAX;  ///< larger allocations fail

  static void *alloc(size_t bytes, void *user);
  static void free(void *ptr, size_t bytes, void *user);
};

mp_context_t counted_context(Allocations &allocations);

/// A scaler with an initial scale so high that the first steps overflow in fp16, and are skipped.
ScalerHandle make_high_scaler();

}  // namespace mptest
