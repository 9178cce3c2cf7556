// Sparse device memory with billions of zeros, for tests of tensors larger than physical memory.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "testing.h"

namespace mptest {

/// `bytes` zeros in device memory.  On the host the same few MiB are mapped repeatedly, except
/// around the addresses that a test writes and reads: data written elsewhere must be zeros.  Only
/// page tables and the written addresses use memory; the resident size counts each mapping and so
/// shows gigabytes.
class SparseZeros {
 public:
  /// @param written  byte offsets
  SparseZeros(int64_t bytes, const std::vector<int64_t> &written) {
    if (on_host()) {
      map_sparsely(bytes, written);
    } else {
      allocate(bytes);
    }
  }
  ~SparseZeros() {
    if (mapped_bytes_ > 0) munmap(data_, mapped_bytes_);
  }
  SparseZeros(const SparseZeros &) = delete;
  SparseZeros &operator=(const SparseZeros &) = delete;

  /// NULL if there is not enough memory.
  uint8_t *data() const { return data_; }

 private:
  static constexpr int64_t kWindow = int64_t{4} << 20;

  static uint8_t *map(void *at, size_t bytes, int flags, int file) {
    void *const mapped = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    REQUIRE(mapped != MAP_FAILED);
    return static_cast<uint8_t *>(mapped);
  }
  void map_sparsely(int64_t bytes, const std::vector<int64_t> &written) {
    const int64_t windows = (bytes + kWindow - 1) / kWindow;
    mapped_bytes_ = static_cast<size_t>(windows * kWindow);
    data_ = map(nullptr, mapped_bytes_, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    const int shared = memfd_create("zeros", 0);
    REQUIRE(shared >= 0);
    REQUIRE(ftruncate(shared, kWindow) == 0);
    for (int64_t window = 0; window < windows; ++window) {
      const auto is_here = [&](int64_t offset) { return offset / kWindow == window; };
      if (std::any_of(written.begin(), written.end(), is_here)) continue;
      map(data_ + window * kWindow, kWindow, MAP_SHARED | MAP_FIXED, shared);
    }
    close(shared);
  }
  void allocate(int64_t bytes) {
    device_ = std::make_unique<DeviceMemory>(static_cast<size_t>(bytes));
    data_ = device_->data();
    if (data_ != nullptr)
      require_ok(mp_memset(context(), data_, 0, static_cast<size_t>(bytes), kStream));
  }

  std::unique_ptr<DeviceMemory> device_;
  size_t mapped_bytes_ = 0;
  uint8_t *data_ = nullptr;
};

}  // namespace mptest
