// One run of a row of the catalogue: calls of the library under the planned fault, and their
// results.
//
// A call that fails must report the documented error, and the same call must then succeed, so that
// the run completes despite the fault, with the results of a run without faults.  Catch2 is not
// used here, because it allocates.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "fault.h"
#include "tests/support/calls/caller.h"

namespace mptest::faults {

/// A run cannot continue; the finding has been noted.
struct Stuck : std::exception {};

/// Expected error of a fault.
struct Failure {
  mp_status_t status;
  const char *words;  ///< part of the message
};
Failure failure_of(Source source);

class Run : public Caller {
 public:
  /// Creates the context; with MP_TEST_DEVICE=cuda, of the GPU.
  /// @param has_allocator  its objects allocate through an allocator that may fail
  /// @param findings  output, also if the constructor throws Stuck
  Run(bool has_allocator, std::string &findings);

  void pause_faults() override { is_paused_ = true; }
  void resume_faults() override { is_paused_ = false; }

  /// Frees the memory and destroys the context.
  void finish();

 private:
  void begin(const char *function) override;
  bool end(mp_status_t status) override;
  void complain(const std::string &what) override;
  void check_failure(mp_status_t status);
  [[noreturn]] void stop(const std::string &what);

  static void *allocate(size_t bytes, void *user);
  static void release_block(void *block, size_t bytes, void *user);
  int reduce() override;
  int begin_group() override;
  int end_group() override;

  const Source source_;  ///< kind of the fault
  const bool persists_;
  std::string &findings_;
  std::vector<std::pair<void *, size_t>> allocated_;  ///< blocks of the allocator
  int group_depth_ = 0;                               ///< groups of the communicator
  bool is_paused_ = false;
  bool had_struck_ = false;  ///< value before the current call
};

}  // namespace mptest::faults
