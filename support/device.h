// Ownership of mpcore objects in the programs: one check() for every status, owners that destroy
// handles and free device memory.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/dtypes.h"
#include "mpcore.h"

namespace mptools {

/// Default stream, on which all functions of this header run.
constexpr mp_stream_t kStream = nullptr;

/// Converts an error status to an exception with the library's message.
inline void check(mp_status_t status) {
  if (status == MP_SUCCESS) return;
  throw std::runtime_error(std::string(mp_status_string(status)) + ": " + mp_last_error());
}

template <auto kDestroy>
struct Destroyer {
  template <typename Handle>
  void operator()(Handle *handle) const {
    kDestroy(handle);
  }
};

using Context = std::unique_ptr<mp_context, Destroyer<mp_context_destroy>>;
using TensorList = std::unique_ptr<mp_tensor_list, Destroyer<mp_tensor_list_destroy>>;
using Scaler = std::unique_ptr<mp_scaler, Destroyer<mp_scaler_destroy>>;
using Optimizer = std::unique_ptr<mp_optimizer, Destroyer<mp_optimizer_destroy>>;

/// @param device    an ordinal or one of MP_DEVICE_*.
/// @param sm_limit  as in mp_context_config.
inline Context make_context(int32_t device, int32_t sm_limit = 0) {
  mp_context_config_t config = mp_context_config_default();
  config.device = device;
  config.sm_limit = sm_limit;
  mp_context_t context = nullptr;
  check(mp_context_create(&context, &config));
  return Context(context);
}

inline mp_device_info_t device_info(mp_context_t context) {
  mp_device_info_t info;
  MP_INIT_STRUCT(&info);
  check(mp_context_get_info(context, &info));
  return info;
}

inline Scaler make_scaler(mp_context_t context, const mp_scaler_config_t &config) {
  mp_scaler_t scaler = nullptr;
  check(mp_scaler_create(&scaler, context, &config));
  return Scaler(scaler);
}

inline Optimizer make_optimizer(mp_context_t context, const mp_optimizer_desc_t &desc) {
  mp_optimizer_t optimizer = nullptr;
  check(mp_optimizer_create(&optimizer, context, &desc));
  return Optimizer(optimizer);
}

/// Creates a list of tensors of one type.
inline TensorList make_list(mp_context_t context, mp_dtype_t dtype, const std::vector<void *> &data,
                            const std::vector<int64_t> &numel) {
  mp_tensor_list_desc_t desc;
  MP_INIT_STRUCT(&desc);
  desc.dtype = dtype;
  desc.count = static_cast<uint32_t>(data.size());
  desc.data = data.data();
  desc.numel = numel.data();
  mp_tensor_list_t list = nullptr;
  check(mp_tensor_list_create(&list, context, &desc));
  return TensorList(list);
}

/// Device memory, zero-initialized.  Must be destroyed before its context.
class Buffer {
 public:
  Buffer() = default;
  // Delegates, so that the destructor runs if the memset fails.
  Buffer(mp_context_t context, int64_t bytes) : Buffer() {
    context_ = context;
    bytes_ = bytes;
    if (bytes == 0) return;
    check(mp_malloc(context, &data_, static_cast<size_t>(bytes)));
    check(mp_memset(context, data_, 0, static_cast<size_t>(bytes), kStream));
  }
  Buffer(Buffer &&other) noexcept { swap(other); }
  Buffer &operator=(Buffer &&other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) mp_free(context_, data_);
  }

  void *data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  template <typename T>
  T *as() const {
    return static_cast<T *>(data_);
  }

 private:
  void swap(Buffer &other) {
    std::swap(context_, other.context_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  mp_context_t context_ = nullptr;
  void *data_ = nullptr;
  int64_t bytes_ = 0;
};

inline Buffer make_buffer(mp_context_t context, int64_t count, mp_dtype_t dtype) {
  return Buffer(context, count * static_cast<int64_t>(mp_dtype_size(dtype)));
}

/// Synchronizes, then copies `count` elements to the host.
template <typename T>
std::vector<T> download_sync(mp_context_t context, const T *device, int64_t count) {
  std::vector<T> host(static_cast<size_t>(count));
  check(mp_memcpy(context, host.data(), device, host.size() * sizeof(T), kStream));
  check(mp_stream_sync(context, kStream));
  return host;
}

}  // namespace mptools
