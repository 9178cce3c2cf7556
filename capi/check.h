// Entry and exit of every function of the C ABI, and checks of its arguments.
//
// Each function passes its body to mp::call as a lambda.  mp::call opens an NVTX range and turns
// exceptions into a status, a message for mp_last_error and a line of log.  If the thread is
// cancelled during the call, it ends after the call.  The checks name the wrong argument:
//
//     mp_gemm: ld_a = 60 is smaller than k = 64 (op_a = N)
#pragma once

#include <pthread.h>

#include <atomic>
#include <cmath>
#include <cstring>

#include "capi/message.h"

namespace mp {

// ---------------------------------------------------------------------------- failures

/// Exception that ends a call.
struct CallError {
  mp_status_t status;
  Message why;
};

[[noreturn, gnu::cold]] void fail(mp_status_t status, std::initializer_list<Message::Part> why);
template <class... Parts>
[[noreturn]] void fail(mp_status_t status, const Parts &...parts) {
  fail(status, std::initializer_list<Message::Part>{parts...});
}

/// Fails unless `condition` is true; the other arguments are the parts of the message.  A macro, so
/// that the parts are evaluated only on failure.
#define MP_REQUIRE(condition, status, ...)             \
  do {                                                 \
    if (!(condition)) mp::fail(status, {__VA_ARGS__}); \
  } while (false)

/// Turns the current exception into a status, mp_last_error and a line of log.
/// @param is_returned  true if the caller receives the status; otherwise the error is always logged
mp_status_t report_failure(const char *function, bool is_returned) noexcept;

// ---------------------------------------------------------------------------- log

/// Messages above this level are discarded.  A separate variable: a disabled log costs one load.
extern std::atomic<int32_t> log_level;

inline bool log_enabled(mp_log_level_t level) {
  return static_cast<int32_t>(level) <= log_level.load(std::memory_order_relaxed);
}

/// Passes one line to the callback, if its level is enabled.
void write_log(mp_log_level_t level, const Message &line);
/// Passes a line of level MP_LOG_INFO that the user has requested to the callback, or writes it to
/// stderr if the callback does not receive that level.
void write_requested_log(const Message &line);

template <class... Parts>
void log(mp_log_level_t level, const Parts &...parts) {
  if (log_enabled(level)) write_log(level, Message(parts...));
}

/// Base of classes that are not copied.
struct NotCopied {
  NotCopied() = default;
  NotCopied(const NotCopied &) = delete;
  NotCopied &operator=(const NotCopied &) = delete;
};

// ---------------------------------------------------------------------------- profiler

/// NVTX range of a call: domain "mpcore", name of the function, and a line of text with the problem
/// sizes as payload, "m = 4096, n = 4096, ...".  The text is formatted only under a profiler;
/// otherwise the overhead is a load and a branch.
class ProfilerRange : NotCopied {
 public:
  /// Opens the range.
  /// @param problem  () -> Message: text of the payload
  template <class Problem>
  ProfilerRange(const char *function, const Problem &problem) : is_open_(profiler_listens()) {
    if (is_open_) push(function, problem());
  }
  ~ProfilerRange() {
    if (is_open_) pop();
  }

 private:
  /// True if a profiler is attached and the build has NVTX's headers.
  static bool profiler_listens();
  static void push(const char *function, const Message &problem);
  static void pop();

  const bool is_open_;
};

// ---------------------------------------------------------------------------- entry and exit

/// Scope that defers pthread_cancel, whose unwinding would terminate the process at the first
/// noexcept function.
class NotCancelled : NotCopied {
 public:
  NotCancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }

 private:
  int before_;
};

template <class Problem, class Body>
mp_status_t uncancelled_call(const char *function, const Problem &problem, const Body &body,
                             bool is_returned) noexcept {
  const NotCancelled not_cancelled;
  const ProfilerRange range(function, problem);
  log(MP_LOG_DEBUG, function);
  try {
    body();
    return MP_SUCCESS;
  } catch (...) {
    return report_failure(function, is_returned);
  }
}

