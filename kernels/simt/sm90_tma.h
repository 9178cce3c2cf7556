// TMA: bulk tensor copies, each started by one thread, that move a box of a tensor between gmem and
// smem (sm_90; replacing fields of a tensor map requires sm_90a).
//
// A TensorMap (tensor_map.h) describes tensor and box.  The host encodes it; the kernel takes it as
// an argument or reads it from gmem.  x, y, z are the coordinates of the box's first element:
// column, row, matrix.  They may be negative or beyond the end.  In smem a box begins at a multiple
// of 128 bytes, or of 1024 with the swizzle.
//
// Three rules that the PTX ISA does not state, observed on an H200 with driver 580.159:
//   - A row of a box begins at a multiple of 16 bytes, also outside the tensor.  This limits x, and
//     c of im2col loads.
//   - Stores take no negative coordinate.
//   - Stores write full units of 16 bytes: if the last column ends within a unit, the rest of the
//     unit is overwritten.
//
// A load completes on an mbarrier, which counts all bytes of a box, even those outside the tensor.
// Stores complete in bulk groups, like cp.async.  The simulator executes both immediately.
#pragma once

#include "kernels/simt/simt.h"
#include "kernels/simt/sm90_barrier.h"
#include "kernels/simt/tensor_map.h"

namespace mp::MP_TARGET {

/// Start of an im2col load: channel c, and the filter's first tap at column w and row h of image n.
/// This pixel must be in the map's pixel box, a multiple of the step from its first column and row.
/// The offsets, 0 to kMaxIm2colOffset, lead from it to the tap whose pixels are read.
struct Im2colCoord {
  int c, w, h, n;
  int w_offset, h_offset;
};

/// Matrix that replaces the tensor of a map.
struct TensorMapMatrix {
  const void *base;
  int32_t cols, rows;  ///< > 0
  int64_t row_bytes;   ///< row stride: a multiple of 16, even if rows = 1
};

#if MP_ON_CUDA

/// Returns true in one lane, the same in every call, because bulk groups belong to the thread that
/// issues, commits and waits.  All lanes of the warp must call it.  After a comparison with
/// lane_index(), ptxas would issue TMA instructions in a loop over the active lanes.
MP_DEVICE bool is_elected_lane() {
  uint32_t is_elected;
  asm volatile(
      "{\n\t.reg .pred elected;\n\t"
      "elect.sync _|elected, 0xffffffff;\n\t"
      "selp.u32 %0, 1, 0, elected;\n\t}"
      : "=r"(is_elected));
  return is_elected != 0;
}

/// Prefetches the map for a later copy.
MP_DEVICE void tma_prefetch(const TensorMap &map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Loads a box from gmem to smem; completes on the mbarrier `bar`, in the same block as `dst`.
MP_DEVICE void tma_load(SmemAddress dst, const TensorMap &map, SmemAddress bar, int x, int y,
                        int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(dst),
      "l"(&map), "r"(bar), "r"(x), "r"(y), "r"(z)
      : "memory");
}

/// Loads a box into every block of the cluster whose rank is in the mask, at the offset of `dst`;
/// completes on the mbarrier at the offset of `bar` in each of them.
MP_DEVICE void tma_load_multicast(SmemAddress dst, const TensorMap &map, SmemAddress bar, int x,
                                  int y, int z, uint32_t block_mask) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(dst),
      "l"(&map), "r"(bar), "r"(x), "r"(y), "r"(z), "h"(static_cast<uint16_t>(block_mask))
      : "memory");
}

/// tma_load with an im2col map: the pixels of one tap, each a row of smem.
MP_DEVICE void tma_load_im2col(SmemAddress dst, const TensorMap &map, SmemAddress bar,
                               const Im2colCoord &at) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(dst),
      "l"(&map), "r"(bar), "r"(at.c), "r"(at.w), "r"(at.h), "r"(at.n),
      "h"(static_cast<uint16_t>(at.w_offset)), "h"(static_cast<uint16_t>(at.h_offset))
      : "memory");
}

/// tma_load_multicast with an im2col map.
MP_DEVICE void tma_load_im2col_multicast(SmemAddress dst, const TensorMap &map, SmemAddress bar,
                                         const Im2colCoord &at, uint32_t block_mask) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8}, %9;" ::"r"(dst),
      "l"(&map), "r"(bar), "r"(at.c), "r"(at.w), "r"(at.h), "r"(at.n),
      "h"(static_cast<uint16_t>(at.w_offset)), "h"(static_cast<uint16_t>(at.h_offset)),
      "h"(static_cast<uint16_t>(block_mask))
      : "memory");
}

/// Stores a box from smem to gmem.  Writes of other threads to smem are visible to it if each
/// thread has called async_proxy_fence after its writes, and a barrier with this thread followed.
MP_DEVICE void tma_store(const TensorMap &map, SmemAddress src, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(
          &map),
      "r"(src), "r"(x), "r"(y), "r"(z)
      : "memory");
}

/// tma_store with an im2col map: each row of smem to a pixel, from channel c of the pixel at column
/// w and row h of image n on, in the order of a load without offsets.  Source: CUTLASS,
/// SM90_TMA_STORE_IM2COL.
MP_DEVICE void tma_store_im2col(const TensorMap &map, SmemAddress src, int c, int w, int h, int n) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group"
      " [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
      "r"(src), "r"(c), "r"(w), "r"(h), "r"(n)
      : "memory");
}

/// Commits this thread's stores since the last commit as one bulk group.
MP_DEVICE void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Waits until all but the newest `kPending` groups of this thread have read smem, which may then
/// be overwritten.  A thread that has started stores must wait with 0 before it exits.
template <int kPending>
MP_DEVICE void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

