// mpcore/core.h: contexts and device memory.
#include "capi/context.h"

#include <atomic>
#include <exception>
#include <string>

#include "capi/defaults.h"
#include "capi/nvtx_payload.h"
#include "capi/overlap.h"

using namespace mp;

namespace {

constexpr size_t kMemoryAlignment = 256;  // guaranteed by mp_malloc, required of allocators

// ---------------------------------------------------------------------------- device selection

struct DeviceId {
  const Backend *backend;
  int ordinal;
};

/// Returns the name of an MP_DEVICE_* constant, or the number of a device.
std::string text_of(int32_t device) {
  constexpr Enumerator kDevices[] = {{MP_DEVICE_CURRENT, "MP_DEVICE_CURRENT"},
                                     {MP_DEVICE_HOST, "MP_DEVICE_HOST"},
                                     {MP_DEVICE_AUTO, "MP_DEVICE_AUTO"}};
  const char *const name = name_of(kDevices, device);
  return name != nullptr ? name : std::to_string(device);
}

DeviceId host_id(int32_t device) {
  const Backend *host = host_backend();
  MP_REQUIRE(host != nullptr, MP_ERROR_UNSUPPORTED, "device = ", text_of(device),
             ", but this build has no host target");
  MP_REQUIRE(host->device_count() > 0, MP_ERROR_ARCH_MISMATCH, "device = ", text_of(device),
             ", but the host target cannot run here: ", host->why_no_device().c_str());
  return {host, 0};
}

DeviceId cuda_id(int32_t device) {
  const Backend *cuda = cuda_backend();
  MP_REQUIRE(cuda != nullptr, MP_ERROR_UNSUPPORTED, "device = ", text_of(device),
             ", but this build has no CUDA target");
  const int count = cuda->device_count();
  MP_REQUIRE(count > 0, MP_ERROR_CUDA, "device = ", text_of(device),
             ", but no CUDA device is usable: ", cuda->why_no_device().c_str());
  MP_REQUIRE(device < count, MP_ERROR_INVALID_ARGUMENT, "device = ", text_of(device),
             " is outside [0, ", count, "): ", count,
             count == 1 ? " CUDA device is available" : " CUDA devices are available");
  const int ordinal = device >= 0 ? device : cuda->current_device();
  MP_REQUIRE(cuda->has_code_for(ordinal), MP_ERROR_ARCH_MISMATCH, "device = ", text_of(device),
             ", but this build has no code for CUDA device ", ordinal, ", ",
             cuda->describe(ordinal).name);
  return {cuda, ordinal};
}

DeviceId any_id() {
  static std::atomic_flag warned;
  try {
    return cuda_id(MP_DEVICE_AUTO);
  } catch (const CallError &error) {
    const DeviceId host = host_id(MP_DEVICE_AUTO);
    if (log_enabled(MP_LOG_WARN) && !warned.test_and_set()) {
      log(MP_LOG_WARN, "mp_context_create: using the host target: ", error.why.c_str());
    }
    return host;
  }
}

DeviceId find_id(int32_t device) {
  switch (device) {
    case MP_DEVICE_AUTO:
      return any_id();
    case MP_DEVICE_HOST:
      return host_id(device);
    default:
      return cuda_id(device);
  }
}

// ---------------------------------------------------------------------------- creation

std::optional<mp_allocator_t> read_allocator(const mp_allocator_t *user) {
  if (user == nullptr) return std::nullopt;
  const mp_allocator_t allocator = read_struct(user, "allocator");
  require_zero(allocator.reserved0, "allocator->reserved0");
  MP_REQUIRE(allocator.alloc != nullptr, MP_ERROR_INVALID_ARGUMENT, "allocator->alloc = NULL");
  MP_REQUIRE(allocator.free != nullptr, MP_ERROR_INVALID_ARGUMENT, "allocator->free = NULL");
  return allocator;
}

ContextPtr make_context(const mp_context_config_t &config) {
  MP_REQUIRE(config.device >= MP_DEVICE_AUTO, MP_ERROR_INVALID_ARGUMENT, "device = ", config.device,
             " must be a device ordinal or one of MP_DEVICE_*");
  require_not_negative(config.sm_limit, "sm_limit");
  require_zero(config.flags, "flags");
  const std::optional<mp_allocator_t> allocator = read_allocator(config.allocator);
  const LazyInit::User user;

  const DeviceId id = find_id(config.device);
  Device device = id.backend->describe(id.ordinal);
  if (device.arch == 90 && !device.has_wgmma) {
    log(MP_LOG_WARN, "mp_context_create: ", device.name,
        " supports wgmma, but this build has no sm_90a code; using slower kernels");
  }
  device.has_sm_limit = config.sm_limit > 0 && config.sm_limit < device.num_sms;
  if (device.has_sm_limit) device.num_sms = config.sm_limit;
  static std::atomic<uint64_t> contexts;
  return ContextPtr(
      new Context{++contexts, *id.backend, device, allocator, {}, BackendUse(*id.backend)});
}

// ---------------------------------------------------------------------------- objects' memory

void *allocate(const Context &context, size_t bytes) {
  if (!context.allocator) return context.backend.allocate(context.device, bytes);
  const mp_allocator_t &allocator = *context.allocator;
  void *const ptr = call_back("allocator->alloc", MP_ERROR_OUT_OF_MEMORY,
                              [&] { return allocator.alloc(bytes, allocator.user); });
  MP_REQUIRE(ptr != nullptr, MP_ERROR_OUT_OF_MEMORY, "allocator->alloc returned NULL for ", bytes,
             " bytes");
  if (is_aligned(ptr, kMemoryAlignment)) return ptr;
  call_back("allocator->free", MP_ERROR_MISALIGNED,
            [&] { allocator.free(ptr, bytes, allocator.user); });
  fail(MP_ERROR_MISALIGNED, "allocator->alloc returned ", ptr, ", which is not aligned to ",
       kMemoryAlignment, " bytes");
}

std::atomic<int64_t> &uses_of(const Backend &backend) {
  static constinit std::atomic<int64_t> uses[MP_TARGET_HOST + 1];
  return uses[backend.kind];
}

}  // namespace

