// Common test utilities: the context under test, guarded device memory, statuses, skips.
//
// MP_TEST_DEVICE selects the target: host (default) or cuda.
//
// Device memory has guard zones.  They and the padding of matrices contain a byte pattern that must
// not change.  kPoison is a NaN in every element type: reading it makes results NaN.  kCanary is a
// finite number in every type, so that a NaN written over it is found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <source_location>
#include <string>
#include <vector>

#include "catch.h"
#include "initialized.h"
#include "input_values.h"
#include "mpcore.h"
#include "numeric.h"
#include "support/device.h"
#include "tally.h"

// Catch2 prints only the first elements of a vector: complete tensors would take minutes.
template <class T>
struct Catch::is_range<std::vector<T>> : std::false_type {};
template <class T>
struct Catch::StringMaker<std::vector<T>> {
  static std::string convert(const std::vector<T> &values) {
    constexpr size_t kMax = 16;
    const std::string first = rangeToString(values | std::views::take(kMax));
    if (values.size() <= kMax) return first;
    return first + " and " + std::to_string(values.size() - kMax) + " more";
  }
};

namespace mptest {

// ---------------------------------------------------------------------------- the target

/// Created at first use, destroyed by main.
mp_context_t context();
void destroy_context();
mp_device_info_t device_info();
bool on_host();

using UniqueContext = mptools::Context;
/// Returns another context of the device under test; sm_limit = 0 allows all of its SMs.
UniqueContext make_context(int32_t sm_limit = 0);

constexpr mp_stream_t kStream = nullptr;

/// Disables the log, since tests provoke errors on purpose and check their status.  MP_LOG enables
/// it again.
void quiet_log();

// ---------------------------------------------------------------------------- outcomes

/// Checks that the status is `wanted`; require_ok ends the test if it is not MP_SUCCESS.
void expect_status(mp_status_t got, mp_status_t wanted,
                   std::source_location where = std::source_location::current());
void require_ok(mp_status_t status, std::source_location where = std::source_location::current());

/// Fails if `damage` is not empty, which describes an error; `repro` reproduces it.
void expect_none(const std::string &damage, const std::string &repro);

/// Formats like printf.
std::string format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));

// ---------------------------------------------------------------------------- device memory

/// mp_malloc and mp_free; contents undefined.
class DeviceMemory {
 public:
  explicit DeviceMemory(size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  /// False if there was not enough memory; all other failures end the test.
  bool allocated() const { return data_ != nullptr; }
  uint8_t *data() const { return data_; }

 private:
  uint8_t *data_ = nullptr;
};

void copy_bytes(void *dst, const void *src, size_t bytes);

constexpr uint8_t kPoison = 0xff;
constexpr uint8_t kCanary = 0xa7;

/// Bytes between two guard zones, initially filled with `pattern`.
class GuardedBytes {
 public:
  /// `offset`: misalignment of data() relative to 256 bytes.
  GuardedBytes(size_t bytes, size_t offset, uint8_t pattern);
  ~GuardedBytes();

  uint8_t *data() const { return memory_.data() + front_bytes_; }
  size_t bytes() const { return bytes_; }
  uint8_t pattern() const { return pattern_; }
  void upload(const void *src, size_t bytes, size_t at = 0);
  std::vector<uint8_t> download() const;
  /// Returns which guard byte was overwritten, or "".  The destructor checks it too.
  std::string guard_damage() const;

 private:
  size_t bytes_;
  size_t front_bytes_;
  uint8_t pattern_;
  DeviceMemory memory_;
};

/// Poisoned workspace of the size that a function returns for these arguments.
class DeviceWorkspace : public GuardedBytes {
 public:
  template <typename Query, typename... Arguments>
  explicit DeviceWorkspace(const Query &query, const Arguments &...arguments)
      : GuardedBytes(size_of(query, arguments...), 0, kPoison) {}

 private:
  template <typename Query, typename... Arguments>
  static size_t size_of(const Query &query, const Arguments &...arguments) {
    size_t bytes = SIZE_MAX;
    require_ok(query(arguments..., &bytes));
    return bytes;
  }
};

/// `count` elements of T between guard zones, poisoned until written.
template <typename T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(int64_t count, int64_t offset = 0, uint8_t pattern = kPoison)
      : count_(count),
        bytes_(static_cast<size_t>(count) * sizeof(T), static_cast<size_t>(offset) * sizeof(T),
               pattern) {}
  explicit DeviceBuffer(const std::vector<T> &values, int64_t offset = 0)
      : DeviceBuffer(static_cast<int64_t>(values.size()), offset) {
    upload(values);
  }

  T *data() const { return reinterpret_cast<T *>(bytes_.data()); }
  int64_t size() const { return count_; }
  void upload(const std::vector<T> &values) {
    bytes_.upload(values.data(), values.size() * sizeof(T));
  }
  std::vector<T> download() const {
    std::vector<T> values(static_cast<size_t>(count_));
    copy_bytes(values.data(), bytes_.data(), bytes_.bytes());
    return values;
  }
  std::string guard_damage() const { return bytes_.guard_damage(); }