/// Runs the body of the API function `function`, then ends the thread if it has been cancelled.
/// @param problem  () -> Message: sizes for the profiler; see nvtx_payload.h
template <class Problem, class Body>
mp_status_t call(const char *function, const Problem &problem, const Body &body) {
  const mp_status_t status = uncancelled_call(function, problem, body, true);
  pthread_testcancel();
  return status;
}

/// Runs the body of a function without sizes.
template <class Body>
mp_status_t call(const char *function, const Body &body) {
  return call(
      function, [] { return Message(); }, body);
}

/// Runs the body of a function without a status.  The thread is not cancelled: C++ destructors,
/// which cannot be unwound, call such functions.
template <class Body>
void call_void(const char *function, const Body &body) noexcept {
  (void)uncancelled_call(
      function, [] { return Message(); }, body, false);
}

/// Scope for API calls made by an API call: their failures are logged only by the outer call.
class NestedCallScope : NotCopied {
 public:
  NestedCallScope();
  ~NestedCallScope();

 private:
  const bool was_part_of_a_call_;
};

/// Fails with the message of the last call if `status` is an error.
inline void require_success(mp_status_t status) {
  if (status != MP_SUCCESS) fail(status, mp_last_error());
}

// ---------------------------------------------------------------------------- arguments

/// Fails if a handle or host pointer is NULL.
template <class T>
T &require_pointer(T *pointer, const char *name) {
  MP_REQUIRE(pointer != nullptr, MP_ERROR_INVALID_ARGUMENT, name, " = NULL");
  return *pointer;
}

inline bool is_aligned(const void *pointer, size_t alignment) {
  return reinterpret_cast<uintptr_t>(pointer) % alignment == 0;
}

/// Fails if a device pointer is misaligned; NULL is allowed.
inline void require_aligned(const void *pointer, const char *name, size_t alignment) {
  MP_REQUIRE(is_aligned(pointer, alignment), MP_ERROR_MISALIGNED, name, " = ", pointer,
             " is not aligned to ", alignment, " bytes");
}

/// Fails if a device pointer is NULL or misaligned.
inline void require_device(const void *pointer, const char *name, size_t alignment) {
  MP_REQUIRE(pointer != nullptr, MP_ERROR_INVALID_ARGUMENT, name, " = NULL");
  require_aligned(pointer, name, alignment);
}

template <class T>
void require_aligned(const T *pointer, const char *name) {
  require_aligned(pointer, name, alignof(T));
}

template <class T>
void require_device(const T *pointer, const char *name) {
  require_device(pointer, name, alignof(T));
}

/// Checks fields of a struct: check(s.a, "a"), check(s.b, "b"), ...  A macro, so that each name is
/// written once.
#define MP_CHECK_FIELDS(check, s, ...) MP_CHECK_EACH(MP_CHECK_FIELD, check, s, __VA_ARGS__)
/// Checks fields of the argument `tensors` of a call: check(t.x, "tensors->x"), ...
#define MP_CHECK_TENSORS(check, t, ...) MP_CHECK_EACH(MP_CHECK_TENSOR, check, t, __VA_ARGS__)

#define MP_CHECK_EACH(each, check, s, ...)                                                     \
  do {                                                                                         \
    const auto &checked_struct = s;                                                            \
    const auto check_field = [&](const auto &field, const char *name) { check(field, name); }; \
    MP_FOR_EACH(each, __VA_ARGS__)                                                             \
  } while (false)
#define MP_CHECK_FIELD(name) check_field(checked_struct.name, #name);
#define MP_CHECK_TENSOR(name) check_field(checked_struct.name, "tensors->" #name);

/// Fails with a message that lists the enumerators in [first, last].
[[noreturn, gnu::cold]] void fail_enum(const char *name, int32_t value, Enumerators all,
                                       int32_t first, int32_t last);

template <class Enum>
void require_enum(const Enum &field, const char *name, Enum first, Enum last) {
  const int32_t value = enum_value(field);
  if (value < enum_value(first) || value > enum_value(last))
    fail_enum(name, value, enumerators_of<Enum>(), enum_value(first), enum_value(last));
}

/// Fails unless the field has one of the enumerators of its type, which must be contiguous.
template <class Enum>
void require_enum(const Enum &field, const char *name) {
  const Enumerators all = enumerators_of<Enum>();
  require_enum(field, name, static_cast<Enum>(all.front().value),
               static_cast<Enum>(all.back().value));
}

