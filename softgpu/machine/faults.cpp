#include "softgpu/machine/faults.h"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "softgpu/machine/block.h"
#include "softgpu/options.h"
#include "softgpu/program/program.h"

namespace softgpu {
namespace {

constexpr size_t kMaxStatement = 160;  // maximum characters of a statement in a message
constexpr int kMaxPrinted = 2;         // violations of one kind at one location

std::atomic<uint64_t> num_found{0};
ViolationListener listener = nullptr;
void *listener_context = nullptr;

std::string format_list(const char *text, va_list list) {
  va_list again;
  va_copy(again, list);
  std::string result(static_cast<size_t>(std::max(0, vsnprintf(nullptr, 0, text, list))), '\0');
  vsnprintf(result.data(), result.size() + 1, text, again);
  va_end(again);
  return result;
}

/// Returns "block 3", or "block (3, 1, 0)" for a grid of more than one dimension.
std::string name_block(const Block &block) {
  const Dim3 &n = block.grid->num_blocks;
  if (n[1] == 1 && n[2] == 1) return format("block %u", block.id[0]);
  return format("block (%u, %u, %u)", block.id[0], block.id[1], block.id[2]);
}

std::mutex &report_mutex() {
  static std::mutex &mutex = *new std::mutex;
  return mutex;
}

/// Returns false if the limit for this kind at this location is reached.
bool is_wanted(const std::string &place, const std::string &kind) {
  static auto &seen = *new std::map<std::pair<std::string, std::string>, int>;
  const std::lock_guard lock(report_mutex());
  return listener != nullptr || seen[{place, kind}]++ < kMaxPrinted;
}

void report(const std::string &message) {
  const std::lock_guard lock(report_mutex());
  if (listener != nullptr) {
    listener(listener_context, message);
  } else {
    fprintf(stderr, "softgpu: VIOLATION: %s\n", message.c_str());
  }
}

}  // namespace

std::string format(const char *text, ...) {
  va_list list;
  va_start(list, text);
  std::string result = format_list(text, list);
  va_end(list);
  return result;
}

std::string location(Warp &warp, const Instruction &i, int lane) {
  const Program &program = *warp.program;
  const SourceLine &source = program.source[program.index_of(i)];
  const std::string threads =
      lane < 0 ? format("threads %d to %d", warp.first_thread(), warp.thread_of(kWarpSize - 1))
               : format("thread %d", warp.thread_of(lane));
  return format("kernel %s, %s, %s, %s:%u: %s", program.pretty_name.c_str(),
                name_block(*warp.block).c_str(), threads.c_str(), program.file.c_str(), source.line,
                source.text.substr(0, kMaxStatement).c_str());
}

void fault(Warp &warp, const Instruction &i, int lane, const char *text, ...) {
  va_list list;
  va_start(list, text);
  const std::string message = format_list(text, list) + "\n    " + location(warp, i, lane);
  va_end(list);
  fault(message);
}

void fault(FaultKind kind, Warp &warp, const Instruction &i, int lane, const char *text, ...) {
  va_list list;
  va_start(list, text);
  const std::string message = format_list(text, list) + "\n    " + location(warp, i, lane);
  va_end(list);
  fault(message, kind);
}

void fault(const std::string &message, FaultKind kind) {
  num_found++;
  if (options().aborts) {
    fprintf(stderr, "softgpu: FAULT: %s\n", message.c_str());
    abort();
  }
  throw Fault(message, kind);
}

void violation(Warp &warp, const Instruction &i, int lane, const char *text, ...) {
  num_found++;
  const Program &program = *warp.program;
  if (!is_wanted(program.name + format("+%u", program.index_of(i)), text)) return;
  va_list list;
  va_start(list, text);
  const std::string message = format_list(text, list);
  va_end(list);
  report(message + "\n    " + location(warp, i, lane));
}

void violation(const std::string &text) {
  num_found++;
  if (is_wanted("", text)) report(text);
}

void listen_to_violations(ViolationListener function, void *context) {
  listener = function;
  listener_context = context;
}

uint64_t num_violations() {
  return num_found;
}

}  // namespace softgpu
