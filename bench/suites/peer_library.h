// A library of kernels beside mpcore.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "bench/rows/report.h"

namespace mpbench {

/// Stays empty where it is missing; a note says so, and `what` has no peer then.
/// @tparam Library  CublasLt or Cudnn, made of `arguments`
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

/// With its version.
template <typename Library>
std::string name_of(const Library &library) {
  return std::string(Library::kName) + ' ' + std::to_string(library.version());
}

}  // namespace mpbench
