// The PTX in a fat binary, which nvcc puts into an object file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/softgpu/runtime/modules.h"

namespace softgpu::runtime {

/// PTX as it lies in a fat binary, possibly compressed; read when it is asked for.
class FatImage {
 public:
  FatImage(Target target, const std::byte *data, size_t size, size_t unpacked_size,
           uint64_t compression)
      : target_(target),
        data_(data),
        size_(size),
        unpacked_size_(unpacked_size),
        compression_(compression) {}
  Target target() const { return target_; }
  /// Null if it cannot be read, which is reported once.
  Module *module();

 private:
  std::string text() const;

  Target target_;
  const std::byte *data_;
  size_t size_, unpacked_size_;
  uint64_t compression_;
  bool is_read_ = false;
  Module *module_ = nullptr;
};

/// All PTX of a fat binary.  Machine code in it is passed over.
std::vector<FatImage> images_of(const void *fat_binary);

}  // namespace softgpu::runtime
