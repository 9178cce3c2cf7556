// Checks of the tensors of a call: their addresses, and that outputs do not share memory with other
// arguments.
//
// A region of device memory is an address, an extent and, for a matrix, the pitches of rows and
// batch items.  Matrices with equal row pitch may be adjacent columns of a wider matrix.  For all
// other pairs, the ranges from first to last byte must not overlap.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>

#include "capi/check.h"

namespace mp {

/// Memory of an argument.  NULL and empty regions do not overlap any region.
struct Region {
  const void *data = nullptr;
  const char *name = "";  ///< argument name
  int64_t run = 0;        ///< bytes of a row, contiguous

  struct Level {
    int64_t count = 1;
    int64_t pitch = 0;  ///< bytes
  };
  Level rows = {}, items = {};
  size_t alignment = 1;  ///< required of `data`

  /// Bytes from the first to the last, inclusive.
  int64_t extent() const {
    if (run == 0 || rows.count == 0 || items.count == 0) return 0;
    return (items.count - 1) * items.pitch + (rows.count - 1) * rows.pitch + run;
  }
};

/// Fails if two regions with overlapping ranges share a byte.
void require_no_shared_byte(const Region &written, const Region &other);

/// Fails if `written` shares a byte with `other`.
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

/// Makes the same check, but both may begin at the same address: for kernels that read each element
/// before they write it.  The caller must check that the layouts are equal.
inline void require_apart_or_same(const Region &written, const Region &other) {
  if (written.data != other.data) require_apart(written, other);
}

/// Returns the region of `count` contiguous elements.
inline Region dense_region(const void *data, const char *name, int64_t count, mp_dtype_t dtype) {
  const size_t elem = mp_dtype_size(dtype);
  return {data, name, count * static_cast<int64_t>(elem), {}, {}, elem};
}
template <class T>
Region dense_region(const T *data, const char *name, int64_t count = 1) {
  return {data, name, count * int64_t{sizeof(T)}, {}, {}, alignof(T)};
}

/// Names of the statistics of gradients in messages.
struct StatsNames {
  const char *found_inf, *amax;
};
constexpr StatsNames kStatsArgument{"stats->found_inf", "stats->amax"};
constexpr StatsNames kStatsOfTensors{"tensors->stats.found_inf", "tensors->stats.amax"};

/// Checks the outputs of the statistics of gradients; require_tensors compares them with tensors.
inline void require_stats(const mp_grad_stats_t &stats, const StatsNames &names = kStatsOfTensors) {
  require_aligned(stats.found_inf, names.found_inf);
  require_aligned(stats.amax, names.amax);
  MP_REQUIRE(stats.found_inf == nullptr || stats.found_inf != stats.amax, MP_ERROR_INVALID_ARGUMENT,
             names.found_inf, " = ", stats.found_inf, " overlaps ", names.amax, " = ", stats.amax);
}

/// Returns a copy of optional statistics of gradients.
inline mp_grad_stats_t read_stats(const mp_grad_stats_t *user) {
  const mp_grad_stats_t stats = user != nullptr ? *user : mp_grad_stats_t{};
  require_stats(stats, kStatsArgument);
  return stats;
}

inline std::array<Region, 2> stats_regions(const mp_grad_stats_t &stats, const StatsNames &names) {
  return {dense_region(stats.found_inf, names.found_inf), dense_region(stats.amax, names.amax)};
}

/// Returns the region of a workspace, all of which a call may overwrite.
inline Region workspace_region(const void *workspace, size_t bytes) {
  return {workspace, "workspace", static_cast<int64_t>(std::min<size_t>(bytes, INT64_MAX))};
}

/// Returns the region of runs of `run` elements.
/// @param rows,items  their pitches are in elements
inline Region strided_region(const void *data, const char *name, int64_t run,
                             const Region::Level &rows, const Region::Level &items,
                             mp_dtype_t dtype) {
  const auto elem = static_cast<int64_t>(mp_dtype_size(dtype));
  return {data,
          name,
          run * elem,
          {rows.count, rows.pitch * elem},
          {items.count, items.pitch * elem},
          mp_dtype_size(dtype)};
}

/// Returns the region of `rows` rows of `cols` elements, `ld` elements apart.
inline Region matrix_region(const void *data, const char *name, int64_t rows, int64_t cols,
                            int64_t ld, mp_dtype_t dtype) {
  return strided_region(data, name, cols, {rows, ld}, {}, dtype);
}

// ---------------------------------------------------------------------------- all tensors

/// Access of a call to a tensor, which is optional or required.
enum TensorAccess { kMayRead, kReads, kMayWrite, kWrites };

/// A tensor of a call.
struct TensorRow {
  Region region;  ///< not checked if empty
  TensorAccess access;
  /// Names of tensors that are only read, and at whose address a written one may begin.  The caller
  /// must check that the layouts are equal.
  const char *in_place[2] = {};
};

/// Fails if a required tensor is NULL, if one is misaligned, or if one that the call writes, or a
/// statistic, overlaps another.
void require_tensors(std::initializer_list<TensorRow>, const mp_grad_stats_t &stats = {},
                     const StatsNames &names = kStatsOfTensors);

}  // namespace mp
