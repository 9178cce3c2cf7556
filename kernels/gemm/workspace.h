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
  size_t table;     ///< header and WgmmaItems: of batch items that are pointers, of groups
  size_t tickets;   ///< one counter per tile and warp; where k is split
  size_t partials;  ///< fp32 [tile][slice][kM][kN], in an order of the kernel's own
  size_t ticket_bytes;
  size_t bytes;
};

/// A table begins with a header of that many bytes; then its items, each of so many.
constexpr size_t kWgmmaTableHeaderBytes = 256, kWgmmaItemBytes = 512;
/// Of mp_gemm_grouped: that the parameters of one launch take there.
constexpr int kWgmmaProductsPerLaunch = 320;
constexpr int64_t kWgmmaItemsPerBlock = 512;  ///< of the kernel that fills a table
constexpr int64_t kTicketsPerTile = 8;

/// `tiles`: of D, over all batch items; `table_items`: 0 where no table is needed.
inline WgmmaWorkspace wgmma_workspace(int64_t table_items, int64_t tiles, int split_k, int tile_m,
                                      int tile_n) {
  WorkspaceLayout layout;
  WgmmaWorkspace w{};
  if (table_items > 0)
    w.table =
        layout.add(kWgmmaTableHeaderBytes + static_cast<size_t>(table_items) * kWgmmaItemBytes);
  if (split_k > 1) {
    w.ticket_bytes = static_cast<size_t>(tiles * kTicketsPerTile) * sizeof(uint32_t);
    w.tickets = layout.add(w.ticket_bytes);
    w.partials = layout.add(sizeof(float) * static_cast<size_t>(tiles * split_k) *
                            static_cast<size_t>(tile_m * tile_n));
  }
  w.bytes = layout.size();
  return w;
}

}  // namespace mp
