// TMA in the simulator: every copy is executed immediately.
#include "kernels/simt/sm90_tma.h"

#include <bit>

#include "host/tensor_box.h"

namespace mp::host {

namespace engine {

namespace {

template <class Box>
void load(SmemAddress dst, const Box &box, SmemAddress bar, const char *primitive,
          source_location where) {
  const size_t bytes = static_cast<size_t>(box.map.box_bytes());
  load_box(box, smem_at(dst, bytes, primitive, where));
  mbarrier_complete_tx(bar, static_cast<uint32_t>(bytes), where);
}

template <class Box>
void load_multicast(SmemAddress dst, const Box &box, SmemAddress bar, uint32_t block_mask,
                    const char *primitive, source_location where) {
  for (int rank = 0; block_mask >> rank != 0; rank++)
    if (block_mask >> rank & 1)
      load(in_block(dst, rank), box, in_block(bar, rank), primitive, where);
}

template <class Box>
void store(const Box &box, SmemAddress src, const char *primitive, source_location where) {
  store_box(box, smem_at(src, static_cast<size_t>(box.map.box_bytes()), primitive, where));
}

void put_made_map(TensorMap *gmem_dst, TensorMapFields fields, const void *base) {
  fields.base = static_cast<std::byte *>(const_cast<void *>(base));
  *gmem_dst = std::bit_cast<TensorMap>(fields);
}

}  // namespace

}  // namespace engine

using namespace engine;

void tma_load(SmemAddress dst, const TensorMap &map, SmemAddress bar, int x, int y, int z,
              source_location where) {
  load(dst, TensorBox{fields_of(map), x, y, z}, bar, "tma_load", where);
}

void tma_load_multicast(SmemAddress dst, const TensorMap &map, SmemAddress bar, int x, int y, int z,
                        uint32_t block_mask, source_location where) {
  load_multicast(dst, TensorBox{fields_of(map), x, y, z}, bar, block_mask, "tma_load_multicast",
                 where);
}

void tma_load_im2col(SmemAddress dst, const TensorMap &map, SmemAddress bar, const Im2colCoord &at,
                     source_location where) {
  load(dst, Im2colBox{fields_of(map), at}, bar, "tma_load_im2col", where);
}

void tma_load_im2col_multicast(SmemAddress dst, const TensorMap &map, SmemAddress bar,
                               const Im2colCoord &at, uint32_t block_mask, source_location where) {
  load_multicast(dst, Im2colBox{fields_of(map), at}, bar, block_mask, "tma_load_im2col_multicast",
                 where);
}

void tma_store(const TensorMap &map, SmemAddress src, int x, int y, int z, source_location where) {
  store(TensorBox{fields_of(map), x, y, z}, src, "tma_store", where);
}

void tma_store_im2col(const TensorMap &map, SmemAddress src, int c, int w, int h, int n,
                      source_location where) {
  store(Im2colBox{fields_of(map), {c, w, h, n, 0, 0}}, src, "tma_store_im2col", where);
}

void tensor_map_copy_with_base(TensorMap *gmem_dst, const TensorMap &from, const void *base) {
  put_made_map(gmem_dst, fields_of(from), base);
}

void tensor_map_copy_with_matrix(TensorMap *gmem_dst, const TensorMap &from,
                                 const TensorMapMatrix &matrix) {
  TensorMapFields fields = fields_of(from);
  fields.extent[0] = matrix.cols;
  fields.extent[1] = matrix.rows;
  fields.extent[2] = 1;
  fields.stride_bytes[0] = fields.stride_bytes[1] = matrix.row_bytes;
  put_made_map(gmem_dst, fields, matrix.base);
}

}  // namespace mp::host
