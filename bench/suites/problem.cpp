#include "problem.h"

namespace mpbench {
namespace {

/// Tensors of an epilogue in one allocation; computes sizes only if the base is NULL.
struct EpilogueMemory {
  EpilogueMemory(const Operation &operation, char *memory) : start(memory) {
    const EpilogueKind &kind = kind_of(operation.epilogue);
    const int64_t elem_bytes = dtype_bytes(operation.out_dtype);
    if (kind.has_aux) tensors.aux = take(operation.out_elems * elem_bytes);
    if (kind.has_bias) tensors.bias = take(operation.row_elems * elem_bytes);
    random_bytes = bytes;
    if (kind.has_dbias) tensors.dbias = reinterpret_cast<float *>(take(operation.row_elems * 4));
    if (kind.has_stats) {
      tensors.amax = reinterpret_cast<float *>(take(4));
      tensors.found_inf = reinterpret_cast<float *>(take(4));
    }
  }

  char *take(int64_t size) {
    char *const at = start == nullptr ? nullptr : start + bytes;
    bytes += aligned_bytes(size);
    return at;
  }

  char *start;
  EpilogueTensors tensors;
  int64_t bytes = 0, random_bytes = 0;
};

}  // namespace

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
  const int64_t all_out_bytes = operation_.calls * out_bytes();
  const int64_t set_bytes = all_first_bytes + second_bytes + all_out_bytes +
                            EpilogueMemory(operation_, nullptr).bytes + pointer_bytes();
  const int64_t count = machine_.sets_beyond_l2(set_bytes);

  operands_ = Buffer(machine_.context(), count * set_bytes);
  for (int64_t i = 0; i < count; ++i) {
    char *const first = operands_.as<char>() + i * set_bytes;
    char *const second = first + all_first_bytes;
    pool.fill(first, all_first_bytes / elem_bytes);
    pool.fill(second, operation_.second_elems);
    char *const out = second + second_bytes;
    const EpilogueMemory epilogue(operation_, out + all_out_bytes);
    pool.fill(epilogue.start, epilogue.random_bytes / elem_bytes);
    sets_.push_back({.first = first, .second = second, .out = out, .epilogue = epilogue.tensors});
    put_pointers(sets_.back(), out + all_out_bytes + epilogue.bytes);
  }
}

int64_t Problem::pointer_bytes() const {
  return 3 * aligned_bytes(static_cast<int64_t>(operation_.items.size() * sizeof(void *)));
}

void Problem::put_pointers(Operands &set, char *memory) const {
  if (operation_.items.empty()) return;
  const int64_t elem_bytes = dtype_bytes(operation_.dtype);
  const auto put = [&](char *to, const void *base, int64_t ItemOffsets::*offset, int64_t bytes) {
    std::vector<const char *> items;
    for (const ItemOffsets &item : operation_.items)
      items.push_back(static_cast<const char *>(base) + item.*offset * bytes);
    machine_.call(mp_memcpy, to, items.data(), items.size() * sizeof(void *));
    machine_.synchronize();  // `items` is about to be freed
  };
  const int64_t array_bytes = pointer_bytes() / 3;
  put(memory, set.first, &ItemOffsets::first, elem_bytes);
  put(memory + array_bytes, set.second, &ItemOffsets::second, elem_bytes);
  put(memory + 2 * array_bytes, set.out, &ItemOffsets::out, dtype_bytes(operation_.out_dtype));
  set.items = {.first = reinterpret_cast<const void *const *>(memory),
               .second = reinterpret_cast<const void *const *>(memory + array_bytes),
               .out = reinterpret_cast<void *const *>(memory + 2 * array_bytes)};
}

void Problem::reserve_workspace(const char *kernel) {
  const int64_t bytes = operation_.workspace_bytes(kernel);
  if (bytes > workspace_.bytes()) workspace_ = Buffer(machine_.context(), bytes);
}

std::string Problem::selected_kernel() const {
  return operation_.selected_kernel ? operation_.selected_kernel(workspace_)
                                    : operation_.kernels.front();
}

const Operands &Problem::next_set() {
  const Operands &set = sets_[next_];
  next_ = (next_ + 1) % sets_.size();
  return set;
}

template <typename Call>
void Problem::for_each_call(const Operands &set, const Call &call) const {
  for (int64_t i = 0; i < operation_.calls; ++i)
    call(Operands{.first = static_cast<const char *>(set.first) + i * first_bytes(),
                  .second = set.second,
                  .out = static_cast<char *>(set.out) + i * out_bytes(),
                  .epilogue = set.epilogue,
                  .items = set.items});
}

void Problem::enqueue_own(const char *kernel, const Operands &set) const {
  for_each_call(set, [&](const Operands &t) { operation_.enqueue(kernel, t, workspace_); });
}

Work Problem::own(const char *kernel) {
  reserve_workspace(kernel);
  return [this, kernel] { enqueue_own(kernel, next_set()); };
}

Work Problem::peer(const PeerCall &call) {
  return [this, enqueue = call.enqueue] { for_each_call(next_set(), enqueue); };
}

std::vector<Result> Problem::results_of(const Operands &set) const {
  std::vector<Result> results;
  for (int64_t i = 0; i < operation_.calls; ++i)
    results.push_back({.data = static_cast<char *>(set.out) + i * out_bytes(),
                       .count = operation_.out_elems,
                       .dtype = operation_.out_dtype,
                       .is_added_to = operation_.beta != 0});
  if (operation_.epilogue == Epilogue::kBiasGeluAux)
    results.push_back({.data = set.epilogue.aux,
                       .count = operation_.out_elems,
                       .dtype = operation_.out_dtype,
                       .is_added_to = false});
  return results;
}

std::string Problem::difference_to(const PeerCall &call) {
  const Operands &set = first_set();
  const std::vector<Result> results = results_of(set);
  const Values own = values_of(
      machine_, [&] { enqueue_own(nullptr, set); }, results);
  return difference(
      machine_, own, [&] { for_each_call(set, call.enqueue); }, results, operation_.tolerance);
}

}  // namespace mpbench
