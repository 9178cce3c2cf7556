// Replaces operator new for the entire program.  Shared libraries resolve to this definition too,
// so allocations in libmpcore.so are counted.  The standard's definitions of the array and nothrow
// forms call it.
#include "heap.h"

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace mpbench {
namespace {

struct HeapUse {
  int64_t bytes = 0, most = 0;
};

// Constant-initialized: operator new is called before main.
constinit thread_local HeapUse *t_use = nullptr;

void *counted(void *memory) {
  if (memory == nullptr) throw std::bad_alloc();
  if (t_use != nullptr) {
    t_use->bytes += static_cast<int64_t>(malloc_usable_size(memory));
    t_use->most = std::max(t_use->most, t_use->bytes);
  }
  return memory;
}

void release(void *memory) noexcept {
  if (t_use != nullptr && memory != nullptr)
    t_use->bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

/// Counts while the object exists.
struct Counting {
  explicit Counting(HeapUse &use) { t_use = &use; }
  ~Counting() { t_use = nullptr; }
  Counting(const Counting &) = delete;
  Counting &operator=(const Counting &) = delete;
};

}  // namespace

int64_t peak_heap_bytes(const std::function<void()> &call) {
  HeapUse use;
  const Counting counting(use);
  call();
  return use.most;
}

}  // namespace mpbench

void *operator new(std::size_t bytes) {
  return mpbench::counted(std::malloc(std::max(bytes, std::size_t{1})));
}

void *operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  // aligned_alloc requires a multiple of the alignment.
  const std::size_t units = std::max((bytes + unit - 1) / unit, std::size_t{1});
  return mpbench::counted(std::aligned_alloc(unit, units * unit));
}

void operator delete(void *memory) noexcept {
  mpbench::release(memory);
}

void operator delete(void *memory, std::size_t) noexcept {
  mpbench::release(memory);
}

void operator delete(void *memory, std::align_val_t) noexcept {
  mpbench::release(memory);
}

void operator delete(void *memory, std::size_t, std::align_val_t) noexcept {
  mpbench::release(memory);
}
