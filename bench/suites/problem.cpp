#include "problem.h"

#include "bench/timing/agreement.h"

namespace mpbench {

Problem::Problem(const Machine &machine, RandomPool &pool, Operation operation)
    : machine_(machine), operation_(std::move(operation)) {
  fill_sets(pool);
  reserve_workspace(nullptr);
}

int64_t Problem::first_bytes() const {
  return aligned_bytes(operation_.first_elems * dtype_bytes(operation_.dtype));
}

int64_t Problem::out_bytes() const {
  return aligned_bytes(operation_.out_elems * dtype_bytes(operation_.out_dtype));
}

void Problem::fill_sets(RandomPool &pool) {
  const int64_t elem_bytes = dtype_bytes(operation_.dtype);
  const int64_t all_first_bytes = operation_.calls * first_bytes();
  const int64_t second_bytes = aligned_bytes(operation_.second_elems * elem_bytes);
  const int64_t set_bytes = all_first_bytes + second_bytes + operation_.calls * out_bytes();
  const int64_t count = machine_.sets_beyond_l2(set_bytes);

  operands_ = Buffer(machine_.context(), count * set_bytes);
  for (int64_t i = 0; i < count; ++i) {
    char *const first = operands_.as<char>() + i * set_bytes;
    char *const second = first + all_first_bytes;
    pool.fill(first, all_first_bytes / elem_bytes);
    pool.fill(second, operation_.second_elems);
    sets_.push_back({.first = first, .second = second, .out = second + second_bytes});
  }
}

void Problem::reserve_workspace(const char *kernel) {
  const int64_t bytes = operation_.workspace_bytes(kernel);
  if (bytes > workspace_.bytes()) workspace_ = Buffer(machine_.context(), bytes);
}

const Operands &Problem::next_set() {
  const Operands &set = sets_[next_];
  next_ = (next_ + 1) % sets_.size();
  return set;
}

template <typename Call>
void Problem::for_each_call(const Operands &set, Call call) const {
  for (int64_t i = 0; i < operation_.calls; ++i)
    call(Operands{.first = static_cast<const char *>(set.first) + i * first_bytes(),
                  .second = set.second,
                  .out = static_cast<char *>(set.out) + i * out_bytes()});
}

void Problem::enqueue_own(const char *kernel, const Operands &set) const {
  for_each_call(set, [&](const Operands &t) { operation_.enqueue(kernel, t, workspace_); });
}

void Problem::enqueue_peer(const Peer &peer, size_t choice, const Operands &set) const {
  for_each_call(set, [&](const Operands &t) { peer.enqueue(t, choice); });
}

Work Problem::own(const char *kernel) {
  reserve_workspace(kernel);
  return [this, kernel] { enqueue_own(kernel, next_set()); };
}

Work Problem::peer(const Peer &peer, size_t choice) {
  return [this, &peer, choice] { enqueue_peer(peer, choice, next_set()); };
}

bool Problem::agrees_with(const Peer &peer, size_t choice) {
  const Operands &set = first_set();
  const auto result_of = [&](const Work &work) {
    return first_results(machine_, work, set.out, operation_.calls * operation_.out_elems,
                         operation_.out_dtype);
  };
  return agree(result_of([&] { enqueue_own(nullptr, set); }),
               result_of([&] { enqueue_peer(peer, choice, set); }));
}

}  // namespace mpbench
