// How the kernels that need workspace lay it out.  Pure: selection asks for the size, the launch
// for the places.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mp {

/// Regions of a workspace, one behind the other, each 256-byte aligned.
class WorkspaceLayout {
 public:
  /// Offset of the next region.
  size_t add(size_t bytes) {
    const size_t offset = size_;
    size_ = (offset + bytes + 255) / 256 * 256;
    return offset;
  }
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
};

/// Of a wgmma kernel.
struct WgmmaWorkspace {
  size_t table;   ///< header and WgmmaItems: of batch items that are pointers, of groups
  size_t slices;  ///< where k is split: the sums of each (partial_sums.h)
  size_t bytes;
};

/// A table begins with a header of that many bytes; then its items, each of so many.
constexpr size_t kWgmmaTableHeaderBytes = 256, kWgmmaItemBytes = 512;
/// Of mp_gemm_grouped: that the parameters of one launch take there.
constexpr int kWgmmaProductsPerLaunch = 320;
constexpr int64_t kWgmmaItemsPerBlock = 512;  ///< of the kernel that fills a table

/// fp32 sums of each slice of k of m x n matrices; 0 without a split.
inline size_t slices_bytes(int split_k, int64_t batch_count, int64_t m, int64_t n) {
  if (split_k == 1) return 0;
  return sizeof(float) * static_cast<size_t>(split_k) * static_cast<size_t>(batch_count) *
         static_cast<size_t>(m) * static_cast<size_t>(n);
}

/// `table_items`: 0 where no table is needed.
inline WgmmaWorkspace wgmma_workspace(int64_t table_items, size_t slices_bytes = 0) {
  WorkspaceLayout layout;
  WgmmaWorkspace w{};
  if (table_items > 0)
    w.table =
        layout.add(kWgmmaTableHeaderBytes + static_cast<size_t>(table_items) * kWgmmaItemBytes);
  w.slices = layout.add(slices_bytes);
  w.bytes = layout.size();
  return w;
}

}  // namespace mp
