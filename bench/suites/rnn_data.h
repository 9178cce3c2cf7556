// The tensors of a recurrent layer, in as many sets as exceed L2, and mpcore's calls on them.
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
  /// The pass finds what the passes before it leave.
  /// @param desc  of `shape`; where it does not skip the input there is a W_ih too
  RnnData(const Machine &machine, const RnnShape &shape, const mp_rnn_desc_t &desc);
  RnnData(const RnnData &) = delete;
  RnnData &operator=(const RnnData &) = delete;

  const RnnShape &shape() const { return shape_; }
  const mp_rnn_desc_t &desc() const { return desc_; }
  int64_t sets() const { return static_cast<int64_t>(sets_.size()); }
  const std::vector<RnnTensors> &all_sets() const { return sets_; }
  /// That can run it, the library's choice first.
  const std::vector<const char *> &kernels() const { return kernels_; }
  /// What the library asks for, and what forced kernels have asked for since.
  int64_t workspace_bytes() const { return workspace_.bytes(); }
  int64_t reserve_bytes() const { return reserve_bytes_; }

  /// The pass on the next set.
  /// @param kernel  NULL: the library's choice
  Work own(const char *kernel = nullptr);
  /// The same of the peer, which has been made of all_sets().
  Work peer(const CudnnRnn &layer);
  /// Of the shape of backward weights: backward data before it in the same call.
  Work own_backward();

  /// Whether the peer has to come to the same.
  bool is_comparable() const;
  /// Both from forward on; as Problem::difference_to.
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
  /// Of a pass on the set with this number.
  using Enqueue = std::function<void(RnnPass, size_t)>;
  /// All of `passes` on the next set.
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

/// By how much two results may differ of which the largest element is `largest`.
Tolerance tolerance_of_rnn(const RnnShape &shape, mp_dtype_t dtype, double largest);

}  // namespace mpbench
