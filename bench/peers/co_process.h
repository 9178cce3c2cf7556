// A child process that answers requests, one line each.
#pragma once

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

extern char **environ;

namespace mpbench {

/// Connected to the child's stdin and stdout; the child ends when its stdin closes.
class CoProcess {
 public:
  explicit CoProcess(const std::vector<std::string> &command) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    std::vector<char *> arguments;
    for (const std::string &argument : command)
      arguments.push_back(const_cast<char *>(argument.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (posix_spawnp(&process_, arguments[0], &actions, nullptr, arguments.data(), environ) != 0)
      process_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    socket_ = ends[0];
  }
  ~CoProcess() {
    if (socket_ >= 0) close(socket_);
    if (process_ >= 0) waitpid(process_, nullptr, 0);
  }
  CoProcess(const CoProcess &) = delete;
  CoProcess &operator=(const CoProcess &) = delete;

  /// Sends a line and returns the answer; empty if the program has ended.
  std::string ask(const std::string &line) {
    const std::string sent = line + '\n';
    // Writing to a pipe without a reader must not end this program.
    if (send(socket_, sent.data(), sent.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(sent.size()))
      return {};
    std::string answer;
    for (char c = 0; recv(socket_, &c, 1, 0) == 1;) {
      if (c == '\n') return answer;
      answer += c;
    }
    return {};
  }

 private:
  int socket_ = -1;
  pid_t process_ = -1;
};

}  // namespace mpbench
