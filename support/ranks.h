// Several ranks in one process: every rank is a thread with a context.  On the host target the
// ranks share memory; on CUDA each has a separate device, and they use NCCL.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "device.h"
#include "thread_comm.h"

namespace mptools {

/// One NCCL communicator per CUDA device, all created by one call.  NCCL is loaded at run time.
/// Source of the declarations: NCCL User Guide, "Creating a Communicator".
class NcclRanks {
 public:
  /// @param ordinals  device of each rank
  explicit NcclRanks(const std::vector<int> &ordinals) : comms_(ordinals.size(), nullptr) {
    void *const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error("several CUDA devices require libnccl.so.2");
    const auto find = [library](const char *name) {
      void *const function = dlsym(library, name);
      if (function == nullptr)
        throw std::runtime_error(std::string("libnccl.so.2 does not export ") + name);
      return function;
    };
    const auto init = reinterpret_cast<InitAll *>(find("ncclCommInitAll"));
    destroy_ = reinterpret_cast<End *>(find("ncclCommDestroy"));
    abort_ = reinterpret_cast<End *>(find("ncclCommAbort"));
    const int result = init(comms_.data(), static_cast<int>(ordinals.size()), ordinals.data());
    if (result != 0) throw std::runtime_error("ncclCommInitAll returned " + std::to_string(result));
  }
  NcclRanks(const NcclRanks &) = delete;
  NcclRanks &operator=(const NcclRanks &) = delete;
  ~NcclRanks() {
    for (void *comm : comms_) destroy_(comm);
  }

  /// Aborts all communicators if a rank ends early, so that the others stop waiting for it.
  void give_up() {
    for (void *comm : comms_) abort_(comm);
    comms_.clear();
  }

  mp_comm_t comm(int rank) const {
    mp_comm_t comm = mp_comm_default();
    check(mp_comm_init_nccl(&comm, comms_[static_cast<size_t>(rank)]));
    return comm;
  }

 private:
  using InitAll = int(void **comms, int count, const int *ordinals);
  using End = int(void *comm);

  std::vector<void *> comms_;
  End *destroy_ = nullptr;
  End *abort_ = nullptr;
};

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
