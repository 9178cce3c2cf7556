// Workspace layout of the GEMM kernels.  Pure: selection computes sizes, launches addresses.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mp {

/// Consecutive regions of a workspace, each 256-byte aligned.
class WorkspaceLayout {
 public:
  /// Adds a region and returns its offset.
  size_t add(size_t bytes) {
    const size_t offset = size_;
    size_ = (offset + bytes + 255) / 256 * 256;
    return offset;
  }
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
};

/// Workspace of a wgmma kernel: offsets and total size.
struct WgmmaWorkspace {
  size_t table;   ///< header and one GroupEntry per batch item (pointers) or group entry
  size_t slices;  ///< if k is split: partial sums (partial_sums.h)
  size_t bytes;
};

/// Bytes of the header with which a table begins, and of each entry after it.
constexpr size_t kWgmmaTableHeaderBytes = 256, kWgmmaItemBytes = 512;
/// Entries of mp_gemm_grouped that fit into the parameters of one launch.
constexpr int kWgmmaProductsPerLaunch = 320;
constexpr int64_t kWgmmaItemsPerBlock = 512;  ///< in the kernel that fills a table

/// Returns the bytes of the fp32 partial sums of m x n matrices; 0 without a split.
inline size_t slices_bytes(int split_k, int64_t batch_count, int64_t m, int64_t n) {
  if (split_k == 1) return 0;
  return sizeof(float) * static_cast<size_t>(split_k) * static_cast<size_t>(batch_count) *
         static_cast<size_t>(m) * static_cast<size_t>(n);
}

/// `table_items`: 0 if no table is needed.
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
