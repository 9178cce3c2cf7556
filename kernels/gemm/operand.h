// Where a batch item of an operand begins, and which part of the work a block has.
#pragma once

#include "kernels/simt/simt.h"

namespace mp::MP_TARGET {

MP_HD int64_t dtype_bytes(mp_dtype_t dtype) {
  return dtype == MP_FP32 ? 4 : 2;
}

MP_DEVICE const void *item_address(const Operand &operand, mp_dtype_t dtype, int64_t item) {
  if (operand.items != nullptr) return operand.items[item];
  if (operand.base == nullptr) return nullptr;
  return static_cast<const char *>(operand.base) + item * operand.stride * dtype_bytes(dtype);
}

/// One block's share: a tile of D, of one batch item, over one slice of k.
struct WorkItem {
  int64_t tile_m, tile_n;
  int64_t batch_item;
  int slice;
};

/// Numbers all work items of a problem.  Blocks with neighbouring numbers run at the same time;
/// walking down kGroup tile rows before going right lets them share columns of B and rows of A
/// in L2.  Slices of one tile are far apart: they share nothing.
struct TileSchedule {
  static constexpr int64_t kGroup = 8;

  int64_t tiles_m, tiles_n;
  int64_t batch_count;
  int split_k;

  MP_HD int64_t num_items() const { return tiles_m * tiles_n * batch_count * split_k; }

  MP_HD WorkItem operator()(int64_t number) const {
    const int64_t per_item = tiles_m * tiles_n;
    const int64_t tile = number % per_item;
    const int64_t rest = number / per_item;
    const int64_t group = tile / (kGroup * tiles_n);
    const int64_t first_m = group * kGroup;
    const int64_t rows = min_of(kGroup, tiles_m - first_m);
    const int64_t in_group = tile - first_m * tiles_n;
    return {first_m + in_group % rows, in_group / rows, rest % batch_count,
            static_cast<int>(rest / batch_count)};
  }
};

}  // namespace mp::MP_TARGET
