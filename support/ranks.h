// Several ranks in one process: every rank is a thread with a context.  On the host target the
// ranks share memory; on CUDA each has a separate device, and they use NCCL.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "device.h"
#include "nccl_ranks.h"
#include "thread_comm.h"

namespace mptools {

class Ranks {
 public:
  /// @param device  mp_context_config.device; several CUDA ranks use this device and the next ones
  Ranks(int32_t device, int count) {
    contexts_.push_back(make_context(device));
    if (count == 1) return;
    const bool on_host = device_info(context(0)).target == MP_TARGET_HOST;
    std::vector<int> ordinals(static_cast<size_t>(count));
    std::iota(ordinals.begin(), ordinals.end(), std::max(device, 0));
    if (!on_host) contexts_.clear();
    while (this->count() < count)
      contexts_.push_back(make_context(on_host ? MP_DEVICE_HOST : ordinals[contexts_.size()]));
    if (on_host)
      threads_ = std::make_unique<ThreadRanks>(count);
    else
      nccl_ = std::make_unique<NcclRanks>(ordinals);
  }

  int count() const { return static_cast<int>(contexts_.size()); }
  mp_context_t context(int rank) const { return contexts_[static_cast<size_t>(rank)].get(); }

  /// Calls body on all ranks concurrently and waits for them.
  /// @throws the exception of the first rank that failed; the ranks are then unusable
  void run(const std::function<void(int rank, const mp_comm_t &comm)> &body) {
    std::mutex mutex;
    std::exception_ptr failure;
    const auto run_rank = [&](int rank) {
      try {
        body(rank, comm(rank));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (failure) return;
        failure = std::current_exception();
        if (threads_) threads_->give_up();
        if (nccl_) nccl_->give_up();
      }
    };
    std::vector<std::thread> others;
    for (int rank = 1; rank < count(); ++rank) others.emplace_back(run_rank, rank);
    run_rank(0);
    for (std::thread &other : others) other.join();
    if (failure) std::rethrow_exception(failure);
  }

 private:
  mp_comm_t comm(int rank) {
    if (threads_) return threads_->comm(rank, context(rank));
    return nccl_ ? nccl_->comm(rank) : mp_comm_default();
  }

  std::vector<Context> contexts_;
  std::unique_ptr<ThreadRanks> threads_;  ///< for several ranks on the host target
  std::unique_ptr<NcclRanks> nccl_;       ///< for several ranks on CUDA
};

}  // namespace mptools