BackendUse::BackendUse(const Backend &backend) : backend_(backend) {
  ++uses_of(backend_);
}

BackendUse::~BackendUse() {
  if (--uses_of(backend_) == 0) backend_.release_idle();
}

void ReleaseMemory::operator()(std::byte *ptr) const noexcept {
  try {
    if (context->allocator) {
      call_back("allocator->free", MP_ERROR_OUT_OF_MEMORY,
                [&] { context->allocator->free(ptr, bytes, context->allocator->user); });
    } else {
      context->backend.release(context->device, ptr);
    }
  } catch (const CallError &error) {
    log(MP_LOG_ERROR, "failed to free device memory: ", error.why.c_str());
  } catch (const std::exception &error) {
    log(MP_LOG_ERROR, "failed to free device memory: ", error.what());
  }
}

MappedBuffer::~MappedBuffer() {
  try {
    context_->backend.release_mapped(context_->device, memory_);
  } catch (const std::exception &error) {
    log(MP_LOG_ERROR, "failed to free mapped host memory: ", error.what());
  }
}

DeviceBuffer mp::allocate_device(const ContextPtr &context, size_t bytes) {
  void *const ptr = allocate(*context, bytes);
  return DeviceBuffer(static_cast<std::byte *>(ptr), ReleaseMemory{context, bytes});
}

void mp::increment(const Context &context, uint64_t *counter, mp_stream_t stream) {
  context.backend.count_step(context.device, counter, stream);
}

void mp::clear_sums(const Context &context, float *sums, int64_t count, mp_stream_t stream) {
  if (sums == nullptr || count == 0) return;
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  context.backend.fill(context.device, sums, 0, bytes, stream);
}

void mp::store_empty_loss(const Context &context, float *loss, bool is_mean, mp_stream_t stream) {
  constexpr int kNaNByte = 0xFF;
  if (loss == nullptr) return;
  context.backend.fill(context.device, loss, is_mean ? kNaNByte : 0, sizeof *loss, stream);
}

