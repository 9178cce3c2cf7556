// mpbench allreduce: averages the gradients of several ranks with mp_grads_all_reduce.
//
// Each rank is a thread.  The first one measures; the others repeat each of its calls.
#include <condition_variable>
#include <memory>
#include <mutex>

#include "bench/rows/rows.h"
#include "bench/shapes/shapes.h"
#include "suite.h"
#include "support/ranks.h"

namespace mpbench {
namespace {

constexpr int kHostRanks = 2;

/// Counts the calls that the other ranks must make.
class Calls {
 public:
  void ask() {
    const std::lock_guard lock(mutex_);
    ++asked_;
    changed_.notify_all();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    changed_.notify_all();
  }
  /// Waits until more than `made` calls are requested, or the measurement has ended.
  /// @return false if it has ended
  bool wait(int64_t made) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return asked_ > made || has_ended_; });
    return asked_ > made;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t asked_ = 0;
  bool has_ended_ = false;
};

/// Data sets of one rank, used cyclically.
class Gradients {
 public:
  /// @param values  host memory; initial value of every set
  Gradients(mp_context_t context, const std::vector<char> &values, int64_t elems, mp_dtype_t dtype,
            int64_t sets) {
    for (int64_t set = 0; set < sets; ++set) {
      data_.push_back(make_buffer(context, elems, dtype));
      void *const address = data_.back().data();
      check(mp_memcpy(context, address, values.data(), values.size(), mptools::kStream));
      lists_.push_back(make_list(context, dtype, {address}, {elems}));
    }
    check(mp_stream_sync(context, mptools::kStream));
  }

  void average(const mp_comm_t &comm, mp_stream_t stream) {
    const float share = 1.0f / static_cast<float>(comm.world_size);
    check(mp_grads_all_reduce(lists_[next_].get(), &comm, share, 1.0f, stream));
    next_ = (next_ + 1) % lists_.size();
  }

 private:
  std::vector<Buffer> data_;
  std::vector<TensorList> lists_;
  size_t next_ = 0;
};

class AllReduceBench : BenchState {
 public:
  using BenchState::BenchState;

  /// Creates the ranks.
  void begin();
  void measure(const AllReduceShape &shape);

 private:
  int available_ranks() const;
  Timing time(const AllReduceShape &shape);
  std::vector<char> random_values(int64_t elems);

  Stopwatch stopwatch_{machine_};
  RandomPool pool_{machine_, options_.dtype};
  std::unique_ptr<mptools::Ranks> ranks_;  ///< NULL = none; a note has the reason
};

int AllReduceBench::available_ranks() const {
  if (machine_.on_host()) return kHostRanks;
  return machine_.cuda()->device_count() - machine_.cuda()->ordinal();
}

void AllReduceBench::begin() {
  const int32_t device = machine_.on_host() ? MP_DEVICE_HOST : machine_.cuda()->ordinal();
  try {
    if (available_ranks() < 2) throw std::runtime_error("only one device is available");
    ranks_ = std::make_unique<mptools::Ranks>(device, available_ranks());
  } catch (const std::exception &error) {
    report_.add_note(std::string("All-reduce was not measured: ") + error.what() + ".");
  }
}

void AllReduceBench::measure(const AllReduceShape &shape) {
  if (!ranks_) return;
  try {
    report_.add(AllReduceRow{.shape = shape,
                             .dtype = options_.dtype,
                             .ranks = ranks_->count(),
                             .transport = machine_.on_host() ? "threads" : "NCCL",
                             .timing = time(shape)});
  } catch (const std::exception &error) {
    ranks_.reset();  // ranks that have failed cannot communicate again
    throw std::runtime_error(error.what() +
                             std::string("; the remaining shapes were not measured"));
  }
}

Timing AllReduceBench::time(const AllReduceShape &shape) {
  const std::vector<char> values = random_values(shape.elems);
  const int64_t sets = machine_.sets_beyond_l2(static_cast<int64_t>(values.size()));
  Timing timing{};
  Calls calls;
  ranks_->run([&](int rank, const mp_comm_t &comm) {
    Gradients gradients(ranks_->context(rank), values, shape.elems, options_.dtype, sets);
    if (rank != 0) {
      for (int64_t made = 0; calls.wait(made); ++made) gradients.average(comm, mptools::kStream);
      check(mp_stream_sync(ranks_->context(rank), mptools::kStream));
      return;
    }
    const Work average = [&] {
      calls.ask();
      gradients.average(comm, machine_.stream());
    };
    try {
      timing = stopwatch_.time({average}, pace_of(options_, machine_)).front();
    } catch (...) {
      calls.end();
      throw;
    }
    calls.end();
    machine_.synchronize();
  });
  return timing;
}

std::vector<char> AllReduceBench::random_values(int64_t elems) {
  const Buffer on_device = make_buffer(machine_.context(), elems, options_.dtype);
  pool_.fill(on_device.data(), elems);
  std::vector<char> values(static_cast<size_t>(elems * dtype_bytes(options_.dtype)));
  check(mp_memcpy(machine_.context(), values.data(), on_device.data(), values.size(),
                  machine_.stream()));
  machine_.synchronize();
  return values;
}

}  // namespace

Suite allreduce_suite(const Options &options, const Machine &machine, Report &report) {
  return make_suite_of_sets<AllReduceBench, AllReduceShape>("allreduce", options, machine, report);
}

}  // namespace mpbench
