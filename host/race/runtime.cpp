// Runtime for code compiled with -fsanitize=thread: forwards accesses to the race detector.
//
// Compiled without that flag and linked instead of the sanitizer's runtime.  Defines only the
// functions that g++ emits for the kernels and their tests; a missing one fails at link time.
//
// Source of the names: compiler-rt, lib/tsan/rtl/tsan_interface.h.
#include "host/race/detector.h"

namespace {

using mp::host::engine::current;
using mp::host::engine::race::Access;
using mp::host::engine::race::detector;

[[gnu::always_inline]] inline void record(Access what, const void *address, size_t bytes) {
  if (current == nullptr) return;
  if (detector->covers(address))
    detector->access(address, bytes, what, __builtin_return_address(0));
  else if (!current->may_use_gmem)
    detector->early_access(address, what, __builtin_return_address(0));
}

}  // namespace

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void *, void *) {}

void __tsan_read1(void *address) {
  record(Access::read, address, 1);
}
void __tsan_read2(void *address) {
  record(Access::read, address, 2);
}
void __tsan_read4(void *address) {
  record(Access::read, address, 4);
}
void __tsan_read8(void *address) {
  record(Access::read, address, 8);
}
void __tsan_read16(void *address) {
  record(Access::read, address, 16);
}
void __tsan_write1(void *address) {
  record(Access::write, address, 1);
}
void __tsan_write2(void *address) {
  record(Access::write, address, 2);
}
void __tsan_write4(void *address) {
  record(Access::write, address, 4);
}
void __tsan_write8(void *address) {
  record(Access::write, address, 8);
}
void __tsan_write16(void *address) {
  record(Access::write, address, 16);
}

void __tsan_unaligned_read2(void *address) {
  record(Access::read, address, 2);
}
void __tsan_unaligned_read4(void *address) {
  record(Access::read, address, 4);
}
void __tsan_unaligned_read8(void *address) {
  record(Access::read, address, 8);
}
void __tsan_unaligned_read16(void *address) {
  record(Access::read, address, 16);
}
void __tsan_unaligned_write2(void *address) {
  record(Access::write, address, 2);
}
void __tsan_unaligned_write4(void *address) {
  record(Access::write, address, 4);
}
void __tsan_unaligned_write8(void *address) {
  record(Access::write, address, 8);
}
void __tsan_unaligned_write16(void *address) {
  record(Access::write, address, 16);
}

void __tsan_read_range(void *address, size_t bytes) {
  record(Access::read, address, bytes);
}
void __tsan_write_range(void *address, size_t bytes) {
  record(Access::write, address, bytes);
}

// Atomics are not checked: kernels use them in gmem only.
uint8_t __tsan_atomic8_load(const volatile uint8_t *address, int) {
  return __atomic_load_n(address, __ATOMIC_SEQ_CST);
}
void __tsan_atomic8_store(volatile uint8_t *address, uint8_t value, int) {
  __atomic_store_n(address, value, __ATOMIC_SEQ_CST);
}
uint32_t __tsan_atomic32_load(const volatile uint32_t *address, int) {
  return __atomic_load_n(address, __ATOMIC_SEQ_CST);
}
void __tsan_atomic32_store(volatile uint32_t *address, uint32_t value, int) {
  __atomic_store_n(address, value, __ATOMIC_SEQ_CST);
}
uint64_t __tsan_atomic64_load(const volatile uint64_t *address, int) {
  return __atomic_load_n(address, __ATOMIC_SEQ_CST);
}
void __tsan_atomic64_store(volatile uint64_t *address, uint64_t value, int) {
  __atomic_store_n(address, value, __ATOMIC_SEQ_CST);
}
bool __tsan_atomic32_compare_exchange_weak(volatile uint32_t *address, uint32_t *expected,
                                           uint32_t value, int, int) {
  return __atomic_compare_exchange_n(address, expected, value, true, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}
bool __tsan_atomic32_compare_exchange_strong(volatile uint32_t *address, uint32_t *expected,
                                             uint32_t value, int, int) {
  return __atomic_compare_exchange_n(address, expected, value, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}
uint32_t __tsan_atomic32_fetch_add(volatile uint32_t *address, uint32_t value, int) {
  return __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST);
}
uint64_t __tsan_atomic64_fetch_add(volatile uint64_t *address, uint64_t value, int) {
  return __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST);
}
void __tsan_atomic_thread_fence(int) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
}
