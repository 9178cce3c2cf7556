// A library of kernels that mpcore is compared with.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "bench/rows/report.h"

namespace mpbench {

/// Empty if the library is missing; a note reports this, and that `what` has no peer.
/// @tparam Library  CublasLt or Cudnn, constructed from `arguments`
template <typename Library, typename... Arguments>
void open_peer_library(std::optional<Library> &library, const char *what, Report &report,
                       const Arguments &...arguments) {
  try {
    library.emplace(arguments...);
    report.add_library(Library::kName, std::to_string(library->version()), library->library());
  } catch (const std::exception &error) {
    report.add_note(std::string("No reference for ") + what + ": " + error.what() + ".");
  }
}

/// Name of the library with its version.
template <typename Library>
std::string name_of(const Library &library) {
  return std::string(Library::kName) + ' ' + std::to_string(library.version());
}

}  // namespace mpbench
