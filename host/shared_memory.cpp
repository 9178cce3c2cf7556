#include "host/shared_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include "base/workspace_layout.h"
#include "host/fiber.h"

namespace mp::host::engine {

namespace {

constexpr size_t kGuardBytes = 64;  // per side, so twice this between two variables
constexpr std::byte kGuardPattern{0xC5};
constexpr size_t kUsualVariables = 16;
constexpr size_t kArenaBytes = kSmemBytes + 16 * 1024;  // room for variables and their guard zones

}  // namespace

SharedMemory::SharedMemory() {
  variables_.reserve(kUsualVariables);
  // mmap instead of malloc, whose heap would grow each time the workers are restarted.
  void *const pages =
      mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  arena_ = static_cast<std::byte *>(pages);
}

SharedMemory::~SharedMemory() {
  ASAN_UNPOISON_MEMORY_REGION(arena_, kArenaBytes);
  munmap(arena_, kArenaBytes);
}

void SharedMemory::begin_block(size_t dynamic_bytes) {
  variables_.clear();
  used_bytes_ = 0;
  top_ = 0;
  ASAN_POISON_MEMORY_REGION(arena_, kArenaBytes);
  add(nullptr, "dynamic part", dynamic_bytes, 1024);
}

void *SharedMemory::add(const void *key, const char *name, size_t bytes, size_t alignment) {
  const size_t offset = align_up(top_ + 2 * kGuardBytes, std::max<size_t>(alignment, 16));
  if (bytes > kSmemBytes - used_bytes_ || offset + bytes + kGuardBytes > kArenaBytes)
    return nullptr;
  const size_t end = offset + bytes;
#if MP_ASAN
  __asan_unpoison_memory_region(arena_ + offset, bytes);
#else
  std::memset(arena_ + top_, static_cast<int>(kGuardPattern), offset - top_);
  std::memset(arena_ + end, static_cast<int>(kGuardPattern), kGuardBytes);
#endif
  std::memset(arena_ + offset, kNanPattern, bytes);
  variables_.push_back({key, name, offset, bytes});
  top_ = end;
  used_bytes_ += bytes;
  return arena_ + offset;
}

/// Compares the zone with itself shifted by one byte, which is as fast as memcmp.
bool SharedMemory::intact(size_t begin, size_t end) const {
  const std::byte *const zone = arena_ + begin;
  return zone[0] == kGuardPattern && std::memcmp(zone, zone + 1, end - begin - 1) == 0;
}

std::string SharedMemory::damage() const {
#if !MP_ASAN
  const Variable *below = nullptr;
  size_t begin = variables_.front().offset - kGuardBytes;
  for (const Variable &variable : variables_) {
    if (!intact(begin, variable.offset))
      return describe_damage(below, &variable, begin, variable.offset);
    below = &variable;
    begin = variable.end();
  }
  if (!intact(begin, top_ + kGuardBytes))
    return describe_damage(below, nullptr, begin, top_ + kGuardBytes);
#endif
  return "";
}

/// Names the adjacent variable that is nearer to the first damaged byte.
std::string SharedMemory::describe_damage(const Variable *below, const Variable *above,
                                          size_t begin, size_t end) const {
  const auto is_damaged = [](std::byte b) { return b != kGuardPattern; };
  const size_t first =
      static_cast<size_t>(std::find_if(arena_ + begin, arena_ + end, is_damaged) - arena_);
  if (above == nullptr || (below != nullptr && first - begin < end - first))
    return "wrote to shared " + std::string(below->name) + " + " +
           std::to_string(first - below->offset) + " bytes, past its end";
  return "wrote to shared " + std::string(above->name) + " - " + std::to_string(end - first) +
         " bytes, below its start";
}

const SharedMemory::Variable *SharedMemory::variable_at(const void *address) const {
  const uintptr_t offset =
      reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(arena_);
  for (const Variable &variable : variables_)
    if (offset >= variable.offset && offset < variable.end()) return &variable;
  return nullptr;
}

bool SharedMemory::holds(const void *address, size_t bytes) const {
  const Variable *const variable = variable_at(address);
  const std::byte *const begin = static_cast<const std::byte *>(address);
  return variable != nullptr && bytes <= static_cast<size_t>(at(variable->end()) - begin);
}

Text SharedMemory::locate(const void *address) const {
  const Variable *const variable = variable_at(address);
  if (variable == nullptr) return words("shared memory outside all variables");
  return words("%s + %td bytes", variable->name,
               static_cast<const std::byte *>(address) - at(variable->offset));
}

}  // namespace mp::host::engine
