#include "testing.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>

namespace mptest {

// ---------------------------------------------------------------------------- the target

namespace {

/// A multiple of the 256-byte alignment of mp_malloc, and longer than a row of the widest tile.
constexpr size_t kGuardBytes = 1024;

mp_context_t the_context = nullptr;

int32_t wanted_device() {
  const char *const name = std::getenv("MP_TEST_DEVICE");
  if (name == nullptr || std::strcmp(name, "host") == 0) return MP_DEVICE_HOST;
  if (std::strcmp(name, "cuda") == 0) return MP_DEVICE_CURRENT;
  throw std::invalid_argument(format("MP_TEST_DEVICE = %s is neither host nor cuda", name));
}

std::string position(const std::source_location &where) {
  return format("%s:%u", where.file_name(), where.line());
}

}  // namespace

mp_context_t context() {
  if (the_context != nullptr) return the_context;
  mp_context_config_t config = mp_context_config_default();
  config.device = wanted_device();
  if (mp_context_create(&the_context, &config) != MP_SUCCESS) {
    throw std::runtime_error(mp_last_error());
  }
  return the_context;
}

void destroy_context() {
  mp_context_destroy(the_context);
  the_context = nullptr;
}

mp_device_info_t device_info() {
  auto info = initialized<mp_device_info_t>();
  require_ok(mp_context_get_info(context(), &info));
  return info;
}

bool on_host() {
  return wanted_device() == MP_DEVICE_HOST;
}

UniqueContext make_context(int32_t sm_limit) {
  return mptools::make_context(on_host() ? MP_DEVICE_HOST : MP_DEVICE_CURRENT, sm_limit);
}

void quiet_log() {
  const mp_log_callback_t drop = [](mp_log_level_t, const char *, void *) {};
  mp_set_log_callback(std::getenv("MP_LOG") == nullptr ? drop : nullptr, nullptr, MP_LOG_ERROR);
}

// ---------------------------------------------------------------------------- outcomes

void expect_status(mp_status_t got, mp_status_t wanted, std::source_location where) {
  INFO(position(where) << ": mp_last_error: " << (got == MP_SUCCESS ? "" : mp_last_error()));
  CHECK(std::string(mp_status_string(got)) == mp_status_string(wanted));
}

void require_ok(mp_status_t status, std::source_location where) {
  if (status == MP_SUCCESS) return;
  FAIL(position(where) << ": " << mp_status_string(status) << ": " << mp_last_error());
}

void expect_none(const std::string &damage, const std::string &repro) {
  if (!damage.empty()) std::printf("repro: %s\n", repro.c_str());
  CHECK(damage == "");
}

std::string format(const char *pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

// ---------------------------------------------------------------------------- device memory

DeviceMemory::DeviceMemory(size_t bytes) {
  void *data = nullptr;
  const mp_status_t status = mp_malloc(context(), &data, std::max<size_t>(bytes, 1));
  if (status == MP_ERROR_OUT_OF_MEMORY) return;
  require_ok(status);
  data_ = static_cast<uint8_t *>(data);
}

DeviceMemory::~DeviceMemory() {
  mp_free(context(), data_);
}

void copy_bytes(void *dst, const void *src, size_t bytes) {
  if (bytes == 0) return;
  require_ok(mp_memcpy(context(), dst, src, bytes, kStream));
  require_ok(mp_stream_sync(context(), kStream));
}

GuardedBytes::GuardedBytes(size_t bytes, size_t offset, uint8_t pattern)
    : bytes_(bytes),
      front_bytes_(kGuardBytes + offset),
      pattern_(pattern),
      memory_(front_bytes_ + bytes + kGuardBytes) {
  REQUIRE(memory_.allocated());
  const std::vector<uint8_t> fill(front_bytes_ + bytes_ + kGuardBytes, pattern_);
  copy_bytes(memory_.data(), fill.data(), fill.size());
}

GuardedBytes::~GuardedBytes() {
  CHECK(guard_damage() == "");
}

void GuardedBytes::upload(const void *src, size_t bytes, size_t at) {
  REQUIRE(at + bytes <= bytes_);
  copy_bytes(data() + at, src, bytes);
}

std::vector<uint8_t> GuardedBytes::download() const {
  std::vector<uint8_t> bytes(bytes_);
  copy_bytes(bytes.data(), data(), bytes_);
  return bytes;
}

std::string GuardedBytes::guard_damage() const {
  std::vector<uint8_t> guards(front_bytes_ + kGuardBytes);
  copy_bytes(guards.data(), memory_.data(), front_bytes_);
  copy_bytes(guards.data() + front_bytes_, data() + bytes_, kGuardBytes);
  const auto is_damaged = [this](uint8_t byte) { return byte != pattern_; };
  const auto first = std::find_if(guards.begin(), guards.end(), is_damaged);
  if (first == guards.end()) return "";
  const int64_t at = first - guards.begin();
  const int64_t front = static_cast<int64_t>(front_bytes_);
  return at < front ? format("guard overwritten %lld bytes before the start",
                             static_cast<long long>(front - at))
                    : format("guard overwritten %lld bytes after the end",
                             static_cast<long long>(at - front));
}

// ---------------------------------------------------------------------------- run-time types

namespace {

void encode_row(mp_dtype_t dtype, const double *values, int64_t count, uint8_t *out) {
  const size_t size = mp_dtype_size(dtype);
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = encode(dtype, values[i]);  // little-endian: the low bytes come first
    std::memcpy(out + static_cast<size_t>(i) * size, &bits, size);
  }
}

/// Values of all 16-bit patterns.
const std::vector<double> &values_of_16_bits(mp_dtype_t dtype) {
  static const auto known = [] {
    std::map<mp_dtype_t, std::vector<double>> all;
    for (const mp_dtype_t type : kHalfTypes)
      for (uint32_t bits = 0; bits < 1 << 16; ++bits) all[type].push_back(decode(type, bits));
    return all;
  }();
  return known.at(dtype);
}

void decode_row(mp_dtype_t dtype, const uint8_t *in, int64_t count, double *values) {
  if (dtype == MP_FP32) {
    for (int64_t i = 0; i < count; ++i) {
      float value = 0.0f;
      std::memcpy(&value, in + static_cast<size_t>(i) * sizeof value, sizeof value);
      values[i] = value;
    }
    return;
  }
  const std::vector<double> &known = values_of_16_bits(dtype);
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, in + static_cast<size_t>(i) * sizeof bits, sizeof bits);
    values[i] = known[bits];
  }
}

}  // namespace

