// PTX in a fat binary, which nvcc embeds in object files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "softgpu/runtime/modules.h"

namespace softgpu::runtime {

/// One PTX image of a fat binary, possibly compressed; parsed at first use.
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
  /// Returns the module, or null if it cannot be parsed; the error is reported once.
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

/// Returns all PTX images of a fat binary; machine code is skipped.
std::vector<FatImage> images_of(const void *fat_binary);

}  // namespace softgpu::runtime
