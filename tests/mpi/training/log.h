// Log of one rank, on stderr and in a separate file: mpirun may lose output printed right before
// MPI_Abort.
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace mptest {

class Log {
 public:
  explicit Log(std::filesystem::path path) : path_(std::move(path)) {
    std::filesystem::remove(path_);
  }

  /// Thread-safe.
  void tell(const std::string &line) const {
    std::ofstream(path_, std::ios::app) << line + '\n' << std::flush;
    std::fprintf(stderr, "%s\n", line.c_str());
  }

 private:
  std::filesystem::path path_;
};

}  // namespace mptest