/// Waits until all but the newest `kPending` groups of this thread have written gmem.
template <int kPending>
MP_DEVICE void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
}

/// Proxy fence: orders this thread's accesses to smem through the generic proxy before later ones
/// through the async proxy (TMA, wgmma).
MP_DEVICE void async_proxy_fence() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Copies `from`, which must not be an im2col map, to *gmem_dst with another base.  Called by one
/// thread.  TMA may use the copy after tensor_map_release and tensor_map_acquire, in this kernel or
/// a later one.  Traps on other architectures, so kernels that only write maps need not be
/// templates.
MP_DEVICE void tensor_map_copy_with_base(TensorMap *gmem_dst, const TensorMap &from,
                                         const void *base) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  *gmem_dst = from;
  asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(
                   __cvta_generic_to_global(gmem_dst)),
               "l"(base)
               : "memory");
#else
  __trap();
#endif
}

/// tensor_map_copy_with_base with another tensor: only element type, box and swizzle are kept.  The
/// copy equals the map that the host would encode.  Strides are passed in bytes from CUDA 12.5 on,
/// in units of 16 bytes before: CUTLASS, copy_sm90_desc.hpp.
MP_DEVICE void tensor_map_copy_with_matrix(TensorMap *gmem_dst, const TensorMap &from,
                                           const TensorMapMatrix &matrix) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#if __CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 5)
  const int64_t stride = matrix.row_bytes;
#else
  const int64_t stride = matrix.row_bytes / 16;
#endif
  *gmem_dst = from;
  asm volatile(
      "tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;\n"
      "tensormap.replace.tile.global_dim.global.b1024.b32 [%0], 0, %2;\n"
      "tensormap.replace.tile.global_dim.global.b1024.b32 [%0], 1, %3;\n"
      "tensormap.replace.tile.global_dim.global.b1024.b32 [%0], 2, 1;\n"
      "tensormap.replace.tile.global_stride.global.b1024.b64 [%0], 0, %4;\n"
      "tensormap.replace.tile.global_stride.global.b1024.b64 [%0], 1, %4;" ::"l"(
          __cvta_generic_to_global(gmem_dst)),
      "l"(matrix.base), "r"(matrix.cols), "r"(matrix.rows), "l"(stride)
      : "memory");
#else
  __trap();
#endif
}

/// Releases maps to TMA.  Called by the thread that wrote them, once after the last one.
MP_DEVICE void tensor_map_release() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
#else
  __trap();
#endif
}

/// Acquires a map.  Called in every block that uses it, after the barrier or the end of the kernel
/// that orders the block after the thread that wrote the map.
MP_DEVICE void tensor_map_acquire(const TensorMap *gmem) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(gmem) : "memory");
}

#else

inline bool is_elected_lane() {
  return lane_index() == 0;
}

// Bodies: host/tma.cpp.

inline void tma_prefetch(const TensorMap &) {}
void tma_load(SmemAddress dst, const TensorMap &, SmemAddress bar, int x, int y, int z,
              source_location = source_location::current());
void tma_load_multicast(SmemAddress dst, const TensorMap &, SmemAddress bar, int x, int y, int z,
                        uint32_t block_mask, source_location = source_location::current());
void tma_load_im2col(SmemAddress dst, const TensorMap &, SmemAddress bar, const Im2colCoord &,
                     source_location = source_location::current());
void tma_load_im2col_multicast(SmemAddress dst, const TensorMap &, SmemAddress bar,
                               const Im2colCoord &, uint32_t block_mask,
                               source_location = source_location::current());
void tma_store(const TensorMap &, SmemAddress src, int x, int y, int z,
               source_location = source_location::current());
void tma_store_im2col(const TensorMap &, SmemAddress src, int c, int w, int h, int n,
                      source_location = source_location::current());
void tensor_map_copy_with_base(TensorMap *gmem_dst, const TensorMap &from, const void *base);
void tensor_map_copy_with_matrix(TensorMap *gmem_dst, const TensorMap &from,
                                 const TensorMapMatrix &);

inline void tma_store_commit() {}
template <int kPending>
void tma_store_wait_read() {}
template <int kPending>
void tma_store_wait() {}
inline void async_proxy_fence() {}
inline void tensor_map_release() {}
inline void tensor_map_acquire(const TensorMap *) {}

#endif

// ---------------------------------------------------------------------------- loads before a wait

// Programmatic dependent launch: memory that a kernel may read before its predecessor has ended.
//
// A kernel that calls wait_and_launch_dependents() allows its successor in the stream to start once
// all its blocks have waited for the predecessor.  When the successor starts, at most one kernel is
// still running: the one directly before it.  Memory not written by it can be read before the wait:
//
//     kernel 1    wait_and_launch_dependents();   writes Y, but not W
//     kernel 2    tma_load_before_wait(W);  wait_and_launch_dependents();  tma_load(Y)
//
// If kernel 1 calls wait_for_previous_kernel() instead, earlier kernels may still be running, and
// kernel 2 must wait before all its loads.
//
// Source: PTX ISA, griddepcontrol: launch_dependents takes effect when all blocks of the grid have
// issued it; wait returns when the grids that it depends on have completed and their memory
// operations are visible.

MP_DEVICE void wait_and_launch_dependents() {
#if !MP_ON_CUDA
  wait_for_previous_kernel();
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// tma_load of memory that the previous kernel does not write.
MP_DEVICE void tma_load_before_wait(SmemAddress dst, const TensorMap &map, SmemAddress bar, int x,
                                    int y, int z) {
  tma_load(dst, map, bar, x, y, z);
}

}  // namespace mp::MP_TARGET