DeviceArray::DeviceArray(mp_dtype_t dtype, int64_t count, int64_t offset, uint8_t pattern)
    : dtype_(dtype),
      count_(count),
      bytes_(static_cast<size_t>(count) * mp_dtype_size(dtype),
             static_cast<size_t>(offset) * mp_dtype_size(dtype), pattern) {}

DeviceArray::DeviceArray(mp_dtype_t dtype, const std::vector<double> &values, int64_t offset)
    : DeviceArray(dtype, static_cast<int64_t>(values.size()), offset) {
  upload(values);
}

void DeviceArray::upload(const std::vector<double> &values) {
  std::vector<uint8_t> bits(values.size() * mp_dtype_size(dtype_));
  encode_row(dtype_, values.data(), static_cast<int64_t>(values.size()), bits.data());
  bytes_.upload(bits.data(), bits.size());
}

std::vector<double> DeviceArray::download() const {
  std::vector<double> values(static_cast<size_t>(count_));
  decode_row(dtype_, bytes_.download().data(), count_, values.data());
  return values;
}

std::vector<double> random_integers(int64_t count, int64_t range, Random &random) {
  std::vector<double> values(static_cast<size_t>(count));
  for (double &value : values) value = static_cast<double>(random.integer(-range, range));
  return values;
}

std::vector<double> random_integers(int64_t count, int64_t range, uint64_t seed) {
  Random random(seed);
  return random_integers(count, range, random);
}

std::vector<double> random_reals(mp_dtype_t dtype, int64_t count, double low, double high,
                                 Random &random) {
  std::vector<double> values(static_cast<size_t>(count));
  for (double &value : values) value = round_to(dtype, random.real(low, high));
  return values;
}

