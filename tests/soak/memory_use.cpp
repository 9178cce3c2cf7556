// The operators new and delete of this program also replace those of the library: the loader
// resolves them to the program first.
#include "tests/soak/memory_use.h"

#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> blocks = 0;
std::atomic<int64_t> device_bytes = 0;

void *counted(void *block) {
  if (block == nullptr) throw std::bad_alloc();
  ++blocks;
  return block;
}

void release(void *block) {
  if (block == nullptr) return;
  --blocks;
  std::free(block);
}

size_t rounded_up(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

void *allocate_device(size_t bytes, void *) {
  constexpr size_t kAlignment = 256;
  void *const memory = std::aligned_alloc(kAlignment, rounded_up(bytes, kAlignment));
  if (memory != nullptr) device_bytes += static_cast<int64_t>(bytes);
  return memory;
}

void free_device(void *memory, size_t bytes, void *) {
  device_bytes -= static_cast<int64_t>(bytes);
  std::free(memory);
}

}  // namespace

void *operator new(size_t bytes) {
  return counted(std::malloc(bytes));
}
void *operator new(size_t bytes, std::align_val_t alignment) {
  const auto align = static_cast<size_t>(alignment);
  return counted(std::aligned_alloc(align, rounded_up(bytes, align)));
}
void operator delete(void *block) noexcept {
  release(block);
}
void operator delete(void *block, size_t) noexcept {
  release(block);
}
void operator delete(void *block, std::align_val_t) noexcept {
  release(block);
}
void operator delete(void *block, size_t, std::align_val_t) noexcept {
  release(block);
}

namespace mptest {

MemoryUse memory_use() {
  long pages = 0;
  if (std::FILE *const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  const auto info = mallinfo2();
  return {blocks, device_bytes, static_cast<int64_t>(info.uordblks + info.hblkhd),
          static_cast<int64_t>(pages) * sysconf(_SC_PAGESIZE)};
}

const mp_allocator_t &counting_allocator() {
  static const mp_allocator_t allocator = [] {
    mp_allocator_t it;
    MP_INIT_STRUCT(&it);
    it.alloc = allocate_device;
    it.free = free_device;
    return it;
  }();
  return allocator;
}

}  // namespace mptest
