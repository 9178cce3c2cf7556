// Arguments of random calls: numbers, memory and objects, derived from the bytes of a fuzzer.
//
// The library trusts pointers and handles of a caller (SECURITY.md), so they are valid: host arrays
// and structs have exactly the required size, so that AddressSanitizer detects reads past their
// end; objects are destroyed only when no existing object depends on them.  All other values are
// arbitrary.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "mpcore.h"
#include "tests/fuzz/found.h"

namespace fuzz {

/// True if FUZZ_INJECT names this error, which the fuzzer then makes and must detect.
bool has_injected(const char *mistake);

/// Maximum length of lists.
constexpr uint32_t kMaxElements = 40;
/// Bytes after every device pointer, and limit of a context's allocations: graphs are zeroed when
/// they are created, which takes minutes for 16 GB.
constexpr size_t kMaxBytes = 1 << 20;

class World {
 public:
  World(const uint8_t *bytes, size_t size);
  /// Destroys every object, and checks that the allocator of the contexts got all memory back.
  ~World();
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  bool has_bytes() { return bytes_.remaining_bytes() > 0; }
  /// Begins a call with a new length of its host arrays.
  void begin_call();
  /// Checks the status of a call, and that a failed call has not written its outputs.
  void end_call(const char *function, mp_status_t status);

  // ------------------------------------------------------------------------- numbers

  bool once_in(int times) { return bytes_.ConsumeIntegralInRange(1, times) == times; }
  /// True if a field of an initialized struct is changed.  In half of the calls this is rare, so
  /// that most structs are valid.
  bool changes_field() { return once_in(is_careful_ ? 100 : 8); }
  uint32_t index_below(uint32_t count) {
    return bytes_.ConsumeIntegralInRange<uint32_t>(0, count - 1);
  }
  /// Returns mostly the same value in a careful call, so that shapes match.
  int64_t integer();
  double real();
  /// Length of a host array of this call; rarely negative for a signed argument.
  int64_t count(bool is_signed);
  /// Size of at most one megabyte.
  size_t number_of_bytes();
  /// Returns a pointer to the size of a text buffer.
  size_t *room();

  /// Rarely not an enumerator.
  template <class Enum, size_t kCount>
  Enum one_of(const Enum (&values)[kCount]) {
    return once_in(16) ? static_cast<Enum>(integer()) : values[index_below(kCount)];
  }

  // ------------------------------------------------------------------------- memory

  /// Name of an operation, attribute, kernel, pattern or list, or random bytes.
  const char *text();
  /// Text buffer for output, with the size in *room().
  char *written_text();
  /// Device memory, with any alignment if `alignment` is 1; rarely NULL.  Kernels do not access it,
  /// and copies are limited by number_of_bytes().
  void *device(size_t alignment);
  /// Aligned device memory; other places have other addresses.
  static void *good_device(uint32_t place);
  /// Allows failures of the contexts' allocators from now on.
  void let_memory_run_out() { memory_may_run_out_ = true; }

  /// Zeroed memory of exactly that size; lives as long as the World.
  void *keep(size_t bytes);
  /// Host array with one element more than the longest count of this call, filled by `value`;
  /// rarely NULL.
  template <class T, class Value>
  T *array(const Value &value, uint32_t count = 0) {
    if (once_in(16)) return nullptr;
    const uint32_t elements = std::max(count, elements_ + 1);
    T *const made = static_cast<T *>(keep(elements * sizeof(T)));
    const uint32_t varied = std::min<uint32_t>(elements, index_below(8) + 1);
    for (uint32_t i = 0; i < varied; ++i) made[i] = value();
    for (uint32_t i = varied; i < elements; ++i) made[i] = made[i % varied];
    if (has_injected("overrun")) return new (keep(sizeof(T))) T(*made);
    return made;
  }

  /// Offsets of the parts of a list with the length of this call; rarely invalid.
  int32_t *ascending();

