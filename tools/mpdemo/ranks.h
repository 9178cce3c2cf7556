// Data-parallel training in one process: every rank is a thread with a context, a replica of the
// network and its share of every batch.  On the host target the ranks share memory, on CUDA each has
// a device of its own and NCCL between them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common.h"
#include "common/nccl_ranks.h"
#include "common/thread_comm.h"

namespace mpdemo {

class Ranks {
 public:
  /// @param device  as in mp_context_config; several ranks on CUDA take this device and the next ones
  Ranks(int32_t device, int count);

  int count() const { return static_cast<int>(contexts_.size()); }
  mp_context_t context(int rank) const { return contexts_[static_cast<size_t>(rank)].get(); }

  /// Calls body on every rank at the same time and waits for all.
  /// @throws what the first rank that failed has thrown
  void run(const std::function<void(int rank, const mp_comm_t &comm)> &body);

 private:
  mp_comm_t comm(int rank);

  std::vector<Context> contexts_;
  std::unique_ptr<ThreadRanks> threads_;  ///< several on the host target
  std::unique_ptr<NcclRanks> nccl_;       ///< several on CUDA
};

}  // namespace mpdemo
