// TMA: one thread starts a bulk tensor copy, which moves a box of a tensor between gmem and smem (sm_90;
// replacing the base of a tensor map, sm_90a).
//
// The tensor and the box are described by a TensorMap (tensor_map.h), which the host encodes and the
// kernel takes in its argument, or finds in gmem.  x, y, z are the coordinates of the first element of
// the box: column, row, matrix.  They may be negative or beyond the end.  In smem a box begins at a
// multiple of 128 bytes, or of 1024 under the swizzle.
//
// But a row of a box begins at a multiple of 16 bytes, before the tensor and behind it too: so x, and c of
// im2col loads.  Stores and reductions take no negative coordinate, and they write whole units of 16 bytes:
// what follows a last column that ends within one is overwritten.  That was seen on an H200, driver 580.159;
// the PTX ISA does not have it.
//
// A load completes on an mbarrier, for which every box counts with all its bytes, whatever part of it
// lies in the tensor.  Stores complete in bulk groups, like cp.async.  On the host the simulator performs
// either at once or later: a load at any time, a store at the latest in the wait that covers it.
#pragma once

#include "kernels/simt/simt.h"
#include "kernels/simt/sm90_barrier.h"
#include "kernels/simt/tensor_map.h"

namespace mp::MP_TARGET {

/// Where an im2col load begins: channel c, and column w and row h of image n, where the filter's first
/// tap stands.  That pixel must lie in the map's pixel box, whole steps from its first column and row.
/// The offsets, 0 to kMaxIm2colOffset, lead from it to the tap whose pixels are read.
struct Im2colCoord {
  int c, w, h, n;
  int w_offset, h_offset;
};

/// One matrix, in place of the tensor of a map.
struct TensorMapMatrix {
  const void *base;
  int32_t cols, rows;  ///< > 0
  int64_t row_bytes;   ///< from row to row: a multiple of 16, also if there is only one
};

#if MP_ON_CUDA

/// Brings the map into the cache for a later copy.
MP_DEVICE void tma_prefetch(const TensorMap &map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// From gmem to smem.  The bytes of the box complete on the mbarrier `bar`, in the same block as `dst`.
MP_DEVICE void tma_load(SmemAddress dst, const TensorMap &map, SmemAddress bar, int x, int y,
                        int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(dst),
      "l"(&map), "r"(bar), "r"(x), "r"(y), "r"(z)
      : "memory");
}

/// The same box into every block of the cluster whose rank is in the mask, at the offset of `dst`;
/// completes on the mbarrier at the offset of `bar` in each of them.
MP_DEVICE void tma_load_multicast(SmemAddress dst, const TensorMap &map, SmemAddress bar, int x,
                                  int y, int z, uint32_t block_mask) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(dst),
      "l"(&map), "r"(bar), "r"(x), "r"(y), "r"(z), "h"(static_cast<uint16_t>(block_mask))
      : "memory");
}

/// As tma_load, with an im2col map: the pixels of one tap, each a row of smem.
MP_DEVICE void tma_load_im2col(SmemAddress dst, const TensorMap &map, SmemAddress bar,
                               const Im2colCoord &at) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(dst),
      "l"(&map), "r"(bar), "r"(at.c), "r"(at.w), "r"(at.h), "r"(at.n),
      "h"(static_cast<uint16_t>(at.w_offset)), "h"(static_cast<uint16_t>(at.h_offset))
      : "memory");
}

/// As tma_load_multicast, with an im2col map.
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

/// From smem to gmem.  It sees what threads of the block wrote to smem if each of them has called
/// async_proxy_fence after its writes, and a barrier then orders them before this thread.
MP_DEVICE void tma_store(const TensorMap &map, SmemAddress src, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(
          &map),
      "r"(src), "r"(x), "r"(y), "r"(z)
      : "memory");
}

/// As tma_store, but adds to the elements in gmem, each atomically.  fp32 only.
MP_DEVICE void tma_reduce_add(const TensorMap &map, SmemAddress src, int x, int y, int z) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group"
      " [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
      "r"(src), "r"(x), "r"(y), "r"(z)
      : "memory");
}

/// Commits this thread's stores since the last commit as one bulk group.
MP_DEVICE void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Returns when all but the newest `kPending` groups of this thread have read smem, which may then be
/// overwritten.  A thread that has started stores must wait with 0 before it returns.
template <int kPending>
MP_DEVICE void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

/// Returns when all but the newest `kPending` groups of this thread have written gmem.
template <int kPending>
MP_DEVICE void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
}

/// The proxy fence: orders this thread's accesses to smem through the generic proxy before later ones
/// through the async proxy (TMA, wgmma).
MP_DEVICE void async_proxy_fence() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// *gmem_dst = the map `from` with another base; `from` is no im2col map.  To be called by one thread.
/// TMA may use the copy after tensor_map_release and tensor_map_acquire, in this kernel or a later one.
/// Code for other architectures traps, so that a kernel that only makes maps need not be a template.
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

/// The same with another tensor altogether: what stays are the type of elements, box and swizzle.  The copy is
/// the map that the host would encode.
///
/// Strides are passed in bytes from CUDA 12.5 on and in units of 16 before: CUTLASS, copy_sm90_desc.hpp.
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

/// Must be called by the thread that made maps, once behind the last of them.
MP_DEVICE void tensor_map_release() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
#else
  __trap();
#endif
}

/// Must be called in every block that uses the map, after the barrier or the end of the kernel that
/// orders the block after the thread that made it.
MP_DEVICE void tensor_map_acquire(const TensorMap *gmem) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(gmem) : "memory");
}

#else

// The bodies are in host/tma.cpp.

void tma_prefetch(const TensorMap &, source_location = source_location::current());
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
void tma_reduce_add(const TensorMap &, SmemAddress src, int x, int y, int z,
                    source_location = source_location::current());
void tma_store_commit();

namespace engine {
void wait_for_bulk_reads(int64_t pending_groups);
void wait_for_bulk_stores(int64_t pending_groups);
}  // namespace engine

template <int kPending>
void tma_store_wait_read() {
  engine::wait_for_bulk_reads(kPending);
}
template <int kPending>
void tma_store_wait() {
  engine::wait_for_bulk_stores(kPending);
}

void async_proxy_fence();
void tensor_map_copy_with_base(TensorMap *gmem_dst, const TensorMap &from, const void *base,
                               source_location = source_location::current());
void tensor_map_copy_with_matrix(TensorMap *gmem_dst, const TensorMap &from,
                                 const TensorMapMatrix &,
                                 source_location = source_location::current());
void tensor_map_release();
void tensor_map_acquire(const TensorMap *gmem, source_location = source_location::current());

#endif

}  // namespace mp::MP_TARGET