inline void require_dtype(const mp_dtype_t &field, const char *name) {
  require_enum(field, name, MP_FP16, kLastFloatType);
}

/// Checks the type of labels or indices.
inline void require_integer_dtype(const mp_dtype_t &field, const char *name) {
  require_enum(field, name, MP_INT32, MP_INT64);
}

/// Fails unless a field of a later version is 0 or NULL.
template <class Value>
void require_unset(Value value, const char *name) {
  MP_REQUIRE(value == Value{}, MP_ERROR_UNSUPPORTED, name, " = ", value,
             " is not supported by this version");
}

/// Integer with its name in messages.
struct NamedNumber {
  int64_t value;
  const char *name;
};

inline void require_not_negative(int64_t value, const char *name) {
  MP_REQUIRE(value >= 0, MP_ERROR_INVALID_ARGUMENT, name, " = ", value, " is negative");
}

/// Fails unless `value` is at least 1.
inline void require_positive(int64_t value, const char *name) {
  MP_REQUIRE(value >= 1, MP_ERROR_INVALID_ARGUMENT, name, " = ", value, " must be at least 1");
}

/// Limit of step counters: fp64 represents t exactly, and random counters reserve 52 bits for it.
constexpr int64_t kMaxSteps = int64_t{1} << 52;

inline void require_step(int64_t t) {
  MP_REQUIRE(t >= 0 && t <= kMaxSteps, MP_ERROR_INVALID_ARGUMENT, "t = ", t,
             " is outside [0, 2^52]");
}

inline void require_finite(float value, const char *name) {
  MP_REQUIRE(std::isfinite(value), MP_ERROR_INVALID_ARGUMENT, name, " = ", value, " is not finite");
}

inline void require_finite_not_negative(float value, const char *name) {
  require_finite(value, name);
  MP_REQUIRE(value >= 0.0f, MP_ERROR_INVALID_ARGUMENT, name, " = ", value, " is negative");
}

/// Fails unless `value` is in [least, most].
template <class Number>
void require_within(Number value, const char *name, std::type_identity_t<Number> least,
                    std::type_identity_t<Number> most) {
  MP_REQUIRE(value >= least && value <= most, MP_ERROR_INVALID_ARGUMENT, name, " = ", value,
             " is outside [", least, ", ", most, "]");
}

/// Fails if `value` exceeds `most`.
inline void require_at_most(int64_t value, const char *name, int64_t most) {
  MP_REQUIRE(value <= most, MP_ERROR_INVALID_ARGUMENT, name, " = ", value, " exceeds ", most);
}

inline void require_at_least(const NamedNumber &number, const NamedNumber &least) {
  MP_REQUIRE(number.value >= least.value, MP_ERROR_INVALID_ARGUMENT, number.name, " = ",
             number.value, " is smaller than ", least.name, " = ", least.value);
}

/// Checks a probability or a decay.
template <class Float>
void require_fraction(Float value, const char *name) {
  MP_REQUIRE(value >= 0 && value < 1, MP_ERROR_INVALID_ARGUMENT, name, " = ", value,
             " is outside [0, 1)");
}

/// True for a valid loss scale: S is positive, S and 1/S are finite.
inline bool is_scale(float value) {
  return value > 0.0f && std::isfinite(value) && std::isfinite(1.0f / value);
}

inline void require_zero(uint32_t value, const char *name) {
  MP_REQUIRE(value == 0, MP_ERROR_INVALID_ARGUMENT, name, " = ", value, " must be 0");
}

inline void require_flags(uint32_t flags, uint32_t known, const char *name) {
  MP_REQUIRE((flags & ~known) == 0, MP_ERROR_INVALID_ARGUMENT, name, " = ", Flags{flags}, ": bits ",
             Flags{flags & ~known}, " are not supported");
}

/// Computes a * b + c for sizes.  Returns false on overflow of 64 bits.
inline bool multiply_add(int64_t a, int64_t b, int64_t c, int64_t *result) {
  return !__builtin_mul_overflow(a, b, result) && !__builtin_add_overflow(*result, c, result);
}

