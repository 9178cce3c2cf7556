// mpcore.hpp - C++17 wrappers of mpcore.h: RAII handles, and errors that cannot be ignored.
//
//     mp::context context = mp::context::create();
//     mp::memory d = context.malloc(m * n * sizeof(float));
//     context.gemm(mp_gemm_desc_default(m, n, k, MP_FP16, MP_FP32), a, b, nullptr, d);
//
// The manual is mpcore.h: a function calls the C function that its brief names, with the same
// arguments, structs and enumerations.  A C function that takes a handle is a member of the class
// of that handle, usually under its name without the prefix.  Functions without a handle are free
// functions, or are called as in C (mp_version).  Optional trailing arguments can be omitted.
//
// Named handles and mp::memory convert to the arguments of C functions.  Temporaries do not,
// because they are destroyed at the end of the statement.
//
// ERRORS.  A function returns its result, or throws mp::error with the message of mp_last_error.
// If the compiler has no exceptions, or MPCORE_NO_EXCEPTIONS is defined before this header is
// included, it returns mp::result<T> instead: test it, then call value().
//
// LIFETIME.  Handles can be moved, not copied.  A context must outlive all objects created from it,
// so declare it first.  The tensor lists of an optimizer must outlive it, and so must a graph that
// owns them.
#ifndef MPCORE_HPP
#define MPCORE_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "mpcore.h"

#if !defined(__cpp_exceptions) && !defined(MPCORE_NO_EXCEPTIONS)
#define MPCORE_NO_EXCEPTIONS
#endif

