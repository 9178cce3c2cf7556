// Maker of the calls in the catalog: memory of their operands, the calls, their objects, and the
// results.
//
// The base class makes each call once and throws if it fails.  Derived classes make calls under
// injected faults (tests/faults), or with a wrong argument (test_arguments.cpp).  Contains no test
// macros, so that threads may use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "mpcore.h"
#include "tests/support/initialized.h"

namespace mptest {

using Bytes = std::vector<uint8_t>;

/// Device memory of a call that takes a workspace.
struct Workspace {
  void *data;
  size_t bytes;
};

class Caller {
 public:
  explicit Caller(mp_context_t context) : context_(context) {}
  virtual ~Caller();
  Caller(const Caller &) = delete;
  Caller &operator=(const Caller &) = delete;

  mp_context_t context() const { return context_; }

  // --------------------------------------------------------------------- memory

  /// Values in [-1, 1] in steps of 1/8, which depend only on the order of these functions.
  void *input(mp_dtype_t dtype, int64_t count);
  float *floats(int64_t count) { return static_cast<float *>(input(MP_FP32, count)); }
  /// Values in [0, below).
  int32_t *indices(int64_t count, int32_t below);
  /// Returns the device's copy of `count` elements.
  template <class T>
  T *upload(const T *host, size_t count) {
    return static_cast<T *>(upload_bytes(host, count * sizeof(T), sizeof(T)));
  }
  /// Initially zero; its contents become part of the results.
  void *output(mp_dtype_t dtype, int64_t count);
  float *sums(int64_t count) { return static_cast<float *>(output(MP_FP32, count)); }
  int64_t *counter() { return static_cast<int64_t *>(output(MP_INT64, 1)); }
  virtual mp_grad_stats_t stats() { return {sums(1), sums(1)}; }
  float *number(float value) { return upload(&value, 1); }
  uint64_t *dropout_offset() {
    return static_cast<uint64_t *>(allocate(sizeof(uint64_t), sizeof(uint64_t), false));
  }
  /// A workspace or the like; NULL for 0 bytes.
  void *scratch(size_t bytes);

  // --------------------------------------------------------------------- calls

  template <class... Params, class... Arguments>
  void call(const char *name, mp_status_t (*function)(Params...), const Arguments &...given) {
    std::tuple<Params...> arguments(given...);
    examine_and_call(name, function, arguments);
  }
  /// @param put_back  restores data that a failed call may have changed, according to the header
  template <class PutBack, class... Params, class... Arguments>
  void call_again(const PutBack &put_back, const char *name, mp_status_t (*function)(Params...),
                  const Arguments &...given) {
    std::tuple<Params...> arguments(given...);
    examine_and_call(name, function, arguments, put_back);
  }
  /// Calls the function with a pointer to `handle` as the first argument.
  template <class Handle, class... Params, class... Arguments>
  void create(const char *name, mp_status_t (*function)(Handle *, Params...), Handle &handle,
              const Arguments &...given) {
    const auto untouched = reinterpret_cast<Handle>(uintptr_t{0x5a5a5a5a});
    handle = untouched;
    std::tuple<Handle *, Params...> arguments(&handle, given...);
    examine_and_call(name, function, arguments, [&] {
      if (handle != untouched) complain("wrote its new object though it failed");
    });
  }
  /// Returns the workspace whose size the function writes to its last argument; also if the call
  /// does not require any, since it checks the pointer.
  template <class Function, class... Arguments>
  Workspace workspace(const char *name, const Function &function, const Arguments &...given) {
    size_t bytes = 0;
    call(name, function, given..., &bytes);
    if (bytes == 0) bytes = kWorkspaceAlignment;
    return {scratch(bytes), bytes};
  }
  /// Records the text that the function writes to its last two arguments.
  template <class Function, class... Arguments>
  void record_text(const char *name, const Function &function, const Arguments &...given) {
    size_t bytes = 0;
    call(name, function, given..., nullptr, &bytes);
    std::string text(bytes, '\0');
    call(name, function, given..., text.data(), &bytes);
    record(text);
  }
  /// Makes a call of any form, and `put_back` before each repetition.
  template <class Body, class PutBack>
  void repeat_until_success(const char *function, const Body &body, const PutBack &put_back) {
    while (!try_once(function, body)) put_back();
  }
  /// Makes a call once; returns whether it has succeeded.
  template <class Body>
  bool try_once(const char *function, const Body &body) {
    begin(function);
    return end(body());
  }
  /// Makes a call without a status, which must succeed under every fault.
  template <class... Params, class... Arguments>
  void destroy(const char *name, void (*function)(Params...), const Arguments &...given) {
    begin(name);
    function(given...);
    (void)end(MP_SUCCESS);
  }

  /// Exempts the calls until resume_faults() from faults, since other rows contain them.
  virtual void pause_faults() {}
  virtual void resume_faults() {}

  /// A communicator of two ranks; the other rank has only zeros.
  mp_comm_t comm();

  // --------------------------------------------------------------------- results

  void record(const void *host, size_t bytes);
  void record(std::string_view text) { record(text.data(), text.size()); }
  template <class T>
  void record_value(const T &value) {
    record(&value, sizeof value);
  }
  void record_device(const void *device, size_t bytes);

  /// Adds the outputs to the results and frees all memory.
  void release();
  const Bytes &results() const { return results_; }

 protected:
  /// Addresses of the arguments of a call.
  using ArgumentAddresses = std::span<void *const>;

  virtual void begin(const char *function);
  /// Returns false if the call must be repeated; throws if it must not have failed.
  virtual bool end(mp_status_t status);
  virtual void complain(const std::string &what);
  /// Called before a call.
  /// @param body  makes it with the values at the addresses
  /// @param put_back  restores the data for another call
  virtual void examine(const char * /*name*/, ArgumentAddresses,
                       const std::function<mp_status_t()> & /*body*/,
                       const std::function<void()> & /*put_back*/) {}

  virtual int reduce() { return 0; }
  virtual int begin_group() { return 0; }
  virtual int end_group() { return 0; }

  struct Block {
    void *data;
    size_t bytes;
    size_t alignment;  ///< alignment that calls require: of an element or a workspace
    bool is_output;
  };
  static constexpr size_t kWorkspaceAlignment = 256;
  const std::vector<Block> &blocks() const { return blocks_; }

  mp_context_t context_;
  const char *function_ = "";  ///< name of the current function

 private:
  template <class Function, class Arguments, class PutBack = void (*)()>
  void examine_and_call(
      const char *name, const Function &function, Arguments &arguments,
      const PutBack &put_back = [] {}) {
    const auto body = [&] { return std::apply(function, arguments); };
    std::apply(
        [&](auto &...argument) {
          void *const addresses[] = {&argument...};
          examine(name, addresses, body, put_back);
        },
        arguments);
    repeat_until_success(name, body, put_back);
  }
  void *allocate(size_t bytes, size_t alignment, bool is_output);
  void *upload_bytes(const void *host, size_t bytes, size_t alignment);

  std::vector<Block> blocks_;
  Bytes results_;
  int64_t num_inputs_ = 0;
};

#define CALL(caller, function, ...) (caller).call(#function, function, __VA_ARGS__)
#define CREATE(caller, function, handle, ...) \
  (caller).create(#function, function, handle, __VA_ARGS__)
#define WORKSPACE(caller, function, ...) (caller).workspace(#function, function, __VA_ARGS__)
#define RECORD_TEXT(caller, function, ...) (caller).record_text(#function, function, __VA_ARGS__)
#define DESTROY(caller, function, ...) (caller).destroy(#function, function, __VA_ARGS__)

}  // namespace mptest
