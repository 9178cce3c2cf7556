#include "operands.h"

namespace mptest {

void *Operands::add(std::deque<mptools::Buffer> &buffers, int64_t bytes) {
  buffers.emplace_back(context_, bytes);
  return buffers.back().data();
}

void *Operands::input(mp_dtype_t dtype, int64_t count) {
  const int64_t salt = ++num_inputs_;
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = static_cast<float>((i * 7 + i / 17 + salt * 5) % 17 - 8) / 8;
  const mptools::Buffer wide = mptools::make_buffer(context_, count, MP_FP32);
  mptools::check(mp_memcpy(context_, wide.data(), values.data(), values.size() * sizeof(float),
                           mptools::kStream));
  void *const data = add(inputs_, count * static_cast<int64_t>(mp_dtype_size(dtype)));
  mptools::check(mp_cast(context_, wide.data(), MP_FP32, data, dtype, count, mptools::kStream));
  mptools::check(mp_stream_sync(context_, mptools::kStream));  // `values` and `wide` are freed
  return data;
}

int32_t *Operands::indices(int64_t count, int32_t below) {
  const int64_t salt = ++num_inputs_;
  std::vector<int32_t> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = static_cast<int32_t>((i * 5 + salt) % below);
  void *const data = add(inputs_, count * static_cast<int64_t>(sizeof(int32_t)));
  mptools::check(
      mp_memcpy(context_, data, values.data(), values.size() * sizeof(int32_t), mptools::kStream));
  mptools::check(mp_stream_sync(context_, mptools::kStream));
  return static_cast<int32_t *>(data);
}

void *Operands::output(mp_dtype_t dtype, int64_t count) {
  return add(outputs_, count * static_cast<int64_t>(mp_dtype_size(dtype)));
}

int64_t *Operands::counter() {
  return static_cast<int64_t *>(add(outputs_, sizeof(int64_t)));
}

void *Operands::scratch(size_t bytes) {
  return add(inputs_, static_cast<int64_t>(bytes));
}

Bytes Operands::bytes() const {
  Bytes all = told_.bytes();
  for (const mptools::Buffer &buffer : outputs_) {
    const Bytes one = mptools::download_sync(context_, buffer.as<const uint8_t>(), buffer.bytes());
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

}  // namespace mptest