DeviceBuffer DeviceImage::upload(const ContextPtr &context) const {
  DeviceBuffer memory = allocate_device(context, bytes_.size());
  context->backend.copy(context->device, memory.get(), bytes_.data(), bytes_.size(), nullptr);
  context->backend.synchronize(context->device, nullptr);
  for (const auto &set_array : set_arrays_) set_array(memory.get());
  return memory;
}

mp_status_t mp_context_create(mp_context_t *context, const mp_context_config_t *config) {
  return call(__func__, [&] {
    require_pointer(context, "context");
    *context = new mp_context{
        make_context(config != nullptr ? read_struct(config, "config") : default_context_config())};
  });
}

void mp_context_destroy(mp_context_t context) {
  call_void(__func__, [&] { delete context; });
}

mp_status_t mp_context_get_info(mp_context_t context, mp_device_info_t *info) {
  return call(__func__, context, [&](const Context &c) {
    mp_device_info_t value;
    MP_INIT_STRUCT(&value);
    value.target = c.backend.kind;
    MP_COPY_FIELDS(value, c.device, arch, num_sms, smem_per_block, l2_bytes);
    std::memcpy(value.name, c.device.name, sizeof value.name);
    write_struct(info, "info", value);
  });
}

mp_status_t mp_malloc(mp_context_t context, void **ptr, size_t bytes) {
  return call(__func__, context, nvtx_payload("bytes", bytes), [&](const Context &c) {
    require_pointer(ptr, "ptr");
    *ptr = bytes > 0 ? c.backend.allocate(c.device, bytes) : nullptr;
  });
}

void mp_free(mp_context_t context, void *ptr) {
  call_void(__func__, [&] {
    if (ptr == nullptr) return;
    const Context &c = *require_context(context);
    c.backend.release(c.device, ptr);
  });
}

mp_status_t mp_memcpy(mp_context_t context, void *dst, const void *src, size_t bytes,
                      mp_stream_t stream) {
  return call(__func__, context, nvtx_payload("bytes", bytes), [&](const Context &c) {
    if (bytes == 0) return;
    require_device(dst, "dst", 1);
    require_device(src, "src", 1);
    const auto count = static_cast<int64_t>(bytes);
    require_apart_or_same({dst, "dst", count}, {src, "src", count});
    c.backend.copy(c.device, dst, src, bytes, stream);
  });
}

mp_status_t mp_memset(mp_context_t context, void *dst, int byte, size_t bytes, mp_stream_t stream) {
  return call(__func__, context, nvtx_payload("bytes", bytes), [&](const Context &c) {
    if (bytes == 0) return;
    require_device(dst, "dst", 1);
    c.backend.fill(c.device, dst, byte, bytes, stream);
  });
}

mp_status_t mp_stream_sync(mp_context_t context, mp_stream_t stream) {
  return call(__func__, context,
              [&](const Context &c) { c.backend.synchronize(c.device, stream); });
}

mp_status_t mp_cast(mp_context_t context, const void *src, mp_dtype_t dtype_src, void *dst,
                    mp_dtype_t dtype_dst, int64_t count, mp_stream_t stream) {
  return call(__func__, context, nvtx_payload("count", count), [&](const Context &c) {
    require_dtype(dtype_src, "dtype_src");
    require_dtype(dtype_dst, "dtype_dst");
    require_count(count, "count", dtype_src);
    require_count(count, "count", dtype_dst);
    if (count == 0) return;
    const size_t src_size = mp_dtype_size(dtype_src);
    const size_t dst_size = mp_dtype_size(dtype_dst);
    require_tensors({{dense_region(src, "src", count, dtype_src), kReads},
                     {dense_region(dst, "dst", count, dtype_dst), kWrites, {"src"}}});
    MP_REQUIRE(src != dst || src_size == dst_size, MP_ERROR_INVALID_ARGUMENT,
               "dst = src: in-place conversion requires types of equal size, not ", src_size,
               " and ", dst_size, " bytes");
    c.backend.cast(c.device, src, dtype_src, dst, dtype_dst, count, stream);
  });
}
