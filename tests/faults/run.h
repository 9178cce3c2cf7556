// One run of a scenario: calls of the library under the planned fault, and what they computed.
//
// A call that fails must say so as the header has it, and the same call must then succeed, so that a
// scenario goes to its end whatever is refused on the way; and there its results are those of a run
// without any fault.  Catch2 has no part in it: it would allocate.
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

/// A run that cannot go on; the finding has been noted.
struct Stuck : std::exception {};

/// What a fault must lead to.
struct Failure {
  mp_status_t status;
  const char *words;  ///< of the sentence
};
Failure failure_of(Source source);

class Run {
 public:
  /// Creates the context; with MP_TEST_DEVICE=cuda, of the GPU.
  /// @param has_allocator  its objects have their memory from an allocator that may refuse
  /// @param findings  appended to, also where this throws Stuck
  Run(bool has_allocator, std::string &findings);
  Run(const Run &) = delete;
  Run &operator=(const Run &) = delete;

  mp_context_t context() const { return context_; }

  /// Makes a call, twice where the fault strikes.
  /// @param put_back  () -> anything: what the header says a failed call may have spoilt
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

  /// The same for one that makes an object, which only success may write.
  template <class Handle, class Body>
  void create(const char *function, Handle &handle, const Body &body) {
    const auto untouched = reinterpret_cast<Handle>(uintptr_t{0x5a5a5a5a});
    handle = untouched;
    if (succeeds(function, body)) return;
    if (handle != untouched) note("wrote its new object though it failed");
    if (!succeeds(function, body)) stop("failed again, without a fault");
  }

  /// One that is not made again where it fails.
  template <class Body>
  void attempt(const char *function, const Body &body) {
    (void)succeeds(function, body);
  }

  /// A call without a status, which must do its work under every fault.
  template <class Body>
  void destroy(const char *function, const Body &body) {
    begin(function);
    body();
    end();
  }

  /// Between these nothing is refused: what another scenario is about.
  void spare() { is_spared_ = true; }
  void spare_no_more() { is_spared_ = false; }

  /// Device memory until finish(), with small numbers in it.
  void *tensor(mp_dtype_t dtype, int64_t count, int seed = 1);
  float *floats(int64_t count, int seed = 1) {
    return static_cast<float *>(tensor(MP_FP32, count, seed));
  }
  int32_t *integers(const std::vector<int32_t> &values);
  /// Zeros.
  void *bytes(size_t count);

  /// Makes `bytes` of the host, or of the device, a part of the results.
  void record(const void *host, size_t bytes);
  void record_device(const void *device, size_t bytes);

  /// Frees the memory and destroys the context.
  void finish();

  const std::vector<uint8_t> &results() const { return results_; }

  /// A communicator of two ranks, of which the other has only zeros.
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
  const Source source_;  ///< of the fault
  const bool persists_;
  const char *function_ = "";
  std::vector<void *> memory_;
  std::vector<uint8_t> results_;
  std::string &findings_;
  std::vector<std::pair<void *, size_t>> blocks_;  ///< that the allocator has given out
  int group_depth_ = 0;                            ///< of the communicator
  bool is_spared_ = false;
  bool had_struck_ = false;  ///< before the call that runs
};

#define FAULTY_CALL(run, function, ...) (run).call(#function, [&] { return function(__VA_ARGS__); })
#define FAULTY_CREATE(run, function, handle, ...) \
  (run).create(#function, handle, [&] { return function(&(handle), __VA_ARGS__); })
#define FAULTY_DESTROY(run, function, handle) (run).destroy(#function, [&] { function(handle); })

}  // namespace mptest::faults
