// What a random call is made of: numbers, memory and objects, all of them chosen by the bytes of a fuzzer.
//
// A caller is trusted with pointers and handles (SECURITY.md), so those given here are good: host arrays and structs
// are of exactly the size that the call says, so that AddressSanitizer sees a read behind them; objects are
// destroyed when nothing that lives was made of them.  All else is anything.
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

/// Whether FUZZ_INJECT names this mistake, which a fuzzer then makes and has to find.
bool has_injected(const char *mistake);

/// No list that a call gets is longer.
constexpr uint32_t kMaxElements = 40;
/// So much lies behind every device pointer, and no block of a context is larger: graphs are zeroed when they are made,
/// and that of 16 GB takes minutes.
constexpr size_t kMaxBytes = 1 << 20;

class World {
 public:
  World(const uint8_t *bytes, size_t size);
  /// Destroys every object; then the allocator of the contexts must have got all of its memory back.
  ~World();
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  bool has_bytes() { return bytes_.remaining_bytes() > 0; }
  /// Everything until the next one belongs to one call, whose host arrays have that many elements.
  void begin_call();
  /// What a call has returned, and what it was to leave untouched if it failed.
  void end_call(const char *function, mp_status_t status);

  // ------------------------------------------------------------------------- numbers

  bool once_in(int times) { return bytes_.ConsumeIntegralInRange(1, times) == times; }
  /// Of a struct that has been filled in.  In half of the calls that is so seldom that most structs make sense.
  bool changes_field() { return once_in(is_careful_ ? 100 : 8); }
  uint32_t index_below(uint32_t count) {
    return bytes_.ConsumeIntegralInRange<uint32_t>(0, count - 1);
  }
  /// In a careful call mostly one and the same, so that shapes fit each other.
  int64_t integer();
  double real();
  /// Elements of a host array of this call; for a signed argument seldom a number below 0.
  int64_t count(bool is_signed);
  /// At most of a megabyte.
  size_t number_of_bytes();
  /// What a pointer to the bytes of a text says is behind that text.
  size_t *room();

  /// Seldom no enumerator at all.
  template <class Enum, size_t kCount>
  Enum one_of(const Enum (&values)[kCount]) {
    return once_in(16) ? static_cast<Enum>(integer()) : values[index_below(kCount)];
  }

  // ------------------------------------------------------------------------- memory

  /// One that operations, attributes, kernels, patterns and lists have, or any bytes.
  const char *text();
  /// What a call writes one to; of the size that *room() says.
  char *written_text();
  /// Of device memory, of any alignment where `alignment` is 1; seldom NULL.  No kernel looks there, and copies are of
  /// at most the size of number_of_bytes().
  void *device(size_t alignment);
  /// The same, of the best alignment; other places have other addresses.
  static void *good_device(uint32_t place);
  /// From now on.  The allocator of a context may fail then, whenever the bytes say so.
  void let_memory_run_out() { memory_may_run_out_ = true; }

  /// Of exactly that size, and zeros; lives as long as the World.
  void *keep(size_t bytes);
  /// A host array of one element more than the longest count of this call, filled by `value`; seldom NULL.
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

  /// Where parts of a list begin and end, in a list of a call's length; seldom something else.
  int32_t *ascending();

  /// As its caller compiled it: of another size now and then, and then with that many bytes, no more.
  template <class T>
  T *as_compiled(const T &value) {
    if (once_in(16)) return nullptr;
    T *const made = uninitialised<T>();
    std::memcpy(made, &value, std::min(last_size_, sizeof value));
    const uint32_t size = static_cast<uint32_t>(last_size_);
    std::memcpy(made, &size, sizeof size);
    return made;
  }
  /// For the functions that fill in a struct of last_size() bytes.
  template <class T>
  T *uninitialised() {
    last_size_ = size_of_struct(sizeof(T));
    last_bytes_ = std::max(last_size_, sizeof(uint32_t));
    void *const made = keep(last_bytes_);
    std::memset(made, once_in(2) ? 0 : 255, last_bytes_);
    return static_cast<T *>(made);
  }
  size_t last_size() const { return last_size_; }
  /// Without a struct_size.
  template <class T>
  T *plain(const T &value) {
    return once_in(16) ? nullptr : new (keep(sizeof value)) T(value);
  }

  /// What a call writes to, which an error below 40 leaves as it is.
  template <class T>
  T *output(T *value) {
    return is_output(value, sizeof *value), value;
  }
  /// The same for what as_compiled() has just made.
  template <class T>
  T *compiled_output(T *value) {
    return is_output(value, last_bytes_), value;
  }

  // ------------------------------------------------------------------------- objects

  /// One that lives; seldom NULL.
  template <class Handle>
  Handle handle() {
    return static_cast<Handle>(pick(&tag<Handle>));
  }
  /// As if handle() had given it out.
  void uses(void *handle) { used_.push_back(handle); }
  /// After a call that took the handles given out since begin_call().
  template <class Handle, class Destroy>
  void has_created(Handle made, const Destroy &destroy) {
    add(&tag<Handle>, made, [=] { destroy(made); });
  }
  /// Lives as long as what it was borrowed from.
  template <class Handle>
  void has_lent(Handle made) {
    add(&tag<Handle>, made, nullptr);
  }
  /// The first handle of this call needs the others from now on.
  void first_needs_others();
  /// Destroys one that nothing needs, and says whether there was one.
  template <class Handle>
  bool destroys_one() {
    return destroy_one(&tag<Handle>);
  }

  /// The callbacks of an mp_allocator and an mp_comm; `user` is the World.
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
    std::function<void()> destroy;  ///< empty: lent
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
