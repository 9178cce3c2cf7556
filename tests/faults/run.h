// One run of a scenario: calls of the library under the planned fault, and their results.
//
// A call that fails must report the documented error, and the same call must then succeed, so that
// the scenario completes despite the fault, with the results of a run without faults.  Catch2 is
// not used here, because it allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "fault.h"
#include "mpcore.h"

namespace mptest::faults {

/// A run cannot continue; the finding has been noted.
struct Stuck : std::exception {};

/// Expected error of a fault.
struct Failure {
  mp_status_t status;
  const char *words;  ///< part of the message
};
Failure failure_of(Source source);

class Run {
 public:
  /// Creates the context; with MP_TEST_DEVICE=cuda, of the GPU.
  /// @param has_allocator  its objects allocate through an allocator that may fail
  /// @param findings  output, also if the constructor throws Stuck
  Run(bool has_allocator, std::string &findings);
  Run(const Run &) = delete;
  Run &operator=(const Run &) = delete;

  mp_context_t context() const { return context_; }

  /// Makes a call, and repeats it after a fault.
  /// @param put_back  restores data that a failed call may have changed according to the header
  template <class Body, class PutBack>
  void call(const char *function, const Body &body, const PutBack &put_back) {
    if (succeeds(function, body)) return;
    put_back();
    if (!succeeds(function, body)) stop("failed again, without a fault");
  }
  template <class Body>
  void call(const char *function, const Body &body) {
    call(function, body, [] {});
  }

  /// The same for a call that creates an object; a failed call must not write the handle.
  template <class Handle, class Body>
  void create(const char *function, Handle &handle, const Body &body) {
    const auto untouched = reinterpret_cast<Handle>(uintptr_t{0x5a5a5a5a});
    handle = untouched;
    if (succeeds(function, body)) return;
    if (handle != untouched) note("wrote its new object though it failed");
    if (!succeeds(function, body)) stop("failed again, without a fault");
  }

  /// Makes a call once, even if it fails.
  template <class Body>
  void attempt(const char *function, const Body &body) {
    (void)succeeds(function, body);
  }

  /// Makes a call without a status, which must succeed under every fault.
  template <class Body>
  void destroy(const char *function, const Body &body) {
    begin(function);
    body();
    end();
  }

  /// Disables faults between these two calls, in parts that other scenarios test.
  void spare() { is_spared_ = true; }
  void spare_no_more() { is_spared_ = false; }

  /// Device memory until finish(), filled with small numbers.
  void *tensor(mp_dtype_t dtype, int64_t count, int seed = 1);
  float *floats(int64_t count, int seed = 1) {
    return static_cast<float *>(tensor(MP_FP32, count, seed));
  }
  int32_t *integers(const std::vector<int32_t> &values);
  /// Device memory until finish(), filled with zeros.
  void *bytes(size_t count);

  /// Adds `bytes` of host or device memory to the results.
  void record(const void *host, size_t bytes);
  void record_device(const void *device, size_t bytes);

  /// Frees the memory and destroys the context.
  void finish();

  const std::vector<uint8_t> &results() const { return results_; }

  /// A communicator of two ranks; the other rank has only zeros.
  mp_comm_t comm();

 private:
  template <class Body>
  bool succeeds(const char *function, const Body &body) {
    begin(function);
    const mp_status_t status = body();
    end();
    if (status != MP_SUCCESS) check_failure(status);
    return status == MP_SUCCESS;
  }

  void begin(const char *function);
  void end();
  void check_failure(mp_status_t status);
  void note(const std::string &what);
  [[noreturn]] void stop(const std::string &what);
  void upload(void *device, const void *host, size_t bytes);

  static void *allocate(size_t bytes, void *user);
  static void release(void *block, size_t bytes, void *user);
  static int all_reduce(const void *send, void *recv, size_t count, mp_dtype_t dtype,
                        mp_reduce_op_t op, mp_stream_t stream, void *user);
  static int group_begin(void *user);
  static int group_end(void *user);

  mp_context_t context_ = nullptr;
  const Source source_;  ///< kind of the fault
  const bool persists_;
  const char *function_ = "";
  std::vector<void *> memory_;
  std::vector<uint8_t> results_;
  std::string &findings_;
  std::vector<std::pair<void *, size_t>> blocks_;  ///< allocated through the allocator
  int group_depth_ = 0;                            ///< groups of the communicator
  bool is_spared_ = false;
  bool had_struck_ = false;  ///< value before the current call
};

#define FAULTY_CALL(run, function, ...) (run).call(#function, [&] { return function(__VA_ARGS__); })
#define FAULTY_CREATE(run, function, handle, ...) \
  (run).create(#function, handle, [&] { return function(&(handle), __VA_ARGS__); })
#define FAULTY_DESTROY(run, function, handle) (run).destroy(#function, [&] { function(handle); })

}  // namespace mptest::faults
