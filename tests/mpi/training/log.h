// What one rank tells.  To stderr, and to a file of its own: of what is printed right before MPI_Abort,
// mpirun may lose the end.
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

  /// May be called by any thread.
  void tell(const std::string &line) const {
    std::ofstream(path_, std::ios::app) << line + '\n' << std::flush;
    std::fprintf(stderr, "%s\n", line.c_str());
  }

 private:
  std::filesystem::path path_;
};

}  // namespace mptest