  /// Struct as compiled by its caller: sometimes with another size, and then exactly that many
  /// bytes.
  template <class T>
  T *as_compiled(const T &value) {
    if (once_in(16)) return nullptr;
    T *const made = uninitialised<T>();
    std::memcpy(made, &value, std::min(last_size_, sizeof value));
    const uint32_t size = static_cast<uint32_t>(last_size_);
    std::memcpy(made, &size, sizeof size);
    return made;
  }
  /// Pointer for functions that initialize a struct of last_size() bytes.
  template <class T>
  T *uninitialised() {
    last_size_ = size_of_struct(sizeof(T));
    last_bytes_ = std::max(last_size_, sizeof(uint32_t));
    void *const made = keep(last_bytes_);
    std::memset(made, once_in(2) ? 0 : 255, last_bytes_);
    return static_cast<T *>(made);
  }
  size_t last_size() const { return last_size_; }
  /// Struct without struct_size.
  template <class T>
  T *plain(const T &value) {
    return once_in(16) ? nullptr : new (keep(sizeof value)) T(value);
  }

  /// Marks an output, which an error below 40 must leave unchanged.
  template <class T>
  T *output(T *value) {
    return is_output(value, sizeof *value), value;
  }
  /// Marks the last result of as_compiled() as output.
  template <class T>
  T *compiled_output(T *value) {
    return is_output(value, last_bytes_), value;
  }

  // ------------------------------------------------------------------------- objects

  /// An existing object; rarely NULL.
  template <class Handle>
  Handle handle() {
    return static_cast<Handle>(pick(&tag<Handle>));
  }
  /// Marks an object as used by the call, like handle().
  void uses(void *handle) { used_.push_back(handle); }
  /// Registers an object that depends on the handles used since begin_call().
  template <class Handle, class Destroy>
  void has_created(Handle made, const Destroy &destroy) {
    add(&tag<Handle>, made, [=] { destroy(made); });
  }
  /// Registers a borrowed object, which lives as long as its owner.
  template <class Handle>
  void has_lent(Handle made) {
    add(&tag<Handle>, made, nullptr);
  }
  /// Makes the first handle of this call depend on the others.
  void first_needs_others();
  /// Destroys an object that no other one needs; returns whether there was one.
  template <class Handle>
  bool destroys_one() {
    return destroy_one(&tag<Handle>);
  }

  /// Callbacks of mp_allocator and mp_comm; `user` is the World.
  static void *allocate(size_t bytes, void *user);
  static void release(void *block, size_t bytes, void *user);
  static int all_reduce(const void *send, void *recv, size_t count, mp_dtype_t dtype,
                        mp_reduce_op_t op, mp_stream_t stream, void *user);
  static int group(void *user);

 private:
  template <class Handle>
  static constexpr char tag = 0;

  struct Object {
    const void *kind;
    void *handle;
    std::function<void()> destroy;  ///< empty: borrowed
    std::vector<void *> needs;
  };
  struct Untouched {
    const void *memory;
    std::vector<char> before;
  };

  size_t size_of_struct(size_t usual);
  void is_output(const void *memory, size_t bytes);
  void *pick(const void *kind);
  void add(const void *kind, void *handle, std::function<void()> destroy);
  bool destroy_one(const void *kind);
  bool is_needed(const Object &object) const;
  void destroy(const Object &object);

  FuzzedDataProvider bytes_;
  bool memory_may_run_out_ = false;
  bool is_careful_ = false;
  int64_t favourite_ = 0;
  uint32_t elements_ = 0;
  size_t room_ = 0;
  size_t last_size_ = 0, last_bytes_ = 0;
  std::vector<std::unique_ptr<void, void (*)(void *)>> kept_;
  std::vector<Untouched> untouched_;
  std::vector<Object> objects_;
  std::vector<void *> used_;
  std::map<void *, size_t> allocated_;
};

}  // namespace fuzz
