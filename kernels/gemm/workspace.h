// Layout of a workspace.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mp {

/// Regions of a workspace, one after the other, each 256-byte aligned.
class WorkspaceLayout {
 public:
  /// Returns the offset of the next region.
  size_t add(size_t bytes) {
    const size_t offset = size_;
    size_ = (offset + bytes + 255) / 256 * 256;
    return offset;
  }
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
};

/// Hopper: a table of products begins with a header, followed by the entries.
constexpr size_t kWgmmaTableHeaderBytes = 256, kWgmmaItemBytes = 512;
/// mp_gemm_grouped: products in the parameters of one launch that fills the table.
constexpr int kWgmmaProductsPerLaunch = 320;
constexpr int64_t kWgmmaItemsPerBlock = 512;  ///< in the kernel that fills a table

constexpr size_t wgmma_table_bytes(int64_t items) {
  return kWgmmaTableHeaderBytes + static_cast<size_t>(items) * kWgmmaItemBytes;
}

}  // namespace mp
