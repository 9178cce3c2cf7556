// CPU as a device.  Compiled without the kernels' -march, to report missing instruction sets.
#include "kernels/simt/device.h"

#include <fcntl.h>
#include <unistd.h>
#if MP_HOST_NEEDS_X86_64_V3
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/workspace_layout.h"
#include "host/engine.h"
#include "host/workers.h"

namespace mp::host {

namespace {

constexpr int kModelledArch = 90;  // WMMA, cp.async, TMA, wgmma and clusters are modeled
constexpr size_t kAlignment = 256;

bool cpu_runs_the_kernels() {
#if MP_HOST_NEEDS_X86_64_V3
  // Clang 16 does not support the name "f16c".
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c &&
         __builtin_cpu_supports("bmi2");
#else
  return true;
#endif
}

/// Returns the beginning of a file, empty if it cannot be read.  Streams would report an
/// out-of-memory condition as end of file.
std::string_view start_of_file(const char *path, std::span<char> text) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t bytes = read(file, text.data(), text.size());
  close(file);
  return {text.data(), static_cast<size_t>(std::max<ssize_t>(bytes, 0))};
}

/// Writes the model name of the first processor in /proc/cpuinfo.
void write_cpu_name(char *name, size_t size) {
  constexpr std::string_view kField = "\nmodel name", kBefore = ": ";
  char text[4096];
  std::string_view found = start_of_file("/proc/cpuinfo", text);
  found.remove_prefix(std::min(found.find(kField), found.size()));
  found.remove_prefix(std::min(found.find(kBefore), found.size()));
  if (found.empty()) found = ": CPU\n";
  found.remove_prefix(kBefore.size());
  found.substr(0, found.find('\n')).copy(name, size - 1);
}

}  // namespace

int device_count() {
  return cpu_runs_the_kernels() ? 1 : 0;
}
std::string why_no_device() {
  return cpu_runs_the_kernels() ? "" : "this CPU lacks AVX2, FMA, F16C or BMI2";
}
int current_device() {
  return 0;
}
bool has_code_for(int) {
  return cpu_runs_the_kernels();
}

Device describe(int ordinal) {
  Device device{};
  device.target = kTargetKind;
  device.ordinal = ordinal;
  device.arch = kModelledArch;
  device.num_sms = engine::max_workers();
  device.smem_per_block = engine::kSmemBytes;
  device.has_wgmma = device.has_overlapping_maps = true;
  device.l2_bytes = std::max<int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE), 0);
  write_cpu_name(device.name, sizeof device.name);
  return device;
}

void *allocate(const Device &, size_t bytes) {
  // aligned_alloc requires a multiple of the alignment; near SIZE_MAX there is none.
  if (bytes > SIZE_MAX - kAlignment) throw std::bad_alloc();
  const size_t rounded = align_up(bytes, kAlignment);
  void *const ptr = std::aligned_alloc(kAlignment, rounded);
  if (ptr == nullptr) throw std::bad_alloc();
  return ptr;
}
void release(const Device &, void *ptr) {
  std::free(ptr);
}
MappedMemory allocate_mapped(const Device &device, size_t bytes) {
  void *const ptr = allocate(device, bytes);
  std::memset(ptr, 0, bytes);
  return {ptr, ptr};
}
void release_mapped(const Device &device, const MappedMemory &memory) {
  release(device, memory.host);
}
void copy(const Device &, void *dst, const void *src, size_t bytes, mp_stream_t) {
  std::memmove(dst, src, bytes);
}
void fill(const Device &, void *dst, int byte, size_t bytes, mp_stream_t) {
  std::memset(dst, byte, bytes);
}
void synchronize(const Device &, mp_stream_t) {}
void release_idle() {
  engine::release_workers();
}

}  // namespace mp::host
