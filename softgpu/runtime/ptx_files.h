// PTX files that nvcc kept, in the folders of SOFTGPU_PTX.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
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

/// The folders are listed at the first lookup, files are searched for names when their architecture
/// is requested, and parsed as modules when an entry or variable is used.
class PtxFiles {
 public:
  /// Returns the architectures of the files.
  std::vector<Target> targets();
  /// Return the module of this architecture that has the kernel or variable, or null.
  Module *find_entry(const Target &, const std::string &name);
  Module *find_global(const Target &, const std::string &name);

 private:
  struct File {
    std::string path;
    Target target;
    bool is_read = false;
    Module *module = nullptr;
  };
  void list_files();
  void index(const Target &);
  Module *module_of(File &);

  bool is_listed_ = false;
  std::vector<File> files_;
  std::vector<Target> indexed_;
  std::unordered_map<std::string, size_t> entries_;  ///< "90a NAME" -> index in files_
};

}  // namespace softgpu::runtime
