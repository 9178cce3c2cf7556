#include "other_programs.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "support/command_line.h"

namespace mpdemo {

namespace fs = std::filesystem;

std::string find_program(const std::string &name) {
  const char *const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.starts_with('/')) continue;
    const fs::path program = fs::path(folder) / name;
    std::error_code ignored;
    if (fs::is_regular_file(program, ignored) && access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

int run_gnuplot(const fs::path &folder, const std::string &script) {
  const std::string program = find_program("gnuplot");
  if (program.empty()) return -1;
  const std::string command = "cd " + mptools::quoted(fs::absolute(folder)) + " && exec " +
                              mptools::quoted(program) + " -d " + mptools::quoted(script);
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

std::string text_of_bible() {
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