/// Computes the extent, in elements, of `count` runs of `run` elements, `stride` elements apart.
/// Returns false on overflow of 64 bits.
inline bool strided_extent(int64_t count, int64_t stride, int64_t run, int64_t *elems) {
  *elems = 0;
  return count == 0 || run == 0 || multiply_add(count - 1, stride, run, elems);
}

inline bool bytes_fit(int64_t elems, mp_dtype_t dtype) {
  int64_t bytes;
  return multiply_add(elems, static_cast<int64_t>(mp_dtype_size(dtype)), 0, &bytes);
}

/// Fails if a number of elements of `dtype` is negative, or its size in bytes overflows.
inline void require_count(int64_t count, const char *name, mp_dtype_t dtype) {
  require_not_negative(count, name);
  MP_REQUIRE(bytes_fit(count, dtype), MP_ERROR_INVALID_ARGUMENT, name, " = ", count,
             ": size in bytes exceeds 2^63 - 1");
}

/// Fails if the size in bytes of a matrix overflows.
void require_matrix_bytes(const NamedNumber &rows, int64_t columns, const NamedNumber &ld,
                          mp_dtype_t dtype);
/// Fails if the leading dimension of a matrix is smaller than its columns, or its size in bytes
/// overflows.
void require_matrix(const NamedNumber &rows, const NamedNumber &columns, const NamedNumber &ld,
                    mp_dtype_t dtype);

/// Fails if a workspace is smaller than `needed`, NULL or misaligned; if `needed` is 0, any
/// workspace is valid.
void require_workspace(const void *workspace, size_t bytes, size_t needed);

/// Copies a text to the caller and sets *bytes to its size; NULL as `user` requests only the size.
void write_text(std::string_view text, char *user, size_t *bytes);

// ---------------------------------------------------------------------------- struct_size

/// Structs of callers and their sizes in version 0.2, the minimum for any caller.  Sizes must never
/// change.
#define MP_FIRST_SIZES(X)        \
  X(mp_allocator_t, 32)          \
  X(mp_context_config_t, 24)     \
  X(mp_device_info_t, 96)        \
  X(mp_epilogue_t, 72)           \
  X(mp_plan_t, 168)              \
  X(mp_gemm_desc_t, 128)         \
  X(mp_gemm_group_item_t, 96)    \
  X(mp_conv2d_desc_t, 96)        \
  X(mp_tensor_list_desc_t, 40)   \
  X(mp_stats_outputs_t, 64)      \
  X(mp_scaler_config_t, 88)      \
  X(mp_scaler_state_t, 120)      \
  X(mp_param_group_t, 80)        \
  X(mp_optimizer_desc_t, 136)    \
  X(mp_model_options_t, 48)      \
  X(mp_comm_t, 48)               \
  X(mp_step_options_t, 120)      \
  X(mp_autocast_config_t, 32)    \
  X(mp_autocast_graph_t, 168)    \
  X(mp_autocast_result_t, 72)    \
  X(mp_graph_tensor_t, 120)      \
  X(mp_graph_attribute_t, 56)    \
  X(mp_graph_memory_t, 64)       \
  X(mp_xent_desc_t, 80)          \
  X(mp_xent_tensors_t, 136)      \
  X(mp_linear_xent_desc_t, 96)   \
  X(mp_loss_desc_t, 48)          \
  X(mp_loss_tensors_t, 80)       \
  X(mp_pool2d_desc_t, 72)        \
  X(mp_batchnorm_desc_t, 32)     \
  X(mp_batchnorm_tensors_t, 120) \
  X(mp_norm_desc_t, 88)          \
  X(mp_norm_tensors_t, 144)      \
  X(mp_pointwise_desc_t, 72)     \
  X(mp_column_sum_desc_t, 40)    \
  X(mp_sum_rows_desc_t, 56)      \
  X(mp_glu_desc_t, 48)           \
  X(mp_strided_copy_desc_t, 168) \
  X(mp_rnn_desc_t, 96)           \
  X(mp_rnn_sizes_t, 32)          \
  X(mp_rnn_tensors_t, 176)       \
  X(mp_rnn_weights_t, 40)        \
  X(mp_rnn_weight_grads_t, 40)   \
  X(mp_embedding_desc_t, 72)     \
  X(mp_dropout_desc_t, 32)       \
  X(mp_rope_desc_t, 64)          \
  X(mp_softmax_desc_t, 72)       \
  X(mp_attention_desc_t, 184)    \
  X(mp_attention_tensors_t, 152)

