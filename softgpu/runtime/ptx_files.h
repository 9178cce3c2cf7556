// PTX files that nvcc kept, in the folders of SOFTGPU_PTX.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "softgpu/runtime/modules.h"

namespace softgpu::runtime {

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
