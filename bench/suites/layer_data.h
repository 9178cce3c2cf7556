// Arrays of a layer, in enough sets to exceed L2, and mpcore's calls on them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/shapes/layer_shapes.h"
#include "bench/timing/agreement.h"
#include "bench/timing/machine.h"
#include "bench/timing/timing.h"

namespace mpbench {

/// An array of a layer.
struct LayerArray {
  int64_t elems;
  mp_dtype_t dtype;
  bool is_input = false;             ///< random values
  bool is_backward = false;          ///< not used by the forward pass
  std::vector<int32_t> values = {};  ///< copied instead of random values
};

/// A layer with its arrays, whose order is that of its functions.
struct LayerCalls {
  std::vector<LayerArray> arrays;
  int64_t workspace_bytes = 0;
  /// Enqueues a pass.  The backward pass reads results of the forward pass.
  std::function<void(bool is_forward, const std::vector<void *> &arrays, const Buffer &workspace)>
      enqueue;
  /// Enqueues the product of a gated unit alone; NULL for other layers.
  std::function<void(const std::vector<void *> &arrays, const Buffer &workspace)> multiply =
      nullptr;
  /// Array that cuDNN computes too, and the bound for differences; none if cuDNN may differ.
  struct Compared {
    size_t array;
    Tolerance tolerance;
  };
  std::optional<Compared> compared = {};
};

/// Calls of a layer of any suite, and of the layers of transformers.
LayerCalls make_layer(const Machine &machine, const LayerShape &shape, mp_dtype_t dtype);
LayerCalls make_transformer_layer(const Machine &machine, const LayerShape &shape,
                                  mp_dtype_t dtype);
std::vector<int32_t> random_labels(int64_t rows, int64_t classes);

/// Indices of the arrays of an attention.
enum AttentionArray : size_t { kQ, kK, kV, kO, kLse, kDO, kDq, kDk, kDv, kEnds };

class LayerData {
 public:
  /// Runs the forward pass before a backward pass, which reads its results.
  LayerData(const Machine &machine, const LayerShape &shape, mp_dtype_t dtype);
  LayerData(const LayerData &) = delete;
  LayerData &operator=(const LayerData &) = delete;

  int64_t sets() const { return static_cast<int64_t>(sets_.size()); }
  int64_t workspace_bytes() const { return workspace_.bytes(); }
  bool has_product() const { return layer_.multiply != nullptr; }
  /// The arrays of a set, in the order of the layer.
  const std::vector<void *> &first_set() const { return sets_.front(); }
  const std::vector<void *> &next_set();

  /// Work in which each call uses the next set.
  Work own();
  Work product();

  /// Arrays of the first set that the pass writes, with their numbers of elements.
  std::vector<std::pair<const void *, int64_t>> results_of_first_set() const;

  bool is_comparable() const { return layer_.compared.has_value(); }
  /// Compares the array that both write; same contract as Problem::difference_to.
  std::string difference_to(const Work &peer_of_first_set) const;

 private:
  std::vector<void *> make_set(RandomPool &low, RandomPool &single);

  const Machine &machine_;
  LayerCalls layer_;
  bool is_forward_;
  std::vector<Buffer> memory_;
  std::vector<std::vector<void *>> sets_;
  size_t next_ = 0;
  Buffer workspace_;
};

}  // namespace mpbench