 private:
  int64_t count_;
  GuardedBytes bytes_;
};

/// A number in device memory.
template <typename T>
class DeviceValue {
 public:
  explicit DeviceValue(T value) : buffer_(std::vector<T>{value}) {}
  T *data() const { return buffer_.data(); }
  T value() const { return buffer_.download()[0]; }
  void set(T value) { buffer_.upload({value}); }
  std::string guard_damage() const { return buffer_.guard_damage(); }

 private:
  DeviceBuffer<T> buffer_;
};
using DeviceFloat = DeviceValue<float>;

/// Like DeviceBuffer, with the element type chosen at run time; the host side is fp64.
class DeviceArray {
 public:
  DeviceArray(mp_dtype_t dtype, int64_t count, int64_t offset = 0, uint8_t pattern = kPoison);
  DeviceArray(mp_dtype_t dtype, const std::vector<double> &values, int64_t offset = 0);

  void *data() const { return bytes_.data(); }
  mp_dtype_t dtype() const { return dtype_; }
  int64_t size() const { return count_; }
  void upload(const std::vector<double> &values);  ///< rounds to the type
  std::vector<double> download() const;
  std::vector<uint8_t> download_bits() const { return bytes_.download(); }
  std::string guard_damage() const { return bytes_.guard_damage(); }

 private:
  mp_dtype_t dtype_;
  int64_t count_;
  GuardedBytes bytes_;
};

/// Integers of type MP_INT32 or MP_INT64.
class DeviceIndices {
 public:
  DeviceIndices(mp_dtype_t dtype, const std::vector<int64_t> &values)
      : is_wide_(dtype == MP_INT64), wide_(values), narrow_(narrowed(values)) {}
  const void *data() const {
    return is_wide_ ? static_cast<const void *>(wide_.data()) : narrow_.data();
  }

 private:
  static std::vector<int32_t> narrowed(const std::vector<int64_t> &values) {
    return {values.begin(), values.end()};
  }
  bool is_wide_;
  DeviceBuffer<int64_t> wide_;
  DeviceBuffer<int32_t> narrow_;
};

/// Returns integers in [-range, range].
std::vector<double> random_integers(int64_t count, int64_t range, Random &random);
std::vector<double> random_integers(int64_t count, int64_t range, uint64_t seed);
/// Returns reals in [low, high), rounded to the type.
std::vector<double> random_reals(mp_dtype_t dtype, int64_t count, double low, double high,
                                 Random &random);
std::vector<double> random_reals(mp_dtype_t dtype, int64_t count, double low, double high,
                                 uint64_t seed);

// ---------------------------------------------------------------------------- matrices

/// `count` dense row-major matrices in fp64.
struct Matrices {
  int64_t count = 0, rows = 0, cols = 0;
  std::vector<double> values;

  Matrices() = default;
  Matrices(int64_t count, int64_t rows, int64_t cols, double value = 0.0)
      : count(count),
        rows(rows),
        cols(cols),
        values(static_cast<size_t>(count * rows * cols), value) {}
  Matrices(int64_t count, int64_t rows, int64_t cols, std::vector<double> values)
      : count(count), rows(rows), cols(cols), values(std::move(values)) {}

  double &at(int64_t item, int64_t i, int64_t j) {
    return values[static_cast<size_t>((item * rows + i) * cols + j)];
  }
  double at(int64_t item, int64_t i, int64_t j) const {
    return values[static_cast<size_t>((item * rows + i) * cols + j)];
  }
};

Matrices transposed(const Matrices &matrices);

/// Matrices on the device: `ld` elements between rows, `stride` between matrices.  A stray matrix
/// is one element further.
class DeviceMatrices {
 public:
  DeviceMatrices(mp_dtype_t dtype, int64_t count, int64_t rows, int64_t cols, int64_t ld,
                 int64_t stride, int64_t offset, uint8_t padding, int64_t stray_item = -1);

  void *data() const { return bytes_.data(); }
  void *item(int64_t index) const;  ///< address of matrix `index`
  void upload(const Matrices &values);
  Matrices download() const;
  std::vector<uint8_t> download_bits() const { return bytes_.download(); }
  /// Returns where a guard zone or the padding was overwritten, or "".
  std::string damage() const;

 private:
  /// Calls visit(byte offset, item, row) for the start of each row.
  template <typename Visit>
  void each_row(Visit visit) const;
  int64_t first_element(int64_t item) const { return item * stride_ + (item == stray_item_); }

  mp_dtype_t dtype_;
  int64_t count_, rows_, cols_, ld_, stride_, stray_item_;
  GuardedBytes bytes_;
};

}  // namespace mptest
