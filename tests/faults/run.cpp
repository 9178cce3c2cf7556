#include "run.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "progress.h"

namespace mptest::faults {

namespace {

constexpr int kCode = 7;  // error code of a failing communicator

int32_t device_of_environment() {
  const char *const name = std::getenv("MP_TEST_DEVICE");
  const bool is_cuda = name != nullptr && std::strcmp(name, "cuda") == 0;
  return is_cuda ? MP_DEVICE_CURRENT : MP_DEVICE_HOST;
}

}  // namespace

Failure failure_of(Source source) {
  switch (source) {
    case Source::kAllocator:
      return {MP_ERROR_OUT_OF_MEMORY, "allocator->alloc returned NULL for "};
    case Source::kComm:
      return {MP_ERROR_COMM, " returned 7"};
    default:
      return {MP_ERROR_OUT_OF_MEMORY, "out of host memory"};
  }
}

// ---------------------------------------------------------------------------- calls

Run::Run(bool has_allocator, std::string &findings)
    : Caller(nullptr),
      source_(planned_fault().source),
      persists_(planned_fault().persists),
      findings_(findings) {
  auto allocator = initialized<mp_allocator_t>();
  allocator.alloc = allocate;
  allocator.free = release_block;
  allocator.user = this;
  mp_context_config_t config = mp_context_config_default();
  config.device = device_of_environment();
  if (has_allocator) config.allocator = &allocator;
  CREATE(*this, mp_context_create, context_, &config);
}

void Run::finish() {
  release();
  DESTROY(*this, mp_context_destroy, context_);
  if (!allocated_.empty()) complain("has left " + std::to_string(allocated_.size()) + " blocks");
}

void Run::begin(const char *function) {
  Caller::begin(function);
  progress().enter(function);
  had_struck_ = has_struck();
  if (!is_paused_) arm();
}

bool Run::end(mp_status_t status) {
  disarm();
  if (group_depth_ != 0) {
    complain("does not end the group of its communicator");
    group_depth_ = 0;
  }
  if (status != MP_SUCCESS) check_failure(status);
  return status == MP_SUCCESS;
}

void Run::complain(const std::string &what) {
  findings_ += std::string("  ") + function_ + " " + what + "\n";
}

void Run::stop(const std::string &what) {
  complain(what);
  throw Stuck();
}

void Run::check_failure(mp_status_t status) {
  const std::string sentence = mp_last_error();
  const std::string said = std::string(mp_status_string(status)) + ": " + sentence;
  if (had_struck_ || !has_struck()) stop("failed without a fault: " + said);
  // Message of the library if it cannot allocate another one.
  constexpr const char *kWordsWithoutMemory =
      "a call failed; out of memory while storing its message";
  const Failure wanted = failure_of(source_);
  if (status == wanted.status && persists_ && sentence == kWordsWithoutMemory) return;
  const bool is_named = sentence.starts_with(std::string(function_) + ": ");
  if (status != wanted.status || !is_named || sentence.find(wanted.words) == std::string::npos)
    complain("said " + said);
}

// ---------------------------------------------------------------------------- callbacks

void *Run::allocate(size_t bytes, void *user) {
  if (is_refused(Source::kAllocator)) return nullptr;
  const Paused paused;
  void *const block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  static_cast<Run *>(user)->allocated_.emplace_back(block, bytes);
  return block;
}

void Run::release_block(void *block, size_t bytes, void *user) {
  const Paused paused;
  Run &run = *static_cast<Run *>(user);
  const auto found = std::ranges::find(run.allocated_, std::pair(block, bytes));
  if (found == run.allocated_.end())
    return run.complain("frees an unknown block, or with a wrong size");
  run.allocated_.erase(found);
  std::free(block);
}

int Run::reduce() {
  return is_refused(Source::kComm) ? kCode : 0;
}

int Run::begin_group() {
  if (is_refused(Source::kComm)) return kCode;
  ++group_depth_;
  return 0;
}

/// A group has ended even if group_end reports a failure.
int Run::end_group() {
  --group_depth_;
  return is_refused(Source::kComm) ? kCode : 0;
}

}  // namespace mptest::faults
