// PTX files that nvcc kept, in the folders of SOFTGPU_PTX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "softgpu/runtime/modules.h"

namespace softgpu::runtime {

/// One PTX image of a fat binary, possibly compressed; parsed at first use.
struct FatImage {
  Target target;
  const std::byte *data;
  size_t size, unpacked_size;
  uint64_t compression;
  std::optional<Module *> parsed{};  ///< result of module(), after its first call

  /// Returns the module, or null if it cannot be parsed; the error is reported once.
  Module *module();
  std::string text() const;
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