std::vector<double> random_reals(mp_dtype_t dtype, int64_t count, double low, double high,
                                 uint64_t seed) {
  Random random(seed);
  return random_reals(dtype, count, low, high, random);
}

// ---------------------------------------------------------------------------- matrices

Matrices transposed(const Matrices &matrices) {
  Matrices result(matrices.count, matrices.cols, matrices.rows);
  for (int64_t item = 0; item < matrices.count; ++item) {
    for (int64_t i = 0; i < matrices.rows; ++i) {
      for (int64_t j = 0; j < matrices.cols; ++j) {
        result.at(item, j, i) = matrices.at(item, i, j);
      }
    }
  }
  return result;
}

namespace {

/// Ends at the last element of the last row, so that the guard zone follows immediately.
size_t spanned_bytes(mp_dtype_t dtype, int64_t count, int64_t rows, int64_t cols, int64_t ld,
                     int64_t stride, int64_t stray_item) {
  if (count == 0 || rows == 0 || cols == 0) return 0;
  const int64_t shift = stray_item == count - 1 ? 1 : 0;
  const int64_t elems = (count - 1) * stride + (rows - 1) * ld + cols + shift;
  return static_cast<size_t>(elems) * mp_dtype_size(dtype);
}

}  // namespace

DeviceMatrices::DeviceMatrices(mp_dtype_t dtype, int64_t count, int64_t rows, int64_t cols,
                               int64_t ld, int64_t stride, int64_t offset, uint8_t padding,
                               int64_t stray_item)
    : dtype_(dtype),
      count_(count),
      rows_(rows),
      cols_(cols),
      ld_(ld),
      stride_(stride),
      stray_item_(stray_item),
      bytes_(spanned_bytes(dtype, count, rows, cols, ld, stride, stray_item),
             static_cast<size_t>(offset) * mp_dtype_size(dtype), padding) {}

void *DeviceMatrices::item(int64_t index) const {
  return bytes_.data() + static_cast<size_t>(first_element(index)) * mp_dtype_size(dtype_);
}

template <typename Visit>
void DeviceMatrices::each_row(Visit visit) const {
  if (bytes_.bytes() == 0) return;
  for (int64_t item = 0; item < count_; ++item) {
    for (int64_t i = 0; i < rows_; ++i) {
      visit(static_cast<size_t>(first_element(item) + i * ld_) * mp_dtype_size(dtype_), item, i);
    }
  }
}

void DeviceMatrices::upload(const Matrices &values) {
  REQUIRE((values.count == count_ && values.rows == rows_ && values.cols == cols_));
  std::vector<uint8_t> image(bytes_.bytes(), bytes_.pattern());
  each_row([&](size_t at, int64_t item, int64_t i) {
    const double *const row = values.values.data() + (item * rows_ + i) * cols_;
    encode_row(dtype_, row, cols_, image.data() + at);
  });
  bytes_.upload(image.data(), image.size());
}

Matrices DeviceMatrices::download() const {
  Matrices values(count_, rows_, cols_);
  const std::vector<uint8_t> image = bytes_.download();
  each_row([&](size_t at, int64_t item, int64_t i) {
    double *const row = values.values.data() + (item * rows_ + i) * cols_;
    decode_row(dtype_, image.data() + at, cols_, row);
  });
  return values;
}

std::string DeviceMatrices::damage() const {
  const std::string guard = bytes_.guard_damage();
  if (!guard.empty()) return guard;
  std::vector<uint8_t> image = bytes_.download();
  const size_t row_bytes = static_cast<size_t>(cols_) * mp_dtype_size(dtype_);
  each_row([&](size_t at, int64_t, int64_t) {
    std::memset(image.data() + at, bytes_.pattern(), row_bytes);
  });
  for (size_t at = 0; at < image.size(); ++at) {
    if (image[at] == bytes_.pattern()) continue;
    return format("padding overwritten at element %zu", at / mp_dtype_size(dtype_));
  }
  return "";
}

}  // namespace mptest
