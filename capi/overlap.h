// Refusal of outputs that share memory with another argument of the same call.
//
// Compares places in device memory, as the host describes them: an address, an extent and,
// for a matrix, the distances of rows and of batch items.  Matrices whose rows are equally far
// apart in bytes may lie beside each other, as the columns of a wider one.  Of any other two the
// ranges from first to last byte must not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "mpcore.h"

namespace mp {

/// The bytes of one argument.  NULL and empty regions overlap nothing.
struct Region {
  const void *data = nullptr;
  const char *name = "";  ///< name of the argument
  int64_t run = 0;        ///< bytes of a row, without gaps

  struct Level {
    int64_t count = 1;
    int64_t pitch = 0;  ///< bytes
  };
  Level rows = {}, items = {};

  /// Bytes from the first to past the last.
  int64_t extent() const {
    if (run == 0 || rows.count == 0 || items.count == 0) return 0;
    return (items.count - 1) * items.pitch + (rows.count - 1) * rows.pitch + run;
  }
};

/// Ends the call if two regions, whose ranges overlap, share a byte.
void require_no_shared_byte(const Region &written, const Region &other);

/// Ends the call if `written` shares a byte with `other`.
inline void require_apart(const Region &written, const Region &other) {
  if (written.data == nullptr || other.data == nullptr) return;
  const auto begin = reinterpret_cast<uintptr_t>(written.data);
  const auto other_begin = reinterpret_cast<uintptr_t>(other.data);
  if (begin < other_begin + static_cast<uintptr_t>(other.extent()) &&
      other_begin < begin + static_cast<uintptr_t>(written.extent()))
    require_no_shared_byte(written, other);
}

inline void require_apart(const Region &written, std::initializer_list<Region> others) {
  for (const Region &other : others) require_apart(written, other);
}

/// The same for a kernel that reads each element before it writes the one in its place: both may
/// begin at the same address, if the caller has checked that layouts are equal.
inline void require_apart_or_same(const Region &written, const Region &other) {
  if (written.data != other.data) require_apart(written, other);
}

/// `count` elements without gaps.
inline Region dense_region(const void *data, const char *name, int64_t count, mp_dtype_t dtype) {
  return {data, name, count * static_cast<int64_t>(mp_dtype_size(dtype))};
}
template <class T>
Region dense_region(const T *data, const char *name, int64_t count = 1) {
  return {data, name, count * int64_t{sizeof(T)}};
}

/// `rows` rows of `cols` elements, `ld` elements apart.
inline Region matrix_region(const void *data, const char *name, int64_t rows, int64_t cols,
                            int64_t ld, mp_dtype_t dtype) {
  const auto elem = static_cast<int64_t>(mp_dtype_size(dtype));
  return {data, name, cols * elem, {rows, ld * elem}};
}

}  // namespace mp