namespace mp {

// Code with and without exceptions can be linked into one program.
#ifdef MPCORE_NO_EXCEPTIONS
inline namespace returning {
#else
inline namespace throwing {
#endif

// ---------------------------------------------------------------------------- errors

/// Error of a C function: its status, and in what() the message of mp_last_error.
class error : public std::runtime_error {
 public:
  /// Reads mp_last_error; construct it directly after the failed call.
  explicit error(mp_status_t status) : std::runtime_error(mp_last_error()), status_(status) {}
  /// Returns the status of the call.
  mp_status_t status() const noexcept { return status_; }

 private:
  mp_status_t status_;
};

/// Value or error of a call without exceptions.
template <class T>
class [[nodiscard]] result {
 public:
  result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
  result(mp::error error) : content_(std::in_place_index<1>, std::move(error)) {}

  /// Returns whether the call succeeded.
  bool has_value() const noexcept { return content_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  /// Returns the value.  Aborts the program if there is none.
  T &value() & {
    require_value();
    return *std::get_if<0>(&content_);
  }
  T &&value() && { return std::move(value()); }

  /// Returns the error.  Requires has_value() to be false.
  const mp::error &error() const noexcept { return *std::get_if<1>(&content_); }

 private:
  void require_value() const {
    if (has_value()) return;
    std::fprintf(stderr, "mpcore: %s\n", error().what());
    std::abort();
  }

  std::variant<T, mp::error> content_;
};

/// Success or error of a call that returns no value.
template <>
class [[nodiscard]] result<void> : public result<std::monostate> {
 public:
  result() : result<std::monostate>(std::monostate{}) {}
  result(mp::error error) : result<std::monostate>(std::move(error)) {}
};

#ifdef MPCORE_NO_EXCEPTIONS
/// Return type of functions that can fail: T with exceptions, otherwise result<T>.
template <class T>
using outcome = result<T>;

namespace detail {
template <class T>
outcome<T> failed(mp_status_t status) {
  return error(status);
}
}  // namespace detail
#else
template <class T>
using outcome = T;

namespace detail {
template <class T>
[[noreturn]] T failed(mp_status_t status) {
  throw error(status);
}
}  // namespace detail
#endif

/// Throws or returns an error if `status`, the result of a C function, is not MP_SUCCESS.
inline outcome<void> check(mp_status_t status) {
  if (status != MP_SUCCESS) return detail::failed<void>(status);
  return outcome<void>();
}

namespace detail {

/// Returns `value`, which the call with this status has written, or an error.
template <class T>
outcome<T> finish(mp_status_t status, T &value) {
  if (status != MP_SUCCESS) return failed<T>(status);
  return std::move(value);
}

/// Calls a function whose last argument is an output, and returns that output.
template <class T, class Function, class... Arguments>
outcome<T> query(const Function &function, Arguments... arguments) {
  T value{};
  return finish(function(arguments..., &value), value);
}

/// Like query, for an output struct with a struct_size.
template <class Struct, class Function, class... Arguments>
outcome<Struct> query_struct(const Function &function, Arguments... arguments) {
  Struct value;
  MP_INIT_STRUCT(&value);
  return finish(function(arguments..., &value), value);
}

/// Calls an mp_*_create function.
template <class Handle, class Function, class... Arguments>
outcome<Handle> create(const Function &function, Arguments... arguments) {
  typename Handle::raw_type raw = nullptr;
  const mp_status_t status = function(&raw, arguments...);
  Handle owned(raw);
  return finish(status, owned);
}

/// Calls a function whose last arguments are a text and its size: first for the size.
template <class Function, class... Arguments>
outcome<std::string> read_text(const Function &function, Arguments... arguments) {
  size_t bytes = 0;
  mp_status_t status = function(arguments..., nullptr, &bytes);
  if (status != MP_SUCCESS) return failed<std::string>(status);
  std::string text(bytes, '\0');
  status = function(arguments..., text.data(), &bytes);
  text.pop_back();  // the NUL
  return finish(status, text);
}

/// Owns an object from an mp_*_create function; the destructor calls mp_*_destroy.
template <class Raw, void (*destroy)(Raw)>
class handle {
 public:
  using raw_type = Raw;

  handle() = default;
  explicit handle(Raw raw) noexcept : raw_(raw) {}

  /// Returns the C handle, which stays owned by this object.
  Raw get() const noexcept { return raw_.get(); }
  operator Raw() const &noexcept { return get(); }
  operator Raw() const && = delete;  // a temporary would destroy the object
  /// Returns the C handle and gives up its ownership.
  Raw release() noexcept { return raw_.release(); }
  /// Destroys the object and takes ownership of `raw`.
  void reset(Raw raw = nullptr) noexcept { raw_.reset(raw); }

 private:
  struct destroyer {
    void operator()(Raw raw) const noexcept { destroy(raw); }
  };
  std::unique_ptr<std::remove_pointer_t<Raw>, destroyer> raw_;
};

}  // namespace detail

// ---------------------------------------------------------------------------- arguments

/// Workspace of a call: device memory, 256-byte aligned, and its size.
struct workspace {
  void *data = nullptr;
  size_t bytes = 0;
};

/// Extents P and Q of the output of a convolution or pooling.
struct image_size {
  int32_t p, q;
};

/// Returns the output size of a convolution (mp_conv2d_get_output_size).
inline outcome<image_size> conv2d_output_size(const mp_conv2d_desc_t &desc) {
  image_size size{};
  return detail::finish(mp_conv2d_get_output_size(&desc, &size.p, &size.q), size);
}

/// Returns the output size of a pooling (mp_pool2d_get_output_size).
inline outcome<image_size> pool2d_output_size(const mp_pool2d_desc_t &desc) {
  image_size size{};
  return detail::finish(mp_pool2d_get_output_size(&desc, &size.p, &size.q), size);
}

/// Returns the callbacks of an NCCL communicator (mp_comm_init_nccl).
inline outcome<mp_comm_t> comm_init_nccl(void *nccl_comm) {
  mp_comm_t comm = mp_comm_default();
  return detail::finish(mp_comm_init_nccl(&comm, nccl_comm), comm);
}

/// Configuration and state of a loss scaler, converted from another framework.
struct saved_scaler {
  mp_scaler_config_t config;
  mp_scaler_state_t state;
};

/// Returns the scaler configuration for a name such as "dynamic" or "128"
/// (mp_scaler_config_from_name).
inline outcome<mp_scaler_config_t> scaler_config_from_name(const char *name) {
  mp_scaler_config_t config;
  return detail::finish(mp_scaler_config_from_name(name, &config, sizeof config), config);
}

/// Returns the optimizer descriptor for a name such as "adamw" (mp_optimizer_desc_from_name).  It
/// points to `group`, which is initialized and must exist until optimizer::create.
inline outcome<mp_optimizer_desc_t> optimizer_desc_from_name(const char *name,
                                                             mp_param_group_t &group, float lr) {
  mp_optimizer_desc_t desc;
  return detail::finish(
      mp_optimizer_desc_from_name(name, &desc, sizeof desc, &group, sizeof group, lr), desc);
}

/// Converts the state of torch.amp.GradScaler (mp_scaler_from_torch).
inline outcome<saved_scaler> scaler_from_torch(const mp_torch_scaler_t &torch) {
  saved_scaler saved;
  MP_INIT_STRUCT(&saved.config);
  MP_INIT_STRUCT(&saved.state);
  return detail::finish(mp_scaler_from_torch(&torch, &saved.config, &saved.state), saved);
}

/// Converts a state for torch.amp.GradScaler (mp_scaler_to_torch).
inline outcome<mp_torch_scaler_t> scaler_to_torch(const mp_scaler_config_t &config,
                                                  const mp_scaler_state_t &state) {
  return detail::query<mp_torch_scaler_t>(mp_scaler_to_torch, &config, &state);
}

/// Converts the state of Megatron-LM's DynamicGradScaler (mp_scaler_from_megatron).
inline outcome<mp_scaler_state_t> scaler_from_megatron(const mp_megatron_scaler_t &megatron) {
  return detail::query_struct<mp_scaler_state_t>(mp_scaler_from_megatron, &megatron);
}

/// Converts a state for Megatron-LM's DynamicGradScaler (mp_scaler_to_megatron).
inline outcome<mp_megatron_scaler_t> scaler_to_megatron(const mp_scaler_state_t &state) {
  return detail::query<mp_megatron_scaler_t>(mp_scaler_to_megatron, &state);
}

// ---------------------------------------------------------------------------- device memory

/// Owns device memory from context::malloc; the destructor calls mp_free.
class memory {
 public:
  memory() = default;
  memory(mp_context_t context, void *data) noexcept : data_(data, {context}) {}

  /// Returns the device address.
  void *get() const noexcept { return data_.get(); }
  operator void *() const &noexcept { return get(); }
  operator void *() const && = delete;
  /// Returns the device address as a T *.
  template <class T>
  T *as() const &noexcept {
    return static_cast<T *>(get());
  }
  template <class T>
  T *as() const && = delete;

 private:
  struct releaser {
    mp_context_t context;
    void operator()(void *data) const noexcept { mp_free(context, data); }
  };
  std::unique_ptr<void, releaser> data_;
};

// ---------------------------------------------------------------------------- context

/// Returns the kernels that this process has measured (mp_tuning_get_text).
inline outcome<std::string> tuning_text() {
  return detail::read_text(mp_tuning_get_text);
}

/// Context, device memory, and the functions of gemm.h, conv.h, layers.h, norm.h, rnn.h,
/// sequences.h and attention.h.
class context : public detail::handle<mp_context_t, mp_context_destroy> {
 public:
  using handle::handle;

  /// Creates a context (mp_context_create).
  static outcome<context> create(const mp_context_config_t &config = mp_context_config_default()) {
    return detail::create<context>(mp_context_create, &config);
  }

  /// Returns the properties of the device (mp_context_get_info).
  outcome<mp_device_info_t> get_info() const {
    return detail::query_struct<mp_device_info_t>(mp_context_get_info, get());
  }

  /// Selects kernels by measured times (mp_tuning_measure).
  outcome<void> measure_kernels(int32_t max_kernels) const {
    return check(mp_tuning_measure(get(), max_kernels));
  }

  // --- device memory

  /// Allocates device memory, which is freed with the result (mp_malloc).
  outcome<memory> malloc(size_t bytes) const {
    void *data = nullptr;
    const mp_status_t status = mp_malloc(get(), &data, bytes);
    memory owned(get(), data);
    return detail::finish(status, owned);
  }

  /// Copies between host and device memory (mp_memcpy).
  outcome<void> memcpy(void *dst, const void *src, size_t bytes,
                       mp_stream_t stream = nullptr) const {
    return check(mp_memcpy(get(), dst, src, bytes, stream));
  }

  /// Sets bytes of device memory (mp_memset).
  outcome<void> memset(void *dst, int byte, size_t bytes, mp_stream_t stream = nullptr) const {
    return check(mp_memset(get(), dst, byte, bytes, stream));
  }

  /// Waits for all work on a stream (mp_stream_sync).
  outcome<void> stream_sync(mp_stream_t stream = nullptr) const {
    return check(mp_stream_sync(get(), stream));
  }

  /// Converts elements to another type (mp_cast).
  outcome<void> cast(const void *src, mp_dtype_t dtype_src, void *dst, mp_dtype_t dtype_dst,
                     int64_t count, mp_stream_t stream = nullptr) const {
    return check(mp_cast(get(), src, dtype_src, dst, dtype_dst, count, stream));
  }

  // --- GEMM

  /// Returns the workspace size of gemm (mp_gemm_workspace_size).
  outcome<size_t> gemm_workspace_size(const mp_gemm_desc_t &desc,
                                      const mp_epilogue_t *epilogue = nullptr) const {
    return detail::query<size_t>(mp_gemm_workspace_size, get(), &desc, epilogue);
  }

  /// Returns the fastest plan of gemm (mp_gemm_get_plan).
  outcome<mp_plan_t> gemm_get_plan(const mp_gemm_desc_t &desc,
                                   const mp_epilogue_t *epilogue = nullptr,
                                   size_t max_workspace_bytes = SIZE_MAX) const {
    return detail::query_struct<mp_plan_t>(mp_gemm_get_plan, get(), &desc, epilogue,
                                           max_workspace_bytes);
  }

  /// Computes a matrix product (mp_gemm).
  outcome<void> gemm(const mp_gemm_desc_t &desc, const void *A, const void *B, const void *C,
                     void *D, const mp_epilogue_t *epilogue = nullptr, workspace workspace = {},
                     mp_stream_t stream = nullptr) const {
    return check(
        mp_gemm(get(), &desc, A, B, C, D, epilogue, workspace.data, workspace.bytes, stream));
  }

  /// Returns the workspace size of gemm_batched (mp_gemm_batched_workspace_size).
  outcome<size_t> gemm_batched_workspace_size(const mp_gemm_desc_t &desc,
                                              const mp_epilogue_t *epilogue = nullptr) const {
    return detail::query<size_t>(mp_gemm_batched_workspace_size, get(), &desc, epilogue);
  }

  /// Returns the fastest plan of gemm_batched (mp_gemm_batched_get_plan).
  outcome<mp_plan_t> gemm_batched_get_plan(const mp_gemm_desc_t &desc,
                                           const mp_epilogue_t *epilogue = nullptr,
                                           size_t max_workspace_bytes = SIZE_MAX) const {
    return detail::query_struct<mp_plan_t>(mp_gemm_batched_get_plan, get(), &desc, epilogue,
                                           max_workspace_bytes);
  }

  /// Computes a batched product with pointer arrays (mp_gemm_batched).
  outcome<void> gemm_batched(const mp_gemm_desc_t &desc, const void *const *A, const void *const *B,
                             const void *const *C, void *const *D,
                             const mp_epilogue_t *epilogue = nullptr, workspace workspace = {},
                             mp_stream_t stream = nullptr) const {
    return check(mp_gemm_batched(get(), &desc, A, B, C, D, epilogue, workspace.data,
                                 workspace.bytes, stream));
  }

  /// Returns the workspace size of gemm_grouped (mp_gemm_grouped_workspace_size).
  outcome<size_t> gemm_grouped_workspace_size(const mp_gemm_desc_t &desc, int32_t count,
                                              const mp_gemm_group_item_t *items,
                                              const mp_epilogue_t *epilogue = nullptr) const {
    return detail::query<size_t>(mp_gemm_grouped_workspace_size, get(), &desc, count, items,
                                 epilogue);
  }

  /// Computes products of different shapes (mp_gemm_grouped).
  outcome<void> gemm_grouped(const mp_gemm_desc_t &desc, int32_t count,
                             const mp_gemm_group_item_t *items,
                             const mp_epilogue_t *epilogue = nullptr, workspace workspace = {},
                             mp_stream_t stream = nullptr) const {
    return check(mp_gemm_grouped(get(), &desc, count, items, epilogue, workspace.data,
                                 workspace.bytes, stream));
  }

  /// Returns the workspace size of gemm_ragged (mp_gemm_ragged_workspace_size).
  outcome<size_t> gemm_ragged_workspace_size(const mp_gemm_desc_t &desc, mp_ragged_t ragged,
                                             const mp_epilogue_t *epilogue = nullptr) const {
    return detail::query<size_t>(mp_gemm_ragged_workspace_size, get(), &desc, ragged, epilogue);
  }

  /// Computes products of groups with sizes in device memory (mp_gemm_ragged).
  outcome<void> gemm_ragged(const mp_gemm_desc_t &desc, mp_ragged_t ragged, const int32_t *ends,
                            const void *A, const void *B, const void *C, void *D,
                            const mp_epilogue_t *epilogue = nullptr, workspace workspace = {},
                            mp_stream_t stream = nullptr) const {
    return check(mp_gemm_ragged(get(), &desc, ragged, ends, A, B, C, D, epilogue, workspace.data,
                                workspace.bytes, stream));
  }

  // --- convolution

  /// Returns the workspace size of a convolution (mp_conv2d_workspace_size).
  outcome<size_t> conv2d_workspace_size(const mp_conv2d_desc_t &desc, mp_conv_op_t op,
                                        const mp_epilogue_t *epilogue = nullptr) const {
    return detail::query<size_t>(mp_conv2d_workspace_size, get(), &desc, op, epilogue);
  }

  /// Returns the fastest plan of a convolution (mp_conv2d_get_plan).
  outcome<mp_plan_t> conv2d_get_plan(const mp_conv2d_desc_t &desc, mp_conv_op_t op,
                                     const mp_epilogue_t *epilogue = nullptr,
                                     size_t max_workspace_bytes = SIZE_MAX) const {
    return detail::query_struct<mp_plan_t>(mp_conv2d_get_plan, get(), &desc, op, epilogue,
                                           max_workspace_bytes);
  }

  /// Computes a convolution (mp_conv2d_fprop).
  outcome<void> conv2d_fprop(const mp_conv2d_desc_t &desc, const void *x, const void *filter,
                             void *y, const mp_epilogue_t *epilogue = nullptr,
                             workspace workspace = {}, mp_stream_t stream = nullptr) const {
    return check(mp_conv2d_fprop(get(), &desc, x, filter, y, epilogue, workspace.data,
                                 workspace.bytes, stream));
  }

  /// Computes the gradient of the input of a convolution (mp_conv2d_dgrad).
  outcome<void> conv2d_dgrad(const mp_conv2d_desc_t &desc, const void *dy, const void *filter,
                             void *dx, const mp_epilogue_t *epilogue = nullptr,
                             workspace workspace = {}, mp_stream_t stream = nullptr) const {
    return check(mp_conv2d_dgrad(get(), &desc, dy, filter, dx, epilogue, workspace.data,
                                 workspace.bytes, stream));
  }

  /// Computes the gradient of the filter of a convolution (mp_conv2d_wgrad).
  outcome<void> conv2d_wgrad(const mp_conv2d_desc_t &desc, const void *x, const void *dy,
                             void *dfilter, const mp_epilogue_t *epilogue = nullptr,
                             workspace workspace = {}, mp_stream_t stream = nullptr) const {
    return check(mp_conv2d_wgrad(get(), &desc, x, dy, dfilter, epilogue, workspace.data,
                                 workspace.bytes, stream));
  }

  // --- clipping, losses, layout, pooling, batch normalization, pointwise operations, gated units

  /// Computes the factor that unscales and clips gradients (mp_clip_factor).
  outcome<void> clip_factor(const float *scaled_norm, const float *inv_scale, float max_norm,
                            float *grad_scale, mp_stream_t stream = nullptr) const {
    return check(mp_clip_factor(get(), scaled_norm, inv_scale, max_norm, grad_scale, stream));
  }

  /// Computes softmax cross-entropy and its gradient (mp_softmax_xent).
  outcome<void> softmax_xent(const mp_xent_desc_t &desc, const mp_xent_tensors_t &tensors,
                             mp_stream_t stream = nullptr) const {
    return check(mp_softmax_xent(get(), &desc, &tensors, stream));
  }

  /// Adds the number of rows whose label is not ignored to *count (mp_xent_count).
  outcome<void> xent_count(int64_t rows, mp_dtype_t dtype_labels, const void *labels,
                           int64_t ignore_label, float *count, mp_stream_t stream = nullptr) const {
    return check(mp_xent_count(get(), rows, dtype_labels, labels, ignore_label, count, stream));
  }

  /// Returns the workspace size of linear_xent (mp_linear_xent_workspace_size).
  outcome<size_t> linear_xent_workspace_size(const mp_linear_xent_desc_t &desc) const {
    return detail::query<size_t>(mp_linear_xent_workspace_size, get(), &desc);
  }

  /// Computes a linear layer, its cross-entropy and all gradients (mp_linear_xent).
  outcome<void> linear_xent(const mp_linear_xent_desc_t &desc, const mp_xent_tensors_t &tensors,
                            workspace workspace, mp_stream_t stream = nullptr) const {
    return check(mp_linear_xent(get(), &desc, &tensors, workspace.data, workspace.bytes, stream));
  }

  /// Returns the workspace size of loss (mp_loss_workspace_size).
  outcome<size_t> loss_workspace_size(const mp_loss_desc_t &desc) const {
    return detail::query<size_t>(mp_loss_workspace_size, get(), &desc);
  }

  /// Computes an element-wise loss and its gradient (mp_loss).
  outcome<void> loss(const mp_loss_desc_t &desc, const mp_loss_tensors_t &tensors,
                     workspace workspace, mp_stream_t stream = nullptr) const {
    return check(mp_loss(get(), &desc, &tensors, workspace.data, workspace.bytes, stream));
  }

  /// Transposes images from NCHW to NHWC (mp_nchw_to_nhwc).
  outcome<void> nchw_to_nhwc(int64_t n, int64_t c, int64_t h, int64_t w, const void *src,
                             mp_dtype_t dtype_src, void *dst, mp_dtype_t dtype_dst,
                             mp_stream_t stream = nullptr) const {
    return check(mp_nchw_to_nhwc(get(), n, c, h, w, src, dtype_src, dst, dtype_dst, stream));
  }

  /// Transposes images from NHWC to NCHW (mp_nhwc_to_nchw).
  outcome<void> nhwc_to_nchw(int64_t n, int64_t c, int64_t h, int64_t w, const void *src,
                             mp_dtype_t dtype_src, void *dst, mp_dtype_t dtype_dst,
                             mp_stream_t stream = nullptr) const {
    return check(mp_nhwc_to_nchw(get(), n, c, h, w, src, dtype_src, dst, dtype_dst, stream));
  }

  /// Computes the maximum or mean of windows (mp_pool2d_forward).
  /// @param index  optional: positions of maxima, for pool2d_backward
  outcome<void> pool2d_forward(const mp_pool2d_desc_t &desc, const void *x, void *y,
                               std::uint8_t *index = nullptr, mp_stream_t stream = nullptr) const {
    return check(mp_pool2d_forward(get(), &desc, x, y, index, stream));
  }

  /// Computes the gradient of a pooling (mp_pool2d_backward).
  outcome<void> pool2d_backward(const mp_pool2d_desc_t &desc, const void *x,
                                const std::uint8_t *index, const void *dy, void *dx,
                                const mp_grad_stats_t *stats = nullptr,
                                mp_stream_t stream = nullptr) const {
    return check(mp_pool2d_backward(get(), &desc, x, index, dy, dx, stats, stream));
  }

  /// Returns the workspace size of batch normalization (mp_batchnorm_workspace_size).
  outcome<size_t> batchnorm_workspace_size(const mp_batchnorm_desc_t &desc) const {
    return detail::query<size_t>(mp_batchnorm_workspace_size, get(), &desc);
  }

  /// Normalizes with the statistics of the batch (mp_batchnorm_forward_training).
  outcome<void> batchnorm_forward_training(const mp_batchnorm_desc_t &desc,
                                           const mp_batchnorm_tensors_t &tensors,
                                           workspace workspace,
                                           mp_stream_t stream = nullptr) const {
    return check(mp_batchnorm_forward_training(get(), &desc, &tensors, workspace.data,
                                               workspace.bytes, stream));
  }

  /// Normalizes with the running statistics (mp_batchnorm_forward_inference).
  outcome<void> batchnorm_forward_inference(const mp_batchnorm_desc_t &desc,
                                            const mp_batchnorm_tensors_t &tensors,
                                            mp_stream_t stream = nullptr) const {
    return check(mp_batchnorm_forward_inference(get(), &desc, &tensors, stream));
  }

  /// Computes the gradients of a batch normalization (mp_batchnorm_backward).
  outcome<void> batchnorm_backward(const mp_batchnorm_desc_t &desc,
                                   const mp_batchnorm_tensors_t &tensors, workspace workspace,
                                   mp_stream_t stream = nullptr) const {
    return check(
        mp_batchnorm_backward(get(), &desc, &tensors, workspace.data, workspace.bytes, stream));
  }

  /// Applies an element-wise operation (mp_pointwise).
  outcome<void> pointwise(const mp_pointwise_desc_t &desc, const void *a, const void *b, void *y,
                          const mp_grad_stats_t *stats = nullptr,
                          mp_stream_t stream = nullptr) const {
    return check(mp_pointwise(get(), &desc, a, b, y, stats, stream));
  }

  /// Returns the workspace size of column_sum (mp_column_sum_workspace_size).
  outcome<size_t> column_sum_workspace_size(const mp_column_sum_desc_t &desc) const {
    return detail::query<size_t>(mp_column_sum_workspace_size, get(), &desc);
  }

  /// Sums the columns of a matrix (mp_column_sum).
  outcome<void> column_sum(const mp_column_sum_desc_t &desc, const void *x, void *sum,
                           const mp_epilogue_t *epilogue, workspace workspace,
                           mp_stream_t stream = nullptr) const {
    return check(
        mp_column_sum(get(), &desc, x, sum, epilogue, workspace.data, workspace.bytes, stream));
  }

  /// Sums rows that are a period apart (mp_sum_rows).
  outcome<void> sum_rows(const mp_sum_rows_desc_t &desc, const void *x, void *sum,
                         const mp_grad_stats_t *stats = nullptr,
                         mp_stream_t stream = nullptr) const {
    return check(mp_sum_rows(get(), &desc, x, sum, stats, stream));
  }

  /// Computes a gated linear unit (mp_glu_forward).
  outcome<void> glu_forward(const mp_glu_desc_t &desc, const void *x, void *y,
                            mp_stream_t stream = nullptr) const {
    return check(mp_glu_forward(get(), &desc, x, y, stream));
  }

  /// Computes the gradient of a gated linear unit (mp_glu_backward).
  outcome<void> glu_backward(const mp_glu_desc_t &desc, const void *x, const void *dy, void *dx,
                             const mp_grad_stats_t *stats = nullptr,
                             mp_stream_t stream = nullptr) const {
    return check(mp_glu_backward(get(), &desc, x, dy, dx, stats, stream));
  }

  /// Copies, permutes, repeats or adds a view (mp_strided_copy).
  outcome<void> strided_copy(const mp_strided_copy_desc_t &desc, const void *x, void *y,
                             const mp_grad_stats_t *stats = nullptr,
                             mp_stream_t stream = nullptr) const {
    return check(mp_strided_copy(get(), &desc, x, y, stats, stream));
  }

  // --- layer and RMS normalization

  /// Normalizes vectors, optionally after a residual addition (mp_norm_forward).
  outcome<void> norm_forward(const mp_norm_desc_t &desc, const mp_norm_tensors_t &tensors,
                             mp_stream_t stream = nullptr) const {
    return check(mp_norm_forward(get(), &desc, &tensors, stream));
  }

  /// Returns the workspace size of norm_backward (mp_norm_backward_workspace_size).
  outcome<size_t> norm_backward_workspace_size(const mp_norm_desc_t &desc) const {
    return detail::query<size_t>(mp_norm_backward_workspace_size, get(), &desc);
  }

  /// Computes the gradients of a normalization (mp_norm_backward).
  outcome<void> norm_backward(const mp_norm_desc_t &desc, const mp_norm_tensors_t &tensors,
                              workspace workspace, mp_stream_t stream = nullptr) const {
    return check(mp_norm_backward(get(), &desc, &tensors, workspace.data, workspace.bytes, stream));
  }

  // --- recurrent layers

  /// Returns the sizes of reserve and workspace (mp_rnn_get_sizes).
  outcome<mp_rnn_sizes_t> rnn_get_sizes(const mp_rnn_desc_t &desc) const {
    return detail::query_struct<mp_rnn_sizes_t>(mp_rnn_get_sizes, get(), &desc);
  }

  /// Returns the plan of recurrent layers (mp_rnn_get_plan).
  outcome<mp_plan_t> rnn_get_plan(const mp_rnn_desc_t &desc) const {
    return detail::query_struct<mp_plan_t>(mp_rnn_get_plan, get(), &desc);
  }

  /// Runs recurrent layers and fills the reserve (mp_rnn_forward_training).
  outcome<void> rnn_forward_training(const mp_rnn_desc_t &desc, const mp_rnn_tensors_t &tensors,
                                     workspace workspace, mp_stream_t stream = nullptr) const {
    return check(
        mp_rnn_forward_training(get(), &desc, &tensors, workspace.data, workspace.bytes, stream));
  }

  /// Runs recurrent layers without a reserve (mp_rnn_forward_inference).
  outcome<void> rnn_forward_inference(const mp_rnn_desc_t &desc, const mp_rnn_tensors_t &tensors,
                                      workspace workspace, mp_stream_t stream = nullptr) const {
    return check(
        mp_rnn_forward_inference(get(), &desc, &tensors, workspace.data, workspace.bytes, stream));
  }

  /// Computes the gradients of inputs and initial states (mp_rnn_backward_data).
  outcome<void> rnn_backward_data(const mp_rnn_desc_t &desc, const mp_rnn_tensors_t &tensors,
                                  workspace workspace, mp_stream_t stream = nullptr) const {
    return check(
        mp_rnn_backward_data(get(), &desc, &tensors, workspace.data, workspace.bytes, stream));
  }

  /// Computes the gradients of weights and biases (mp_rnn_backward_weights).
  outcome<void> rnn_backward_weights(const mp_rnn_desc_t &desc, const mp_rnn_tensors_t &tensors,
                                     workspace workspace, mp_stream_t stream = nullptr) const {
    return check(
        mp_rnn_backward_weights(get(), &desc, &tensors, workspace.data, workspace.bytes, stream));
  }

  // --- embedding, dropout, rotary embedding, softmax

  /// Copies rows of a table (mp_embedding_forward).
  outcome<void> embedding_forward(const mp_embedding_desc_t &desc, const void *table,
                                  const void *indices, void *out,
                                  mp_stream_t stream = nullptr) const {
    return check(mp_embedding_forward(get(), &desc, table, indices, out, stream));
  }

  /// Returns the workspace size of embedding_backward (mp_embedding_workspace_size).
  outcome<size_t> embedding_workspace_size(const mp_embedding_desc_t &desc) const {
    return detail::query<size_t>(mp_embedding_workspace_size, get(), &desc);
  }

  /// Computes the gradient of the table (mp_embedding_backward).
  outcome<void> embedding_backward(const mp_embedding_desc_t &desc, const void *indices,
                                   const void *dout, void *dtable, const mp_grad_stats_t *stats,
                                   workspace workspace, mp_stream_t stream = nullptr) const {
    return check(mp_embedding_backward(get(), &desc, indices, dout, dtable, stats, workspace.data,
                                       workspace.bytes, stream));
  }

  /// Applies dropout, in the forward or backward pass (mp_dropout).
  outcome<void> dropout(const mp_dropout_desc_t &desc, const uint64_t *offset, const void *x,
                        void *y, const mp_grad_stats_t *stats = nullptr,
                        mp_stream_t stream = nullptr) const {
    return check(mp_dropout(get(), &desc, offset, x, y, stats, stream));
  }

  /// Rotates pairs of elements by their position (mp_rope).
  outcome<void> rope(const mp_rope_desc_t &desc, const int32_t *positions, const float *inv_freq,
                     const void *x, void *y, const mp_grad_stats_t *stats = nullptr,
                     mp_stream_t stream = nullptr) const {
    return check(mp_rope(get(), &desc, positions, inv_freq, x, y, stats, stream));
  }

  /// Computes the softmax of each row (mp_softmax_forward).
  outcome<void> softmax_forward(const mp_softmax_desc_t &desc, const void *x, const void *mask,
                                void *y, mp_stream_t stream = nullptr) const {
    return check(mp_softmax_forward(get(), &desc, x, mask, y, stream));
  }

  /// Computes the gradient of a softmax (mp_softmax_backward).
  outcome<void> softmax_backward(const mp_softmax_desc_t &desc, const void *y, const void *dy,
                                 const void *mask, void *dx, const mp_grad_stats_t *stats = nullptr,
                                 mp_stream_t stream = nullptr) const {
    return check(mp_softmax_backward(get(), &desc, y, dy, mask, dx, stats, stream));
  }

  // --- attention

  /// Computes scaled dot-product attention (mp_attention_forward).
  outcome<void> attention_forward(const mp_attention_desc_t &desc,
                                  const mp_attention_tensors_t &tensors,
                                  mp_stream_t stream = nullptr) const {
    return check(mp_attention_forward(get(), &desc, &tensors, stream));
  }

  /// Returns the workspace size of attention_backward (mp_attention_backward_workspace_size).
  outcome<size_t> attention_backward_workspace_size(const mp_attention_desc_t &desc) const {
    return detail::query<size_t>(mp_attention_backward_workspace_size, get(), &desc);
  }

  /// Computes the gradients of an attention (mp_attention_backward).
  outcome<void> attention_backward(const mp_attention_desc_t &desc,
                                   const mp_attention_tensors_t &tensors, workspace workspace,
                                   mp_stream_t stream = nullptr) const {
    return check(
        mp_attention_backward(get(), &desc, &tensors, workspace.data, workspace.bytes, stream));
  }

  // --- kernel selection

#ifdef MP_ENABLE_EXPERIMENTAL
  /// Describes a kernel for a product (mp_gemm_kernel_info).
  outcome<mp_kernel_info_t> gemm_kernel_info(const mp_gemm_desc_t &desc, int32_t index) const {
    return detail::query_struct<mp_kernel_info_t>(mp_gemm_kernel_info, get(), &desc, index);
  }

  /// Describes the plan of a product (mp_gemm_explain).
  outcome<std::string> gemm_explain(const mp_gemm_desc_t &desc,
                                    const mp_epilogue_t *epilogue = nullptr) const {
    return detail::read_text(mp_gemm_explain, get(), &desc, epilogue);
  }

  /// Describes the plan of a convolution (mp_conv2d_explain).
  outcome<std::string> conv2d_explain(const mp_conv2d_desc_t &desc, mp_conv_op_t op,
                                      const mp_epilogue_t *epilogue = nullptr) const {
    return detail::read_text(mp_conv2d_explain, get(), &desc, op, epilogue);
  }

  /// Describes a kernel for a convolution (mp_conv2d_kernel_info).
  outcome<mp_kernel_info_t> conv2d_kernel_info(const mp_conv2d_desc_t &desc, mp_conv_op_t op,
                                               int32_t index) const {
    return detail::query_struct<mp_kernel_info_t>(mp_conv2d_kernel_info, get(), &desc, op, index);
  }

  /// Describes a kernel for recurrent layers (mp_rnn_kernel_info).
  outcome<mp_kernel_info_t> rnn_kernel_info(const mp_rnn_desc_t &desc, int32_t index) const {
    return detail::query_struct<mp_kernel_info_t>(mp_rnn_kernel_info, get(), &desc, index);
  }

  /// Describes a kernel for attention (mp_attention_kernel_info).
  outcome<mp_kernel_info_t> attention_kernel_info(const mp_attention_desc_t &desc,
                                                  int32_t index) const {
    return detail::query_struct<mp_kernel_info_t>(mp_attention_kernel_info, get(), &desc, index);
  }
  /// Describes the kernels of both passes of attention (mp_attention_explain).
  outcome<std::string> attention_explain(const mp_attention_desc_t &desc) const {
    return detail::read_text(mp_attention_explain, get(), &desc);
  }
  /// Selects the kernel of later calls of attention (mp_attention_set_kernel).
  outcome<void> attention_set_kernel(const char *kernel) const {
    return check(mp_attention_set_kernel(get(), kernel));
  }
#endif
};

// ---------------------------------------------------------------------------- tensor lists

/// Tensor of a list; `data` is its device address.
struct list_tensor {
  void *data;
  int64_t numel;
  mp_dtype_t dtype;
};

/// Returns a tensor of a list (mp_tensor_list_get_tensor), including lists that belong to an
/// optimizer (optimizer::moments) or graph (graph::lists).
inline outcome<list_tensor> tensor_list_get(mp_tensor_list_t list, uint32_t index) {
  list_tensor tensor{};
  return detail::finish(
      mp_tensor_list_get_tensor(list, index, &tensor.data, &tensor.numel, &tensor.dtype), tensor);
}

/// Tensor list and its operations: tensors.h, mp_masters_to_model and mp_grads_all_reduce.
class tensor_list : public detail::handle<mp_tensor_list_t, mp_tensor_list_destroy> {
 public:
  using handle::handle;

  /// Creates a list (mp_tensor_list_create).
  static outcome<tensor_list> create(mp_context_t context, const mp_tensor_list_desc_t &desc) {
    return detail::create<tensor_list>(mp_tensor_list_create, context, &desc);
  }

  /// Replaces the addresses of all tensors (mp_tensor_list_set_data).
  outcome<void> set_data(void *const *data, mp_stream_t stream = nullptr) const {
    return check(mp_tensor_list_set_data(get(), data, stream));
  }

  /// Sets a flag if an element is infinite or NaN (mp_check_nonfinite).
  outcome<void> check_nonfinite(float *found_inf, mp_stream_t stream = nullptr) const {
    return check(mp_check_nonfinite(get(), found_inf, stream));
  }

  /// Computes the largest absolute value (mp_amax).
  outcome<void> amax(float *amax, float *per_tensor = nullptr, mp_stream_t stream = nullptr) const {
    return check(mp_amax(get(), amax, per_tensor, stream));
  }

  /// Computes the L2 norm (mp_l2norm).
  outcome<void> l2norm(float *norm, float *per_tensor = nullptr,
                       mp_stream_t stream = nullptr) const {
    return check(mp_l2norm(get(), norm, per_tensor, stream));
  }

  /// Reports range, overflow and underflow (mp_inspect).
  outcome<void> inspect(mp_tensor_report_t *report, mp_tensor_report_t *tensor_reports = nullptr,
                        mp_stream_t stream = nullptr) const {
    return check(mp_inspect(get(), report, tensor_reports, stream));
  }

  /// Computes several statistics in one pass (mp_tensor_stats).
  outcome<void> stats(const mp_stats_outputs_t &outputs, mp_stream_t stream = nullptr) const {
    return check(mp_tensor_stats(get(), &outputs, stream));
  }

  /// Rounds this list of fp32 master weights to 16-bit copies (mp_masters_to_model).
  outcome<void> masters_to_model(mp_tensor_list_t model, const float *found_inf = nullptr,
                                 const mp_model_options_t *options = nullptr,
                                 mp_stream_t stream = nullptr) const {
    return check(mp_masters_to_model(get(), model, found_inf, options, stream));
  }

  /// Multiplies the gradients by 1/S and checks them (mp_unscale).
  outcome<void> unscale(mp_tensor_list_t out, const float *inv_scale, float *found_inf,
                        mp_stream_t stream = nullptr) const {
    return check(mp_unscale(get(), out, inv_scale, found_inf, stream));
  }

  /// Sums the gradients over all ranks (mp_grads_all_reduce).
  outcome<void> grads_all_reduce(const mp_comm_t &comm, float pre, float post,
                                 mp_stream_t stream = nullptr) const {
    return check(mp_grads_all_reduce(get(), &comm, pre, post, stream));
  }
};

// ---------------------------------------------------------------------------- loss scaler

/// Loss scaler: scaler.h, and the functions of step.h that take a scaler.
class scaler : public detail::handle<mp_scaler_t, mp_scaler_destroy> {
 public:
  using handle::handle;

  /// Creates a loss scaler (mp_scaler_create).
  static outcome<scaler> create(mp_context_t context, const mp_scaler_config_t &config) {
    return detail::create<scaler>(mp_scaler_create, context, &config);
  }

  /// Returns the device address of S (mp_scaler_get_scale_address).
  const float *scale() const &noexcept { return mp_scaler_get_scale_address(get()); }
  const float *scale() const && = delete;
  /// Returns the device address of 1/S (mp_scaler_get_inv_scale_address).
  const float *inv_scale() const &noexcept { return mp_scaler_get_inv_scale_address(get()); }
  const float *inv_scale() const && = delete;
  /// Returns the device address of the overflow flag (mp_scaler_get_found_inf_address).
  float *found_inf() const &noexcept { return mp_scaler_get_found_inf_address(get()); }
  float *found_inf() const && = delete;

  /// Multiplies a loss by S (mp_scale_loss).
  outcome<void> scale_loss(const void *loss, void *out, mp_dtype_t dtype, int64_t count,
                           mp_stream_t stream = nullptr) const {
    return check(mp_scale_loss(get(), loss, out, dtype, count, stream));
  }

  /// Updates S and clears the overflow flag (mp_scaler_update).
  outcome<void> update(const float *amax = nullptr, mp_stream_t stream = nullptr) const {
    return check(mp_scaler_update(get(), amax, stream));
  }

  /// Adds unscaled gradients to fp32 sums (mp_grads_accumulate).
  outcome<void> grads_accumulate(mp_tensor_list_t grads, mp_tensor_list_t sums, float weight,
                                 uint32_t flags, mp_stream_t stream = nullptr) const {
    return check(mp_grads_accumulate(get(), grads, sums, weight, flags, stream));
  }

  /// Unscales gradients to fp32 and checks them (mp_grads_to_fp32).
  outcome<void> grads_to_fp32(mp_tensor_list_t grads, mp_tensor_list_t out,
                              mp_stream_t stream = nullptr) const {
    return check(mp_grads_to_fp32(get(), grads, out, stream));
  }

  /// Returns the outcome of a step without waiting (mp_scaler_query_step).
  outcome<mp_step_outcome_t> query_step(int64_t step) const {
    mp_step_outcome_t outcome = MP_STEP_OUTCOME_PENDING;
    return detail::finish(mp_scaler_query_step(get(), step, &outcome), outcome);
  }

  /// Returns the state, for a checkpoint (mp_scaler_get_state_sync).
  outcome<mp_scaler_state_t> get_state_sync(mp_stream_t stream = nullptr) const {
    mp_scaler_state_t state;
    MP_INIT_STRUCT(&state);
    return detail::finish(mp_scaler_get_state_sync(get(), &state, stream), state);
  }

  /// Restores a state (mp_scaler_set_state_sync).
  outcome<void> set_state_sync(const mp_scaler_state_t &state, mp_stream_t stream = nullptr) const {
    return check(mp_scaler_set_state_sync(get(), &state, stream));
  }

  /// Copies the latest updates and returns their number (mp_scaler_get_history_sync).
  outcome<int64_t> get_history_sync(int64_t capacity, float *scales, int32_t *skipped,
                                    mp_stream_t stream = nullptr) const {
    int64_t count = 0;
    return detail::finish(
        mp_scaler_get_history_sync(get(), capacity, scales, skipped, &count, stream), count);
  }
};

// ---------------------------------------------------------------------------- optimizers

/// Moment lists, which belong to their optimizer; NULL if it has none.
struct optimizer_moments {
  mp_tensor_list_t m, v;
};

/// Optimizer: optimizer.h and mp_scale_step.
class optimizer : public detail::handle<mp_optimizer_t, mp_optimizer_destroy> {
 public:
  using handle::handle;

  /// Creates an optimizer (mp_optimizer_create).
  static outcome<optimizer> create(mp_context_t context, const mp_optimizer_desc_t &desc) {
    return detail::create<optimizer>(mp_optimizer_create, context, &desc);
  }

  /// Replaces the hyperparameters of a group (mp_optimizer_set_group).
  outcome<void> set_group(uint32_t index, const mp_param_group_t &group,
                          mp_stream_t stream = nullptr) const {
    return check(mp_optimizer_set_group(get(), index, &group, stream));
  }

  /// Updates the weights (mp_optimizer_step).
  outcome<void> step(const float *grad_scale = nullptr, const float *found_inf = nullptr,
                     mp_stream_t stream = nullptr) const {
    return check(mp_optimizer_step(get(), grad_scale, found_inf, stream));
  }

  /// Checks, unscales and clips the gradients, and updates weights and S (mp_scale_step).
  outcome<void> scale_step(mp_scaler_t scaler, const mp_step_options_t *options = nullptr,
                           mp_stream_t stream = nullptr) const {
    return check(mp_scale_step(get(), scaler, options, stream));
  }

  /// Returns the optimizer's own scaler (mp_optimizer_get_scaler).  It belongs to the optimizer, so
  /// do not pass it to an mp::scaler.
  mp_scaler_t get_scaler() const &noexcept { return mp_optimizer_get_scaler(get()); }
  mp_scaler_t get_scaler() const && = delete;

  /// Returns the device address of the learning rates (mp_optimizer_get_lr_address).
  const float *lr() const &noexcept { return mp_optimizer_get_lr_address(get()); }
  const float *lr() const && = delete;

  /// Returns the device address of the step counter (mp_optimizer_get_step_address).
  const int64_t *step_counter() const &noexcept { return mp_optimizer_get_step_address(get()); }
  const int64_t *step_counter() const && = delete;

  /// Computes the L1 and L2 terms of the loss (mp_optimizer_regularization).
  outcome<void> regularization(float *loss, mp_stream_t stream = nullptr) const {
    return check(mp_optimizer_regularization(get(), loss, stream));
  }

  /// Returns the moment lists (mp_optimizer_get_moments).
  outcome<optimizer_moments> moments() const & {
    optimizer_moments lists{};
    return detail::finish(mp_optimizer_get_moments(get(), &lists.m, &lists.v), lists);
  }
  outcome<optimizer_moments> moments() const && = delete;

  /// Rounds the master weights to their 16-bit copies (mp_optimizer_write_model).
  outcome<void> write_model(mp_stream_t stream = nullptr) const {
    return check(mp_optimizer_write_model(get(), stream));
  }

  /// Returns the size of a checkpoint (mp_optimizer_checkpoint_size).
  outcome<size_t> checkpoint_size(mp_scaler_t scaler) const {
    return detail::query<size_t>(mp_optimizer_checkpoint_size, get(), scaler);
  }

  /// Returns a checkpoint (mp_optimizer_save_sync).
  /// @param scaler  its state is included; NULL = the optimizer's own scaler.
  outcome<std::vector<std::byte>> save_sync(mp_scaler_t scaler,
                                            mp_stream_t stream = nullptr) const {
    size_t bytes = 0;
    mp_status_t status = mp_optimizer_checkpoint_size(get(), scaler, &bytes);
    std::vector<std::byte> checkpoint(bytes);
    if (status == MP_SUCCESS)
      status = mp_optimizer_save_sync(get(), scaler, checkpoint.data(), bytes, stream);
    return detail::finish(status, checkpoint);
  }

  /// Restores a checkpoint and writes the 16-bit weights (mp_optimizer_restore_sync).
  outcome<void> restore_sync(mp_scaler_t scaler, const std::vector<std::byte> &checkpoint,
                             mp_stream_t stream = nullptr) const {
    return check(
        mp_optimizer_restore_sync(get(), scaler, checkpoint.data(), checkpoint.size(), stream));
  }

  /// Returns the step counter (mp_optimizer_get_step_sync).
  outcome<int64_t> get_step_sync(mp_stream_t stream = nullptr) const {
    int64_t t = 0;
    return detail::finish(mp_optimizer_get_step_sync(get(), &t, nullptr, stream), t);
  }

  /// Sets the step counter (mp_optimizer_set_step_sync).
  outcome<void> set_step_sync(int64_t t, mp_stream_t stream = nullptr) const {
    return check(mp_optimizer_set_step_sync(get(), t, nullptr, stream));
  }
};

// ---------------------------------------------------------------------------- autocast

/// Tensor of an autocast_graph; fields as in mp_autocast_graph_t.
struct autocast_tensor {
  int32_t producer = -1;
  mp_dtype_t dtype = MP_FP32;
  mp_tensor_role_t role = MP_TENSOR_ROLE_ACTIVATION;
  uint8_t slot = 0;
  float amax = -1.0f;
};

/// Input of a node: the index of a tensor, converted implicitly, and a slot.
struct autocast_input {
  autocast_input(int32_t number, uint8_t of_slot = 0) : tensor(number), slot(of_slot) {}
  int32_t tensor;
  uint8_t slot;
};

/// Node of an autocast_graph; fields as in mp_autocast_graph_t.  Empty strings are passed as NULL.
struct autocast_node {
  std::string op;
  std::vector<autocast_input> inputs = {};
  std::string name = {};
  uint16_t flags = 0;
  int64_t depth = 0;
  std::optional<mp_op_class_t> node_class = {};  ///< empty = class of op
};

/// Builder of an mp_autocast_graph_t, which owns its arrays.
///
/// Tensors and nodes may refer to indices that are added later, so a graph can have cycles.
/// Functions that take the graph check its indices.
///
///     mp::autocast_graph graph;
///     const int32_t x = graph.add_tensor();
///     const int32_t w = graph.add_tensor({-1, MP_FP32, MP_TENSOR_ROLE_PARAMETER});
///     const int32_t conv = graph.add_node({"Conv2D", {x, w}, "conv1"});
///     const int32_t y = graph.add_tensor({conv});
class autocast_graph {
 public:
  autocast_graph() = default;
  // Not copyable: a copy would point to the strings of the original.
  autocast_graph(autocast_graph &&) = default;
  autocast_graph &operator=(autocast_graph &&) = default;

  /// Adds a tensor and returns its index.
  int32_t add_tensor(const autocast_tensor &tensor = {}) {
    tensor_producer_.push_back(tensor.producer);
    tensor_dtype_.push_back(static_cast<uint8_t>(tensor.dtype));
    tensor_role_.push_back(static_cast<uint8_t>(tensor.role));
    tensor_slot_.push_back(tensor.slot);
    tensor_amax_.push_back(tensor.amax);
    return static_cast<int32_t>(tensor_producer_.size()) - 1;
  }

  /// Adds a node and returns its index.
  int32_t add_node(const autocast_node &node) {
    node_op_.push_back(keep(node.op));
    node_name_.push_back(keep(node.name));
    node_flags_.push_back(node.flags);
    node_depth_.push_back(node.depth);
    node_class_.push_back(node.node_class ? static_cast<uint8_t>(1 + *node.node_class)
                                          : uint8_t{0});
    for (const autocast_input &input : node.inputs) {
      input_tensor_.push_back(input.tensor);
      input_slot_.push_back(input.slot);
    }
    end_range(input_offsets_, input_tensor_);
    return static_cast<int32_t>(node_op_.size()) - 1;
  }

  /// Adds a hidden edge between two nodes.
  void add_hidden_edge(int32_t src, int32_t dst) {
    hidden_src_.push_back(src);
    hidden_dst_.push_back(dst);
  }

  /// Adds a container: a cluster of kind 0.
  void add_container(const std::vector<int32_t> &members) { add_cluster(members, 0); }
  /// Adds a loop: a cluster of kind 1.
  void add_loop(const std::vector<int32_t> &members) { add_cluster(members, 1); }

  /// Returns the graph for C.  Its pointers are valid until this object is modified or moved.
  mp_autocast_graph_t get() const &noexcept {
    mp_autocast_graph_t graph;
    MP_INIT_STRUCT(&graph);
    graph.num_nodes = static_cast<uint32_t>(node_op_.size());
    graph.num_tensors = static_cast<uint32_t>(tensor_producer_.size());
    graph.num_hidden_edges = static_cast<uint32_t>(hidden_src_.size());
    graph.num_clusters = static_cast<uint32_t>(cluster_kind_.size());
    graph.node_op = node_op_.data();
    graph.node_class = node_class_.data();
    graph.node_name = node_name_.data();
    graph.node_flags = node_flags_.data();
    graph.node_depth = node_depth_.data();
    graph.input_offsets = input_offsets_.data();
    graph.input_tensor = input_tensor_.data();
    graph.input_slot = input_slot_.data();
    graph.tensor_producer = tensor_producer_.data();
    graph.tensor_slot = tensor_slot_.data();
    graph.tensor_dtype = tensor_dtype_.data();
    graph.tensor_role = tensor_role_.data();
    graph.tensor_amax = tensor_amax_.data();
    graph.hidden_src = hidden_src_.data();
    graph.hidden_dst = hidden_dst_.data();
    graph.member_offsets = member_offsets_.data();
    graph.member = member_.data();
    graph.cluster_kind = cluster_kind_.data();
    return graph;
  }
  mp_autocast_graph_t get() const && = delete;
  operator mp_autocast_graph_t() const &noexcept { return get(); }
  operator mp_autocast_graph_t() const && = delete;

 private:
  /// Returns a copy of `text` with a stable address, NULL for an empty text.
  const char *keep(const std::string &text) {
    return text.empty() ? nullptr : texts_.insert(text).first->c_str();
  }

  /// Appends the end of a range to `first`, which starts with 0 (empty: default or moved-from).
  static void end_range(std::vector<int32_t> &first, const std::vector<int32_t> &elements) {
    if (first.empty()) first.push_back(0);
    first.push_back(static_cast<int32_t>(elements.size()));
  }

  void add_cluster(const std::vector<int32_t> &members, uint8_t kind) {
    member_.insert(member_.end(), members.begin(), members.end());
    end_range(member_offsets_, member_);
    cluster_kind_.push_back(kind);
  }

  std::unordered_set<std::string> texts_;
  std::vector<const char *> node_op_, node_name_;
  std::vector<uint8_t> node_class_, input_slot_, tensor_slot_, tensor_dtype_, tensor_role_,
      cluster_kind_;
  std::vector<uint16_t> node_flags_;
  std::vector<int64_t> node_depth_;
  std::vector<int32_t> input_offsets_, input_tensor_, tensor_producer_, hidden_src_, hidden_dst_,
      member_offsets_, member_;
  std::vector<float> tensor_amax_;
};

/// Result of autocast::rewrite: mp_autocast_result_t with owned arrays.  num_casts is casts.size().
struct autocast_result {
  int32_t num_low_nodes = 0, num_parameters_low = 0;
  std::vector<uint8_t> tensor_dtype, node_dtype;
  std::vector<int32_t> input_cast;
  std::vector<mp_autocast_cast_t> casts;
  std::vector<uint8_t> node_reason;
  std::vector<int32_t> node_cause;
  const char *disabled_reason = nullptr;
};

/// Autocast policy: autocast.h.  Requires no context.
class autocast : public detail::handle<mp_autocast_t, mp_autocast_destroy> {
 public:
  using handle::handle;

  /// Creates a policy (mp_autocast_create).
  static outcome<autocast> create(
      const mp_autocast_config_t &config = mp_autocast_config_default(MP_FP16)) {
    return detail::create<autocast>(mp_autocast_create, &config);
  }

  /// Moves operations to a class (mp_autocast_set_class).
  outcome<void> set_class(const char *const *op_types, uint32_t count,
                          mp_op_class_t op_class) const {
    return check(mp_autocast_set_class(get(), op_types, count, op_class));
  }

  /// Moves operations to a class (mp_autocast_set_class).
  outcome<void> set_class(std::initializer_list<const char *> op_types,
                          mp_op_class_t op_class) const {
    return set_class(op_types.begin(), static_cast<uint32_t>(op_types.size()), op_class);
  }

  /// Assigns a class to nodes by name (mp_autocast_set_nodes).
  outcome<void> set_nodes(const char *pattern, mp_op_class_t node_class) const {
    return check(mp_autocast_set_nodes(get(), pattern, node_class));
  }

  /// Returns the class of an operation (mp_autocast_get_class; `class` is a keyword).
  mp_op_class_t class_of(const char *op_type) const noexcept {
    return mp_autocast_get_class(get(), op_type);
  }

  /// Returns why autocast is disabled on a device, or NULL (mp_autocast_get_disabled_reason).
  outcome<const char *> disabled_reason(mp_context_t context = nullptr) const {
    return detail::query<const char *>(mp_autocast_get_disabled_reason, get(), context);
  }

  /// Determines the type of each node and the casts (mp_autocast_rewrite); fills all arrays.
  outcome<autocast_result> rewrite(mp_context_t context, const mp_autocast_graph_t &graph) const {
    const bool has_inputs = graph.num_nodes > 0 && graph.input_offsets != nullptr;
    const int32_t end = has_inputs ? graph.input_offsets[graph.num_nodes] : 0;
    // An invalid end is rejected by the library.
    const size_t tensors = graph.num_tensors, inputs = end > 0 ? static_cast<size_t>(end) : 0;
    // Sized for MP_AUTOCAST_FLAG_EMULATE, which cannot be queried from the handle.  Uninitialized,
    // so that unused elements take no physical memory.
    const std::unique_ptr<mp_autocast_cast_t[]> casts(new mp_autocast_cast_t[2 * tensors + inputs]);

    autocast_result owned;
    owned.tensor_dtype.resize(tensors);
    owned.node_dtype.resize(graph.num_nodes);
    owned.input_cast.resize(inputs);
    owned.node_reason.resize(graph.num_nodes);
    owned.node_cause.resize(graph.num_nodes);
    mp_autocast_result_t result;
    MP_INIT_STRUCT(&result);
    result.tensor_dtype = owned.tensor_dtype.data();
    result.node_dtype = owned.node_dtype.data();
    result.input_cast = owned.input_cast.data();
    result.casts = casts.get();
    result.node_reason = owned.node_reason.data();
    result.node_cause = owned.node_cause.data();
    const mp_status_t status = mp_autocast_rewrite(get(), context, &graph, &result);
    owned.num_low_nodes = result.num_low_nodes;
    owned.num_parameters_low = result.num_parameters_low;
    owned.casts.assign(casts.get(), casts.get() + result.num_casts);
    owned.disabled_reason = result.disabled_reason;
    return detail::finish(status, owned);
  }

  /// Returns a report on a rewrite (mp_autocast_explain).
  outcome<std::string> explain(const mp_autocast_graph_t &graph, const autocast_result &result,
                               mp_autocast_format_t format = MP_AUTOCAST_FORMAT_TEXT) const {
    mp_autocast_result_t without_arrays;
    MP_INIT_STRUCT(&without_arrays);
    without_arrays.num_casts = static_cast<int32_t>(result.casts.size());
    without_arrays.num_low_nodes = result.num_low_nodes;
    without_arrays.num_parameters_low = result.num_parameters_low;
    without_arrays.disabled_reason = result.disabled_reason;
    return detail::read_text(mp_autocast_explain, get(), &graph, &without_arrays, format);
  }

  /// Determines the casts of a single operation and returns the type of its output
  /// (mp_autocast_op).
  outcome<mp_dtype_t> op(const char *op_type, const uint8_t *input_dtype, uint32_t count,
                         uint8_t *cast_to) const {
    return detail::query<mp_dtype_t>(mp_autocast_op, get(), op_type, input_dtype, count, cast_to);
  }
};

// ---------------------------------------------------------------------------- graphs

/// Attribute of an operation: mp_graph_attribute_t, with the kind of the value.
class attribute {
 public:
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  attribute(const char *name, T value)
      : c_(std::is_integral_v<T> ? mp_graph_int(name, static_cast<int64_t>(value))
                                 : mp_graph_float(name, static_cast<double>(value))) {}
  attribute(const char *name, std::vector<int64_t> values)
      : c_(mp_graph_ints(name, nullptr, 0)), ints_(std::move(values)) {}
  attribute(const char *name, std::initializer_list<int64_t> values)
      : attribute(name, std::vector<int64_t>(values)) {}
  attribute(const char *name, std::vector<double> values)
      : c_(mp_graph_floats(name, nullptr, 0)), floats_(std::move(values)) {}

  /// Returns the attribute for C.  Its pointers are valid until this object is modified or moved.
  mp_graph_attribute_t get() const &noexcept {
    mp_graph_attribute_t c = c_;
    c.ints = ints_.data();
    c.floats = floats_.data();
    c.count = static_cast<uint32_t>(ints_.size() + floats_.size());
    return c;
  }
  mp_graph_attribute_t get() const && = delete;

 private:
  mp_graph_attribute_t c_;
  std::vector<int64_t> ints_;
  std::vector<double> floats_;
};

/// Lists for an mp_optimizer_desc_t, which belong to their graph.
struct graph_lists {
  mp_tensor_list_t grads = nullptr, master = nullptr, model = nullptr;
};

/// Graph: graph.h.  Tensors are indices, as in C.
///
///     mp::graph graph = mp::graph::create(context);
///     const int32_t x = graph.input("x", MP_FP32, {128, 784});
///     const int32_t w = graph.parameter("w", {784, 10});
///     const int32_t y = graph.node("Linear", "fc", {x, w}, {{"transposed", 0}});
class graph : public detail::handle<mp_graph_t, mp_graph_destroy> {
 public:
  using handle::handle;

  /// Creates an empty graph (mp_graph_create).
  static outcome<graph> create(mp_context_t context) {
    return detail::create<graph>(mp_graph_create, context);
  }

  // --- description

  /// Adds an input (mp_graph_add_input).
  outcome<int32_t> input(const char *name, mp_dtype_t dtype,
                         const std::vector<int64_t> &extent) const {
    const auto rank = static_cast<int32_t>(extent.size());
    return detail::query<int32_t>(mp_graph_add_input, get(), name, dtype, rank, extent.data());
  }

  /// Adds a trainable tensor (mp_graph_add_parameter).
  outcome<int32_t> parameter(const char *name, const std::vector<int64_t> &extent) const {
    const auto rank = static_cast<int32_t>(extent.size());
    return detail::query<int32_t>(mp_graph_add_parameter, get(), name, rank, extent.data());
  }

  /// Adds a persistent tensor that is not trained (mp_graph_add_state).
  outcome<int32_t> state(const char *name, const std::vector<int64_t> &extent) const {
    const auto rank = static_cast<int32_t>(extent.size());
    return detail::query<int32_t>(mp_graph_add_state, get(), name, rank, extent.data());
  }

  /// Adds a node and returns its first output (mp_graph_add_node).
  outcome<int32_t> node(const char *op_type, const char *name, const std::vector<int32_t> &inputs,
                        const std::vector<attribute> &attributes = {}) const {
    int32_t output = -1;
    return detail::finish(add_node(op_type, name, inputs, attributes, &output, 1), output);
  }

  /// Adds a node and returns its first `num_outputs` outputs (mp_graph_add_node).
  outcome<std::vector<int32_t>> node_outputs(const char *op_type, const char *name,
                                             const std::vector<int32_t> &inputs,
                                             uint32_t num_outputs,
                                             const std::vector<attribute> &attributes = {}) const {
    std::vector<int32_t> outputs(num_outputs);
    return detail::finish(add_node(op_type, name, inputs, attributes, outputs.data(), num_outputs),
                          outputs);
  }

  /// Makes a tensor readable (mp_graph_add_output).
  outcome<void> output(int32_t tensor) const { return check(mp_graph_add_output(get(), tensor)); }

  /// Makes the gradient of a tensor readable (mp_graph_keep_gradient).
  outcome<void> keep_gradient(int32_t tensor) const {
    return check(mp_graph_keep_gradient(get(), tensor));
  }

  /// Sets the loss to minimize (mp_graph_set_loss).
  outcome<void> loss(int32_t tensor) const { return check(mp_graph_set_loss(get(), tensor)); }

  /// Adds and returns an input for the gradient of `tensor` (mp_graph_seed_gradient).
  outcome<int32_t> seed_gradient(int32_t tensor) const {
    return detail::query<int32_t>(mp_graph_seed_gradient, get(), tensor);
  }

  /// Enables mixed precision (mp_graph_set_autocast).  The policy must exist until compile()
  /// returns.
  outcome<void> autocast(mp_autocast_t policy) const {
    return check(mp_graph_set_autocast(get(), policy));
  }

  /// Selects kernels by times that the first passes measure (mp_graph_measure_kernels).
  outcome<void> measure_kernels(int32_t max_kernels) const {
    return check(mp_graph_measure_kernels(get(), max_kernels));
  }

  /// Differentiates, fuses and allocates (mp_graph_compile).
  outcome<void> compile() const { return check(mp_graph_compile(get())); }

  // --- execution

  /// Sets the address of an input (mp_graph_bind).
  outcome<void> bind(int32_t tensor, const void *data) const {
    return check(mp_graph_bind(get(), tensor, data));
  }

  /// Sets the batch size (mp_graph_set_batch).
  outcome<void> set_batch(int64_t batch) const { return check(mp_graph_set_batch(get(), batch)); }

  /// Copies values to a parameter or state (mp_graph_write).
  outcome<void> write(int32_t tensor, const float *values, mp_stream_t stream = nullptr) const {
    return check(mp_graph_write(get(), tensor, values, stream));
  }

  /// Computes the outputs (mp_graph_forward).
  outcome<void> forward(mp_graph_mode_t mode, mp_stream_t stream = nullptr) const {
    return check(mp_graph_forward(get(), mode, stream));
  }

  /// Computes the loss and the gradients (mp_graph_backward).
  outcome<void> backward(mp_scaler_t scaler = nullptr, mp_stream_t stream = nullptr) const {
    return check(mp_graph_backward(get(), scaler, stream));
  }

  /// Returns the number of training passes, for dropout masks (mp_graph_get_step_sync).
  outcome<int64_t> get_step_sync(mp_stream_t stream = nullptr) const {
    int64_t t = 0;
    return detail::finish(mp_graph_get_step_sync(get(), &t, stream), t);
  }

  /// Sets the number of training passes, for dropout masks (mp_graph_set_step_sync).
  outcome<void> set_step_sync(int64_t t, mp_stream_t stream = nullptr) const {
    return check(mp_graph_set_step_sync(get(), t, stream));
  }

  // --- properties

  /// Returns the lists for an optimizer (mp_graph_get_lists).
  /// @param with_grads  must be false for a graph without a backward pass.
  outcome<graph_lists> lists(bool with_grads = true) const & {
    graph_lists lists;
    return detail::finish(
        mp_graph_get_lists(get(), with_grads ? &lists.grads : nullptr, &lists.master, &lists.model),
        lists);
  }
  outcome<graph_lists> lists(bool with_grads = true) const && = delete;

  /// Returns shape, types and addresses of a tensor (mp_graph_get_tensor).
  outcome<mp_graph_tensor_t> get_tensor(int32_t tensor) const & {
    return detail::query_struct<mp_graph_tensor_t>(mp_graph_get_tensor, get(), tensor);
  }
  outcome<mp_graph_tensor_t> get_tensor(int32_t tensor) const && = delete;

  /// Returns the device memory of the graph (mp_graph_get_memory).
  outcome<mp_graph_memory_t> get_memory() const {
    return detail::query_struct<mp_graph_memory_t>(mp_graph_get_memory, get());
  }

  /// Returns the reason for the type of each operation (mp_graph_explain).
  outcome<std::string> explain(mp_autocast_format_t format = MP_AUTOCAST_FORMAT_TEXT) const {
    return detail::read_text(mp_graph_explain, get(), format);
  }

  /// Returns the calls of the graph as text (mp_graph_describe).
  outcome<std::string> describe() const { return detail::read_text(mp_graph_describe, get()); }

 private:
  mp_status_t add_node(const char *op_type, const char *name, const std::vector<int32_t> &inputs,
                       const std::vector<attribute> &attributes, int32_t *outputs,
                       uint32_t num_outputs) const {
    std::vector<mp_graph_attribute_t> read;
    for (const attribute &each : attributes) read.push_back(each.get());
    return mp_graph_add_node(get(), op_type, name, inputs.data(),
                             static_cast<uint32_t>(inputs.size()), read.data(),
                             static_cast<uint32_t>(read.size()), outputs, num_outputs);
  }
};

}  // namespace throwing or returning
}  // namespace mp

#endif  // MPCORE_HPP
