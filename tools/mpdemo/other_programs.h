// Programs that mpdemo starts: gnuplot and bible.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "support/command_line.h"

namespace mpdemo {

/// Returns the path of a program in a folder of PATH; empty if there is none.  Only absolute
/// folders count, so that no file of the current folder is started by accident.
inline std::string find_program(const std::string &name) {
  const char *const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.starts_with('/')) continue;
    const std::filesystem::path program = std::filesystem::path(folder) / name;
    std::error_code ignored;
    if (std::filesystem::is_regular_file(program, ignored) && access(program.c_str(), X_OK) == 0)
      return program;
  }
  return {};
}

/// Draws the pictures of a gnuplot script in its folder.
/// @return the exit code of gnuplot, or -1 if it cannot be started
inline int run_gnuplot(const std::filesystem::path &folder, const std::string &script) {
  const std::string program = find_program("gnuplot");
  if (program.empty()) return -1;
  const std::string command = "cd " + mptools::quoted(std::filesystem::absolute(folder)) +
                              " && exec " + mptools::quoted(program) + " -d " +
                              mptools::quoted(script);
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// Returns the output of Debian's command bible, one verse per line; empty if it cannot be started
/// or fails.
inline std::string text_of_bible() {
  const std::string program = find_program("bible");
  if (program.empty()) return {};
  std::FILE *const pipe =
      popen((mptools::quoted(program) + " -f gen1:1-rev22:21 2> /dev/null").c_str(), "r");
  if (pipe == nullptr) return {};
  std::string output;
  char bytes[1 << 16];
  for (size_t got = 0; (got = std::fread(bytes, 1, sizeof bytes, pipe)) > 0;)
    output.append(bytes, got);
  return pclose(pipe) == 0 ? output : "";
}

}  // namespace mpdemo
