#include "caller.h"

#include <cstring>
#include <stdexcept>

#include "tests/support/numeric.h"

namespace mptest {

Caller::~Caller() {
  for (const Block &block : blocks_) mp_free(context_, block.data);
}

// ------------------------------------------------------------------------- memory

void *Caller::allocate(size_t bytes, size_t alignment, bool is_output) {
  void *const untouched = this;
  void *data = untouched;
  call_again(
      [&] {
        if (data != untouched) complain("wrote its new object though it failed");
      },
      "mp_malloc", mp_malloc, context_, &data, bytes);
  blocks_.push_back({data, bytes, alignment, is_output});
  CALL(*this, mp_memset, context_, data, 0, bytes, nullptr);
  return data;
}

void *Caller::upload_bytes(const void *host, size_t bytes, size_t alignment) {
  void *const data = allocate(bytes, alignment, false);
  CALL(*this, mp_memcpy, context_, data, host, bytes, nullptr);
  CALL(*this, mp_stream_sync, context_, nullptr);
  return data;
}

void *Caller::input(mp_dtype_t dtype, int64_t count) {
  const int64_t salt = ++num_inputs_;
  const size_t size = mp_dtype_size(dtype);
  Bytes image(static_cast<size_t>(count) * size);
  for (int64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>((i * 7 + i / 17 + salt * 5) % 17 - 8) / 8;
    const uint32_t bits = encode(dtype, value);  // little-endian: the low bytes come first
    std::memcpy(image.data() + static_cast<size_t>(i) * size, &bits, size);
  }
  return upload_bytes(image.data(), image.size(), size);
}

int32_t *Caller::indices(int64_t count, int32_t below) {
  const int64_t salt = ++num_inputs_;
  std::vector<int32_t> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = static_cast<int32_t>((i * 5 + salt) % below);
  return upload(values.data(), values.size());
}

void *Caller::output(mp_dtype_t dtype, int64_t count) {
  const size_t size = mp_dtype_size(dtype);
  return allocate(static_cast<size_t>(count) * size, size, true);
}

void *Caller::scratch(size_t bytes) {
  return bytes > 0 ? allocate(bytes, kWorkspaceAlignment, false) : nullptr;
}

// ------------------------------------------------------------------------- calls

void Caller::begin(const char *function) {
  function_ = function;
}

bool Caller::end(mp_status_t status) {
  if (status == MP_SUCCESS) return true;
  throw std::runtime_error(std::string(function_) + " returned " + mp_status_string(status) + ": " +
                           mp_last_error());
}

void Caller::complain(const std::string &what) {
  throw std::runtime_error(std::string(function_) + " " + what);
}

mp_comm_t Caller::comm() {
  mp_comm_t table = mp_comm_default();
  table.world_size = 2;
  table.all_reduce = [](const void *, void *, size_t, mp_dtype_t, mp_reduce_op_t, mp_stream_t,
                        void *user) { return static_cast<Caller *>(user)->reduce(); };
  table.group_begin = [](void *user) { return static_cast<Caller *>(user)->begin_group(); };
  table.group_end = [](void *user) { return static_cast<Caller *>(user)->end_group(); };
  table.user = this;
  return table;
}

// ------------------------------------------------------------------------- results

void Caller::record(const void *host, size_t bytes) {
  const auto *const first = static_cast<const uint8_t *>(host);
  results_.insert(results_.end(), first, first + bytes);
}

void Caller::record_device(const void *device, size_t bytes) {
  Bytes image(bytes);
  CALL(*this, mp_memcpy, context_, image.data(), device, bytes, nullptr);
  CALL(*this, mp_stream_sync, context_, nullptr);
  record(image.data(), bytes);
}

void Caller::release() {
  for (const Block &block : blocks_)
    if (block.is_output) record_device(block.data, block.bytes);
  while (!blocks_.empty()) {
    DESTROY(*this, mp_free, context_, blocks_.back().data);
    blocks_.pop_back();
  }
}

}  // namespace mptest