template <class Struct>
inline constexpr uint32_t kFirstSize = 0;
#define MP_FIRST_SIZE(Struct, size) \
  template <>                       \
  inline constexpr uint32_t kFirstSize<Struct> = size;
MP_FIRST_SIZES(MP_FIRST_SIZE)
#undef MP_FIRST_SIZE
#undef MP_FIRST_SIZES

/// Limit of struct_size, so that an uninitialized value does not cause reads far past the struct.
inline constexpr size_t kLargestStruct = 4096;

/// Fails unless `size` is in [first_size, kLargestStruct].
/// @param hint  end of the message: how to set the size
void require_struct_size(size_t size, uint32_t first_size, const char *name, const char *arrow,
                         const char *hint);
template <class Struct>
void require_struct_size(size_t size, const char *name, const char *arrow, const char *hint) {
  static_assert(kFirstSize<Struct> != 0 && kFirstSize<Struct> <= sizeof(Struct));
  require_struct_size(size, kFirstSize<Struct>, name, arrow, hint);
}

/// Returns the hint for an invalid struct_size: how to initialize the struct.
const char *struct_size_hint(uint32_t size);

/// Fails if a struct of `size` bytes is not 0 after the first `known` bytes.
void require_known_bytes(const void *user, size_t size, size_t known, const char *name,
                         const char *arrow);

/// Applies the rules of mpcore/core.h to a struct of the caller.  Returns how many of its bytes
/// this version supports.
/// @param arrow  text between the name and a field in messages
template <class Struct>
size_t require_struct(const Struct *user, const char *name, const char *arrow = "->") {
  const uint32_t size = require_pointer(user, name).struct_size;
  if (size == sizeof(Struct)) return size;
  require_struct_size<Struct>(size, name, arrow, struct_size_hint(size));
  if (size < sizeof(Struct)) return size;
  require_known_bytes(user, size, sizeof(Struct), name, arrow);
  return sizeof(Struct);
}

/// Returns a copy of the caller's struct; fields that it lacks are 0.
template <class Struct>
Struct read_struct(const Struct *user, const char *name, const char *arrow = "->") {
  const size_t known = require_struct(user, name, arrow);
  Struct copy;
  if (known < sizeof copy) std::memset(&copy, 0, sizeof copy);
  std::memcpy(&copy, user, known < sizeof copy ? known : sizeof copy);
  copy.struct_size = sizeof copy;
  return copy;
}

/// Returns a copy of the argument `tensors` of a call.
template <class Tensors>
Tensors read_tensors(const Tensors *user) {
  const Tensors tensors = read_struct(user, "tensors");
  require_zero(tensors.reserved0, "tensors->reserved0");
  return tensors;
}

/// Returns a copy of element `index` of an array.  The struct_size of the first element is the
/// distance between elements, and may exceed the size in this version.
template <class Struct>
Struct read_element(const Struct *array, size_t index, const char *name) {
  const uint32_t distance = require_pointer(array, name).struct_size;
  MP_REQUIRE(distance % alignof(Struct) == 0, MP_ERROR_STRUCT_SIZE, name,
             "[0].struct_size = ", distance, " must be a multiple of ", alignof(Struct));
  const auto *bytes = reinterpret_cast<const std::byte *>(array);
  const auto *user = reinterpret_cast<const Struct *>(bytes + index * distance);
  MP_REQUIRE(user->struct_size == distance, MP_ERROR_STRUCT_SIZE, name, "[", index,
             "].struct_size = ", user->struct_size, " must equal ", name,
             "[0].struct_size = ", distance);
  if (distance == sizeof(Struct))
    return *user;  // fast path: formatting the element's name would take most of the time
  return read_struct(user, Message(name, "[", index, "]").c_str(), ".");
}

/// Writes the fields that the caller's struct has.
template <class Struct>
void write_struct(Struct *user, const char *name, Struct value) {
  const size_t known = require_struct(user, name);
  value.struct_size = user->struct_size;
  std::memcpy(user, &value, known);
}

}  // namespace mp
