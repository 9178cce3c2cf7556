// Tensors of a recurrent layer, in enough sets to exceed L2, and mpcore's calls on them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/peers/cudnn_rnn.h"
#include "bench/timing/agreement.h"
#include "bench/timing/machine.h"
#include "bench/timing/timing.h"

namespace mpbench {

class RnnData {
 public:
  /// Runs the earlier passes whose results the pass reads.
  /// @param desc  descriptor of `shape`; without MP_RNN_FLAG_SKIP_INPUT it has a W_ih too
  RnnData(const Machine &machine, const RnnShape &shape, const mp_rnn_desc_t &desc);
  RnnData(const RnnData &) = delete;
  RnnData &operator=(const RnnData &) = delete;

  const RnnShape &shape() const { return shape_; }
  const mp_rnn_desc_t &desc() const { return desc_; }
  int64_t sets() const { return static_cast<int64_t>(sets_.size()); }
  const std::vector<RnnTensors> &all_sets() const { return sets_; }
  /// Kernels that can run the pass, the library's choice first.
  const std::vector<const char *> &kernels() const { return kernels_; }
  /// Size for the library's choice, and for forced kernels used so far.
  int64_t workspace_bytes() const { return workspace_.bytes(); }
  int64_t reserve_bytes() const { return reserve_bytes_; }

  /// Work that runs the pass on the next set.
  /// @param kernel  NULL: the library's choice
  Work own(const char *kernel = nullptr);
  /// The same pass of the peer, which was constructed from all_sets().
  Work peer(const CudnnRnn &layer);
  /// Backward data and backward weights in one call, for a shape of backward weights.
  Work own_backward();

  /// True if the peer must compute the same result.
  bool is_comparable() const;
  /// Runs both from forward on; same contract as Problem::difference_to.
  std::string difference_to(const CudnnRnn &layer);

 private:
  struct Pools {
    RandomPool values, weights, biases;
  };

  RnnTensors make_set(Pools &pools);
  void *take(int64_t count, mp_dtype_t dtype);
  void reserve_workspace(const char *kernel);
  void enqueue(const char *kernel, RnnPass pass, const RnnTensors &set) const;
  Work own_passes(const char *kernel, std::vector<RnnPass> passes);
  size_t next_set();
  /// Enqueues a pass on the set with this index.
  using Enqueue = std::function<void(RnnPass, size_t)>;
  /// Work that runs all `passes` on the next set.
  Work work_of(std::vector<RnnPass> passes, Enqueue enqueue);
  Result result() const;

  const Machine &machine_;
  RnnShape shape_;
  mp_rnn_desc_t desc_;
  std::vector<const char *> kernels_;
  int64_t reserve_bytes_ = 0;
  std::vector<Buffer> memory_;
  std::vector<RnnTensors> sets_;
  size_t next_ = 0;
  Buffer workspace_;
};

/// Tolerance between two results whose largest element is `largest`.
Tolerance tolerance_of_rnn(const RnnShape &shape, mp_dtype_t dtype, double largest);

}  // namespace mpbench
