#include "ranks.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

namespace mpdemo {
namespace {

mp_target_t target_of(mp_context_t context) {
  mp_device_info_t info;
  MP_INIT_STRUCT(&info);
  check(mp_context_get_info(context, &info));
  return info.target;
}

}  // namespace

Ranks::Ranks(int32_t device, int count) {
  contexts_.push_back(make_context(device));
  if (count == 1) return;
  const bool on_host = target_of(context(0)) == MP_TARGET_HOST;
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

mp_comm_t Ranks::comm(int rank) {
  if (threads_) return threads_->comm(rank, context(rank));
  return nccl_ ? nccl_->comm(rank) : mp_comm_default();
}

void Ranks::run(const std::function<void(int, const mp_comm_t &)> &body) {
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

}  // namespace mpdemo
