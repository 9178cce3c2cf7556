#include "progress.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace mptest::faults {

Progress &progress() {
  static Progress *const shared = [] {
    void *const memory =
        mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    return new (memory) Progress{};
  }();
  return *shared;
}

void Progress::enter(const char *name) {
  std::snprintf(function, sizeof function, "%s", name);
}

void Progress::add(const std::string &text) {
  const size_t bytes = std::min(text.size(), sizeof findings - size);
  std::memcpy(findings + size, text.data(), bytes);
  size += bytes;
}

namespace {

[[noreturn]] void be_child(int seconds, const std::function<void()> &body) noexcept {
  // Disables Catch2's signal handlers.
  for (const int number : {SIGABRT, SIGFPE, SIGILL, SIGSEGV, SIGTERM}) signal(number, SIG_DFL);
  alarm(static_cast<unsigned>(seconds));
  body();
  _exit(EXIT_SUCCESS);
}

std::string wait_for_child(pid_t child) {
  int status = -1;
  if (waitpid(child, &status, 0) != child) std::abort();
  const Progress &shared = progress();
  std::string found(shared.findings, shared.size);
  if (WIFSIGNALED(status))
    found += "  killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
             strsignal(WTERMSIG(status)) + ") in " + shared.function + ", request " +
             std::to_string(shared.fault.at) + (shared.fault.persists ? " and all after it" : "") +
             "\n";
  else if (WEXITSTATUS(status) != EXIT_SUCCESS)
    found += "  ended with code " + std::to_string(WEXITSTATUS(status)) + " in " + shared.function +
             "\n";
  return found;
}

}  // namespace

std::string in_child(int seconds, const std::function<void()> &body) {
  progress().size = 0;
  progress().is_over = false;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) std::abort();
  if (child == 0) be_child(seconds, body);
  return wait_for_child(child);
}

}  // namespace mptest::faults
