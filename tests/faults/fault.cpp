#include "fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>

namespace mptest::faults {

namespace {

Fault the_fault;
std::atomic<bool> is_armed{false}, struck{false};
std::atomic<int64_t> requests{0}, live{0};

/// Counts an allocated block.
void *given(void *block) {
  if (block != nullptr) live.fetch_add(1, std::memory_order_relaxed);
  return block;
}

bool is_without_memory() {
  if (!is_refused(Source::kMemory)) return false;
  errno = ENOMEM;
  return true;
}

}  // namespace

void plan(const Fault &fault) {
  the_fault = fault;
  requests = 0;
  struck = false;
}

const Fault &planned_fault() {
  return the_fault;
}

void arm() {
  is_armed = true;
}

void disarm() {
  is_armed = false;
  if (struck) the_fault.source = Source::kNone;
}

Paused::Paused() {
  is_armed = false;
}

Paused::~Paused() {
  is_armed = true;
}

bool is_refused(Source source) {
  if (!is_armed || source != the_fault.source) return false;
  const int64_t number = ++requests;
  const bool refused = the_fault.persists ? number >= the_fault.at : number == the_fault.at;
  if (refused) struck = true;
  return refused;
}

bool has_struck() {
  return struck;
}

int64_t num_requests() {
  return requests;
}

int64_t num_live() {
  return live;
}

}  // namespace mptest::faults

// ---------------------------------------------------------------------------- interposed functions

using mptest::faults::given;
using mptest::faults::is_without_memory;

extern "C" {

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

void *malloc(size_t bytes) {
  return is_without_memory() ? nullptr : given(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes) {
  return is_without_memory() ? nullptr : given(__libc_calloc(count, bytes));
}

void *memalign(size_t alignment, size_t bytes) {
  return is_without_memory() ? nullptr : given(__libc_memalign(alignment, bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  return memalign(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes) {
  void *const made = memalign(alignment, bytes);
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}

void free(void *block) {
  if (block != nullptr) mptest::faults::live.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(block);
}

void *realloc(void *block, size_t bytes) {
  if (block == nullptr) return malloc(bytes);
  if (bytes == 0) {
    free(block);
    return nullptr;
  }
  return is_without_memory() ? nullptr : __libc_realloc(block, bytes);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (is_without_memory()) return MAP_FAILED;
  const long mapped = syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
  void *const memory = reinterpret_cast<void *>(mapped);
  if (memory != MAP_FAILED) given(memory);
  return memory;
}

int munmap(void *memory, size_t bytes) {
  mptest::faults::live.fetch_sub(1, std::memory_order_relaxed);
  return static_cast<int>(syscall(SYS_munmap, memory, bytes));
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument) {
  using Create = int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (mptest::faults::is_refused(mptest::faults::Source::kThreads)) return EAGAIN;
  return create(thread, attributes, start, argument);
}

}  // extern "C"
