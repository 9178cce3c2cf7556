// mp_comm_t between the threads of one process and one device, for both targets: every rank is a
// thread, and all ranks can read the device memory.
//
// Each rank combines its part of the elements: it reads the part of all ranks and writes the result
// to all of them.  Sums are computed on the host in fp64 in the order of the ranks, rounded to
// fp32, then to the type.  A call synchronizes its stream before and after, so it cannot be
// captured.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include "device.h"

namespace mptools {

/// Reusable barrier for threads, until one of them aborts it.
class Barrier {
 public:
  explicit Barrier(int count) : count_(count) {}

  /// @return false after an abort
  bool wait() {
    std::unique_lock lock(mutex_);
    const uint64_t generation = generation_;
    if (++waiting_ == count_) {
      waiting_ = 0;
      ++generation_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return generation_ != generation || has_given_up_; });
    return !has_given_up_;
  }
  void give_up() {
    const std::lock_guard lock(mutex_);
    has_given_up_ = true;
    changed_.notify_all();
  }

 private:
  const int count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  uint64_t generation_ = 0;
  bool has_given_up_ = false;
};

class ThreadRanks {
 public:
  /// Error codes of the callbacks.
  enum Code { kGaveUp = 1, kDifferentCalls = 2, kCallFailed = 3 };

  explicit ThreadRanks(int count) : barrier_(count), ranks_(static_cast<size_t>(count)) {
    for (int rank = 0; rank < count; ++rank) at(rank).rank = rank, at(rank).all = this;
  }
  ThreadRanks(const ThreadRanks &) = delete;
  ThreadRanks &operator=(const ThreadRanks &) = delete;

  int count() const { return static_cast<int>(ranks_.size()); }

  /// Returns the callback table of one rank, for the thread that is this rank; valid during the
  /// lifetime of this object.
  /// @param context  of the same device on every rank
  mp_comm_t comm(int rank, mp_context_t context) {
    at(rank).context = context;
    mp_comm_t comm = mp_comm_default();
    comm.rank = rank;
    comm.world_size = count();
    comm.all_reduce = all_reduce;
    comm.user = &at(rank);
    return comm;
  }

  /// Makes the callbacks of the other threads fail instead of waiting for the calling thread, which
  /// ends early.
  void give_up() { barrier_.give_up(); }

 private:
  struct Call {
    const std::byte *send;
    std::byte *recv;
    size_t count;
    mp_dtype_t dtype;
    mp_reduce_op_t op;
    bool is_like(const Call &other) const {
      return count == other.count && dtype == other.dtype && op == other.op;
    }
  };
  struct Rank {
    ThreadRanks *all;
    int rank;
    mp_context_t context;
    Call call;
  };

  Rank &at(int rank) { return ranks_[static_cast<size_t>(rank)]; }

  static int all_reduce(const void *send, void *recv, size_t count, mp_dtype_t dtype,
                        mp_reduce_op_t op, mp_stream_t stream, void *user) {
    Rank &self = *static_cast<Rank *>(user);
    ThreadRanks &all = *self.all;
    self.call = {static_cast<const std::byte *>(send), static_cast<std::byte *>(recv), count, dtype,
                 op};
    if (mp_stream_sync(self.context, stream) != MP_SUCCESS) return kCallFailed;
    if (!all.barrier_.wait()) return kGaveUp;
    const int code = all.combine_share(self);
    if (!all.barrier_.wait()) return kGaveUp;
    return code;
  }

  int combine_share(const Rank &self) try {
    for (const Rank &other : ranks_)
      if (!other.call.is_like(self.call)) return kDifferentCalls;
    constexpr size_t kElemsAtATime = 16384;
    const size_t count = self.call.count, ranks = ranks_.size();
    const size_t rank = static_cast<size_t>(self.rank);
    const size_t end = count / ranks * (rank + 1) + (rank + 1 == ranks ? count % ranks : 0);
    const Buffer wide = make_buffer(self.context, kElemsAtATime, MP_FP32);
    for (size_t begin = count / ranks * rank; begin < end; begin += kElemsAtATime)
      combine(self, begin, std::min(end - begin, kElemsAtATime), wide.as<float>());
    return 0;
  } catch (const std::exception &) {
    return kCallFailed;
  }

  /// Combines elements [begin, begin + count).
  /// @param wide  device memory for `count` fp32 elements
  void combine(const Rank &self, size_t begin, size_t count, float *wide) {
    const auto [send, recv, all, dtype, op] = self.call;
    const size_t offset = begin * mp_dtype_size(dtype);
    const int64_t elems = static_cast<int64_t>(count);
    std::vector<double> combined(count);
    for (const Rank &other : ranks_) {
      check(mp_cast(self.context, other.call.send + offset, dtype, wide, MP_FP32, elems, kStream));
      const std::vector<float> values = download_sync(self.context, wide, elems);
      const bool is_first = &other == &ranks_.front();
      for (size_t i = 0; i < count; ++i) {
        const double x = values[i];
        combined[i] = is_first              ? x
                      : op == MP_REDUCE_MAX ? std::max(combined[i], x)
                                            : combined[i] + x;
      }
    }
    const std::vector<float> result(combined.begin(), combined.end());
    check(mp_memcpy(self.context, wide, result.data(), count * sizeof(float), kStream));
    for (const Rank &other : ranks_)
      check(mp_cast(self.context, wide, MP_FP32, other.call.recv + offset, dtype, elems, kStream));
    check(mp_stream_sync(self.context, kStream));  // `result` is freed
  }

  Barrier barrier_;
  std::vector<Rank> ranks_;
};

}  // namespace mptools
