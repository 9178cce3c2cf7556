// A library of kernels that mpcore is compared with.
#pragma once

#include <memory>
#include <string>

#include "bench/rows/report.h"

namespace mpbench {

/// Opens a library; NULL on the host target, or if it is not wanted or missing.  A note reports
/// that it is missing, and that `what` has no reference.
/// @tparam Library  CublasLt, Cublas or Cudnn
template <typename Library>
std::unique_ptr<Library> open_peer(bool is_wanted, const char *what, const Machine &machine,
                                   Report &report) {
  if (!is_wanted || machine.on_host()) return nullptr;
  return report.make_or_note(text("reference for %s", what), [&] {
    auto library = std::make_unique<Library>(machine.context(), machine.stream());
    report.add_library(Library::kName, std::to_string(library->version()), library->library());
    return library;
  });
}

/// Name of the library with its version.
template <typename Library>
std::string name_of(const Library &library) {
  return std::string(Library::kName) + ' ' + std::to_string(library.version());
}

}  // namespace mpbench
