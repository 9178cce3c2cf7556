// Tensors of a layer, in enough sets to exceed L2, and mpcore's calls on them.
#pragma once

#include <vector>

#include "bench/peers/cudnn_layers.h"
#include "bench/timing/agreement.h"
#include "bench/timing/machine.h"
#include "bench/timing/timing.h"

namespace mpbench {

class LayerData {
 public:
  LayerData(const Machine &machine, RandomPool &pool, const LayerShape &shape, mp_dtype_t dtype);
  LayerData(const LayerData &) = delete;
  LayerData &operator=(const LayerData &) = delete;

  int64_t sets() const { return static_cast<int64_t>(sets_.size()); }
  int64_t workspace_bytes() const { return workspace_.bytes(); }

  /// Work in which each call uses the next set.
  Work own();
  Work peer(const CudnnLayer &layer);

  /// True if mpcore and cuDNN compute the same result, up to a tolerance.
  bool is_comparable() const;
  /// Same contract as Problem::difference_to.
  std::string difference_to(const CudnnLayer &layer) const;

 private:
  void fill(RandomPool &pool, LayerTensors &set);
  void enqueue(LayerPass pass, const LayerTensors &set) const;
  void enqueue_softmax(LayerPass pass, const LayerTensors &set) const;
  void enqueue_batch_norm(LayerPass pass, const LayerTensors &set) const;
  void enqueue_pool(LayerPass pass, const LayerTensors &set) const;
  template <typename T>
  T *take(int64_t count, int64_t elem_bytes);
  const LayerTensors &next_set();
  Tolerance tolerance() const;

  const Machine &machine_;
  LayerShape shape_;
  mp_dtype_t dtype_;
  std::vector<Buffer> memory_;
  std::vector<LayerTensors> sets_;
  size_t next_ = 0;
  Buffer workspace_;
};

}  // namespace mpbench
