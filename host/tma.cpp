// TMA in the simulator: checks of each instruction, and its deferred execution.
#include "kernels/simt/sm90_tma.h"

#include <bit>

#include "host/async_proxy.h"
#include "host/shared_memory.h"
#include "host/start_async.h"
#include "host/tensor_box.h"

namespace mp::host {

namespace engine {

namespace {

constexpr size_t kBoxAlignment = 128;
constexpr size_t kSwizzledBoxAlignment = 1024;
constexpr size_t kMapAlignment = 64;       // for use in a copy
constexpr size_t kMadeMapAlignment = 128;  // for a map that a kernel builds
constexpr size_t kBaseAlignment = 16;
constexpr int64_t kStrideAlignment = 16;
constexpr int64_t kUnitBytes = 16;  // granularity of TMA accesses to rows of gmem

/// Name and call site of a primitive.
struct Call {
  const char *primitive;
  source_location where;
};

AsyncProxy &async_proxy() {
  return *current->block->async_proxy;
}

TensorMapFields check_map(const TensorMap &map, const char *primitive, source_location where) {
  const void *volatile address = &map;  // clang assumes that a reference is aligned
  if (!is_aligned(address, kMapAlignment))
    violation(where, "passes a tensor map to %s that is not 64-byte aligned", primitive);
  const TensorMapFields fields = fields_of(map);
  if (fields.magic != fields.kMagic)
    violation(where, "passes an invalid tensor map to %s", primitive);
  if (!fields.made_by_kernel || !mode().strict) return fields;
  if (!fields.released || !async_proxy().fresh_maps.contains(&map))
    violation(where, "passes a tensor map to %s that a kernel built, without tensor_map_%s",
              primitive, fields.released ? "acquire" : "release");
  return fields;
}

/// Reports a violation for an im2col map.
TensorMapFields check_tiled_map(const TensorMap &map, const char *primitive,
                                source_location where) {
  const TensorMapFields fields = check_map(map, primitive, where);
  if (fields.im2col)
    violation(where, "passes an im2col map to %s, which requires a tiled map", primitive);
  return fields;
}
TensorMapFields check_im2col_map(const TensorMap &map, const char *primitive,
                                 source_location where) {
  const TensorMapFields fields = check_map(map, primitive, where);
  if (!fields.im2col)
    violation(where, "passes a tiled map to %s, which requires an im2col map", primitive);
  return fields;
}

void put_made_map(TensorMap *gmem_dst, TensorMapFields fields, const void *base,
                  source_location where) {
  if (!is_aligned(gmem_dst, kMadeMapAlignment))
    violation(where, "builds a tensor map that is not 128-byte aligned");
  if (base == nullptr || !is_aligned(base, kBaseAlignment))
    violation(where, "builds a tensor map with a base that is not 16-byte aligned");
  fields.base = static_cast<std::byte *>(const_cast<void *>(base));
  fields.made_by_kernel = true;
  fields.released = false;
  *gmem_dst = std::bit_cast<TensorMap>(fields);
  async_proxy().made_maps.push_back(gmem_dst);
  async_proxy().fresh_maps.erase(gmem_dst);
}

// Three restrictions that the PTX ISA does not document, observed on an H200 (driver 580.159).
// Violating either of the first two raised cudaErrorIllegalInstruction.  tests/conformance covers
// the boxes that are allowed.

/// Restriction 1: every row of a box begins at a multiple of 16 bytes, even outside the tensor.
void check_first_column(const TensorMapFields &map, int column, const char *primitive,
                        source_location where) {
  if (int64_t{column} * map.element_bytes % kUnitBytes != 0)
    violation(where, "passes column %d to %s, which is not a multiple of %d bytes", column,
              primitive, static_cast<int>(kUnitBytes));
}

/// Restriction 2: a stored box does not begin before the tensor.  Restriction 3: a 16-byte unit
/// that extends beyond the last column is stored in full.
void check_stored_box(const TensorBox &box, const Call &call) {
  if (box.x < 0 || box.y < 0 || box.z < 0)
    violation(call.where,
              "passes column %d, row %d, matrix %d to %s: a store must not begin before the tensor",
              box.x, box.y, box.z, call.primitive);
  const int64_t columns = box.map.extent[0];
  if (columns * box.map.element_bytes % kUnitBytes != 0 && box.x < columns &&
      int64_t{box.x} + box.map.box[0] > columns)
    violation(
        call.where,
        "stores a box with %s that ends at the last of %lld columns, not at a multiple of %d bytes",
        call.primitive, static_cast<long long>(columns), static_cast<int>(kUnitBytes));
}

/// Checks im2col coordinates.  PTX ISA: "The filter corner location must be within the bounding
/// box."  The ISA does not define starts that are not a multiple of the step from the corner of the
/// box.
void check_place(const TensorMapFields &map, const Im2colCoord &at, const char *primitive,
                 source_location where) {
  check_first_column(map, at.c, primitive, where);
  const int base[2] = {at.w, at.h}, offset[2] = {at.w_offset, at.h_offset};
  const char *const axis[2] = {"column", "row"};
  for (int i = 0; i < 2; i++) {
    const int64_t end = map.extent[i + 1] + map.upper[i];
    if (base[i] < map.lower[i] || base[i] >= end)
      violation(where, "passes %s %d to %s, outside the pixel box [%d, %lld)", axis[i], base[i],
                primitive, map.lower[i], static_cast<long long>(end));
    if ((base[i] - map.lower[i]) % map.step[i] != 0)
      violation(where, "passes %s %d to %s, not a multiple of the step %d from %d", axis[i],
                base[i], primitive, map.step[i], map.lower[i]);
    if (offset[i] < 0 || offset[i] > kMaxIm2colOffset)
      violation(where, "passes the %s offset %d to %s, outside [0, %d]", axis[i], offset[i],
                primitive, kMaxIm2colOffset);
  }
}

/// Returns the smem address of a box.  Reports a violation if a thread has written there through
/// the generic proxy without a proxy fence.
std::byte *check_box(const TensorMapFields &map, SmemAddress address, const char *primitive,
                     source_location where) {
  check_may_use_gmem(primitive, where);
  const size_t alignment = map.swizzle_128 ? kSwizzledBoxAlignment : kBoxAlignment;
  if (address % alignment != 0)
    violation(where, "passes an smem address to %s that is not %zu-byte aligned", primitive,
              alignment);
  const size_t bytes = static_cast<size_t>(map.box_bytes());
  const Block &block = block_of(address, primitive, where);
  std::byte *const smem = smem_at(block, address, bytes, primitive, where);
  const GenericWrites::Unfenced write =
      block.async_proxy->writes.find(offset_in_arena(address), bytes);
  if (write.thread >= 0)
    violation(where, "passes shared %s to %s, which thread %d wrote without async_proxy_fence",
              block.smem->locate(smem + (write.offset - offset_in_arena(address))).text, primitive,
              write.thread);
  return smem;
}

template <class Box>
void load(SmemAddress dst, const Box &box, SmemAddress bar, const Call &call) {
  const uint32_t bytes = static_cast<uint32_t>(box.map.box_bytes());
  check_box(box.map, dst, call.primitive, call.where);
  start_async([=] {
    load_box(box, smem_at(dst, bytes, call.primitive, call.where));
    mbarrier_complete_tx(bar, bytes, call.where);
  });
}

template <class Box>
void load_here(SmemAddress dst, const Box &box, SmemAddress bar, const Call &call) {
  if (&block_of(dst, call.primitive, call.where) != &block_of(bar, call.primitive, call.where))
    violation(call.where, "passes smem of one block and an mbarrier of another to %s",
              call.primitive);
  load(dst, box, bar, call);
}

template <class Box>
void load_multicast(SmemAddress dst, const Box &box, SmemAddress bar, uint32_t block_mask,
                    const Call &call) {
  const int num_blocks = current->block->cluster->size;
  if (block_mask == 0 || block_mask >> num_blocks != 0)
    violation(call.where, "passes the mask %#x to %s in a cluster of %d blocks", block_mask,
              call.primitive, num_blocks);
  for (int rank = 0; rank < num_blocks; rank++)
    if (block_mask >> rank & 1)
      load(in_block(dst, rank, call.where), box, in_block(bar, rank, call.where), call);
}

TensorBox tiled_box(const TensorMap &map, int x, int y, int z, const Call &call) {
  const TensorMapFields fields = check_tiled_map(map, call.primitive, call.where);
  check_first_column(fields, x, call.primitive, call.where);
  return {fields, x, y, z};
}

void store(const TensorBox &box, SmemAddress src, bool add, const Call &call) {
  check_stored_box(box, call);
  if (&block_of(src, call.primitive, call.where) != current->block)
    violation(call.where, "passes an smem address of another block to %s", call.primitive);
  const std::byte *const smem = check_box(box.map, src, call.primitive, call.where);
  std::vector<BulkStores> &stores = async_proxy().stores;
  if (stores.empty()) stores.resize(static_cast<size_t>(current->block->num_threads));
  stores[static_cast<size_t>(current->index)].start({box, smem, add}, call.where);
}

/// Returns NULL if no thread of the block has issued a TMA store.
BulkStores *stores_of_this_thread() {
  std::vector<BulkStores> &stores = async_proxy().stores;
  return stores.empty() ? nullptr : &stores[static_cast<size_t>(current->index)];
}

}  // namespace

void wait_for_bulk_reads(int64_t pending_groups) {
  if (BulkStores *const stores = stores_of_this_thread()) stores->wait_read(pending_groups);
}
void wait_for_bulk_stores(int64_t pending_groups) {
  if (BulkStores *const stores = stores_of_this_thread()) stores->wait(pending_groups);
}

void note_generic_write(const Thread &me, SmemAddress address, size_t bytes) {
  me.block->async_proxy->writes.note(me.index, offset_in_arena(address), bytes);
}

void finish_bulk_stores() {
  BulkStores *const stores = stores_of_this_thread();
  if (stores != nullptr && !stores->finish())
    violation(stores->newest(), "returned before its TMA store has read shared memory: the store");
}

}  // namespace engine

using namespace engine;

void tma_prefetch(const TensorMap &map, source_location where) {
  check_map(map, "tma_prefetch", where);
}

void tma_load(SmemAddress dst, const TensorMap &map, SmemAddress bar, int x, int y, int z,
              source_location where) {
  const Call call{"tma_load", where};
  load_here(dst, tiled_box(map, x, y, z, call), bar, call);
}

void tma_load_multicast(SmemAddress dst, const TensorMap &map, SmemAddress bar, int x, int y, int z,
                        uint32_t block_mask, source_location where) {
  const Call call{"tma_load_multicast", where};
  load_multicast(dst, tiled_box(map, x, y, z, call), bar, block_mask, call);
}

void tma_load_im2col(SmemAddress dst, const TensorMap &map, SmemAddress bar, const Im2colCoord &at,
                     source_location where) {
  const Call call{"tma_load_im2col", where};
  const TensorMapFields fields = check_im2col_map(map, call.primitive, where);
  check_place(fields, at, call.primitive, where);
  load_here(dst, Im2colBox{fields, at}, bar, call);
}

void tma_load_im2col_multicast(SmemAddress dst, const TensorMap &map, SmemAddress bar,
                               const Im2colCoord &at, uint32_t block_mask, source_location where) {
  const Call call{"tma_load_im2col_multicast", where};
  const TensorMapFields fields = check_im2col_map(map, call.primitive, where);
  check_place(fields, at, call.primitive, where);
  load_multicast(dst, Im2colBox{fields, at}, bar, block_mask, call);
}

void tma_store(const TensorMap &map, SmemAddress src, int x, int y, int z, source_location where) {
  const Call call{"tma_store", where};
  store(tiled_box(map, x, y, z, call), src, false, call);
}

void tma_reduce_add(const TensorMap &map, SmemAddress src, int x, int y, int z,
                    source_location where) {
  const Call call{"tma_reduce_add", where};
  const TensorBox box = tiled_box(map, x, y, z, call);
  if (box.map.element_bytes != sizeof(float))
    violation(where, "passes a tensor map to tma_reduce_add that is not of fp32");
  store(box, src, true, call);
}

void tma_store_commit() {
  if (BulkStores *const stores = stores_of_this_thread()) stores->commit();
}

void async_proxy_fence() {
  async_proxy().writes.fence(current->index);
}

void tensor_map_copy_with_base(TensorMap *gmem_dst, const TensorMap &from, const void *base,
                               source_location where) {
  const TensorMapFields fields = check_tiled_map(from, "tensor_map_copy_with_base", where);
  put_made_map(gmem_dst, fields, base, where);
}

void tensor_map_copy_with_matrix(TensorMap *gmem_dst, const TensorMap &from,
                                 const TensorMapMatrix &matrix, source_location where) {
  TensorMapFields fields = check_tiled_map(from, "tensor_map_copy_with_matrix", where);
  if (matrix.cols < 1 || matrix.rows < 1)
    violation(where, "builds a tensor map of %d columns and %d rows", matrix.cols, matrix.rows);
  if (matrix.row_bytes < 1 || matrix.row_bytes % kStrideAlignment != 0)
    violation(where, "builds a tensor map with a row stride of %lld bytes",
              static_cast<long long>(matrix.row_bytes));
  fields.extent[0] = matrix.cols;
  fields.extent[1] = matrix.rows;
  fields.extent[2] = 1;
  fields.stride_bytes[0] = fields.stride_bytes[1] = matrix.row_bytes;
  put_made_map(gmem_dst, fields, matrix.base, where);
}

void tensor_map_release() {
  for (TensorMap *const map : async_proxy().made_maps) {
    TensorMapFields fields = fields_of(*map);
    fields.released = true;
    *map = std::bit_cast<TensorMap>(fields);
  }
  async_proxy().made_maps.clear();
}

void tensor_map_acquire(const TensorMap *gmem, source_location where) {
  if (fields_of(*gmem).magic != TensorMapFields::kMagic)
    violation(where, "passes an invalid tensor map to tensor_map_acquire");
  if (mode().strict) async_proxy().fresh_maps.insert(gmem);
}

}  // namespace mp::host
