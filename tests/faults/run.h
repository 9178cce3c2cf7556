// One run of a row of the catalog: calls of the library under the planned fault, and their
// results.
//
// A call that fails must report the documented error, and the same call must then succeed, so that
// the run completes despite the fault, with the results of a run without faults.  Catch2 is not
// used here, because it allocates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "progress.h"
#include "tests/support/calls/caller.h"

namespace mptest::faults {

/// A run cannot continue; the finding has been noted.
struct Stuck : std::exception {};

class Run : public Caller {
 public:
  /// Creates the context; with MP_TEST_DEVICE=cuda, of the GPU.
  /// @param has_allocator  its objects allocate through an allocator that may fail
  /// @param findings  output, also if the constructor throws Stuck
  Run(bool has_allocator, std::string &findings)
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

  void pause_faults() override { is_paused_ = true; }
  void resume_faults() override { is_paused_ = false; }

  /// Frees the memory and destroys the context.
  void finish() {
    release();
    DESTROY(*this, mp_context_destroy, context_);
    if (!allocated_.empty()) complain("has left " + std::to_string(allocated_.size()) + " blocks");
  }

 private:
  void begin(const char *function) override {
    Caller::begin(function);
    progress().enter(function);
    had_struck_ = has_struck();
    if (!is_paused_) arm();
  }

  bool end(mp_status_t status) override {
    disarm();
    if (group_depth_ != 0) {
      complain("does not end the group of its communicator");
      group_depth_ = 0;
    }
    if (status != MP_SUCCESS) check_failure(status);
    return status == MP_SUCCESS;
  }

  void complain(const std::string &what) override {
    findings_ += std::string("  ") + function_ + " " + what + "\n";
  }

  /// Returns the status of the fault, and a part of its message.
  std::pair<mp_status_t, const char *> expected_error() const {
    switch (source_) {
      case Source::kAllocator:
        return {MP_ERROR_OUT_OF_MEMORY, "allocator->alloc returned NULL for "};
      case Source::kComm:
        return {MP_ERROR_COMM, " returned 7"};
      default:
        return {MP_ERROR_OUT_OF_MEMORY, "out of host memory"};
    }
  }

  void check_failure(mp_status_t status) {
    const std::string sentence = mp_last_error();
    const std::string said = std::string(mp_status_string(status)) + ": " + sentence;
    if (had_struck_ || !has_struck()) stop("failed without a fault: " + said);
    // Message of the library if it cannot allocate another one.
    constexpr const char *kWordsWithoutMemory =
        "a call failed; out of memory while storing its message";
    const auto [status_of_fault, words] = expected_error();
    if (status == status_of_fault && persists_ && sentence == kWordsWithoutMemory) return;
    const bool is_named = sentence.starts_with(std::string(function_) + ": ");
    if (status != status_of_fault || !is_named || sentence.find(words) == std::string::npos)
      complain("said " + said);
  }

  [[noreturn]] void stop(const std::string &what) {
    complain(what);
    throw Stuck();
  }

  static int32_t device_of_environment() {
    const char *const name = std::getenv("MP_TEST_DEVICE");
    const bool is_cuda = name != nullptr && std::string_view(name) == "cuda";
    return is_cuda ? MP_DEVICE_CURRENT : MP_DEVICE_HOST;
  }

  static void *allocate(size_t bytes, void *user) {
    if (is_refused(Source::kAllocator)) return nullptr;
    const Paused paused;
    void *const block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    static_cast<Run *>(user)->allocated_.emplace_back(block, bytes);
    return block;
  }

  static void release_block(void *block, size_t bytes, void *user) {
    const Paused paused;
    Run &run = *static_cast<Run *>(user);
    const auto found = std::ranges::find(run.allocated_, std::pair(block, bytes));
    if (found == run.allocated_.end())
      return run.complain("frees an unknown block, or with a wrong size");
    run.allocated_.erase(found);
    std::free(block);
  }

  int reduce() override { return is_refused(Source::kComm) ? kCode : 0; }

  int begin_group() override {
    if (is_refused(Source::kComm)) return kCode;
    ++group_depth_;
    return 0;
  }

  /// A group has ended even if group_end reports a failure.
  int end_group() override {
    --group_depth_;
    return is_refused(Source::kComm) ? kCode : 0;
  }

  static constexpr int kCode = 7;  ///< error code of a failing communicator

  const Source source_;  ///< kind of the fault
  const bool persists_;
  std::string &findings_;
  std::vector<std::pair<void *, size_t>> allocated_;  ///< blocks of the allocator
  int group_depth_ = 0;                               ///< groups of the communicator
  bool is_paused_ = false;
  bool had_struck_ = false;  ///< value before the current call
};

}  // namespace mptest::faults
