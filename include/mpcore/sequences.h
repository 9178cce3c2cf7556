/* mpcore/sequences.h: embedding and dropout. */
#ifndef MPCORE_SEQUENCES_H
#define MPCORE_SEQUENCES_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup sequences 10. Embedding and dropout
 *  @{ */

/** Bits of mp_embedding_desc_t.flags. */
typedef enum mp_embedding_flags {
  /** Makes the gradient of row `padding_index` 0.  The forward pass reads that row like any other,
   *  as in torch. */
  MP_EMBEDDING_FLAG_PADDING = 1 << 0,
  /** Adds the gradient to the previous value, for micro-batches or a table that is used twice.
   *  With dtype_dtable = MP_FP32 partial sums are not rounded to 16 bits. */
  MP_EMBEDDING_FLAG_ACCUMULATE = 1 << 1
} mp_embedding_flags_t;

/** Shape, types and layout of an embedding lookup. */
typedef struct mp_embedding_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;         /**< type of table, out and dout */
  mp_dtype_t dtype_dtable;  /**< type of the gradient */
  mp_dtype_t dtype_indices; /**< MP_INT32 or MP_INT64 */
  uint32_t flags;           /**< mp_embedding_flags_t, or-ed */
  int32_t num_embeddings;   /**< rows of table and dtable, >= 1 */
  int64_t num_indices;      /**< rows of out and dout, 0 to 2^31 - 1 */
  int64_t embedding_dim;    /**< elements of a row, >= 1 */
  int64_t padding_index;    /**< in [0, num_embeddings); read only with MP_EMBEDDING_FLAG_PADDING */
  int64_t ld_table;         /**< >= embedding_dim */
  int64_t ld_out;           /**< row stride of out and dout, >= embedding_dim */
  int64_t ld_dtable;        /**< >= embedding_dim */
} mp_embedding_desc_t;

/** Initializes a lookup with dense rows: dtype_dtable = dtype, indices of type MP_INT32, no
 *  flags. */
MP_API mp_status_t mp_embedding_desc_init(mp_embedding_desc_t *desc, size_t struct_size,
                                          int64_t num_indices, int32_t num_embeddings,
                                          int64_t embedding_dim, mp_dtype_t dtype);
static inline mp_embedding_desc_t mp_embedding_desc_default(int64_t num_indices,
                                                            int32_t num_embeddings,
                                                            int64_t embedding_dim,
                                                            mp_dtype_t dtype) {
  mp_embedding_desc_t desc;
  mp_embedding_desc_init(&desc, sizeof desc, num_indices, num_embeddings, embedding_dim, dtype);
  return desc;
}

/** Copies rows of a table: out[i] = table[indices[i]].
 *
 *  An index outside [0, num_embeddings) reads nothing and makes its row of out NaN, so that the
 *  step is skipped.  The host cannot check indices without waiting.
 *
 *  @param table    device, num_embeddings x embedding_dim.
 *  @param indices  device, num_indices integers of desc->dtype_indices.
 *  @param out      device, num_indices x embedding_dim, written; must not overlap table or
 *                  indices. */
MP_API mp_status_t mp_embedding_forward(mp_context_t context, const mp_embedding_desc_t *desc,
                                        const void *table, const void *indices, void *out,
                                        mp_stream_t stream);

/** Returns the workspace size that mp_embedding_backward requires: less than
 *  num_indices (17 + embedding_dim / 8) + 4 num_embeddings + 128 KiB + 8 embedding_dim bytes; 0 if
 *  num_indices is 0.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_embedding_workspace_size(mp_context_t context,
                                               const mp_embedding_desc_t *desc, size_t *bytes);

/** Computes the gradient of the table: dtable[v] = sum of dout[i] over all i with indices[i] = v.
 *
 *  Rows of dtable without an index become 0.  Indices outside [0, num_embeddings) are skipped.
 *  A NaN in dout affects one row of dtable.
 *
 *  Determinism: sums are in fp32 and rounded once.  The rows of dout with equal index are added in
 *  ascending order of i, in blocks of 64 rows whose sums are then combined;
 *  MP_EMBEDDING_FLAG_ACCUMULATE adds the previous value last.  The bits of a row of dtable thus
 *  depend on its rows of dout, their order and embedding_dim, not on other indices or the device.
 *
 *  @param indices    device, num_indices integers of desc->dtype_indices.
 *  @param dout       device, num_indices x embedding_dim.
 *  @param dtable     device, num_embeddings x embedding_dim, overwritten.
 *                    MP_EMBEDDING_FLAG_ACCUMULATE writes only rows with an index, except the
 *                    padding row.
 *  @param stats      host, optional: of the elements written to dtable.
 *  @param workspace  device, 256-byte aligned; mp_embedding_workspace_size bytes.
 *  @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes < mp_embedding_workspace_size */
MP_API mp_status_t mp_embedding_backward(mp_context_t context, const mp_embedding_desc_t *desc,
                                         const void *indices, const void *dout, void *dtable,
                                         const mp_grad_stats_t *stats, void *workspace,
                                         size_t workspace_bytes, mp_stream_t stream);

/** Size, type and options of a dropout. */
typedef struct mp_dropout_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;   /**< type of x and y */
  int64_t count;      /**< elements, >= 0 */
  uint64_t seed;      /**< any value; tensors with equal seed and offset have equal masks */
  float p;            /**< probability in [0, 1) that an element becomes 0 */
  uint32_t reserved0; /**< must be 0 */
} mp_dropout_desc_t;

/** Initializes a dropout of `count` elements with seed 0. */
MP_API mp_status_t mp_dropout_desc_init(mp_dropout_desc_t *desc, size_t struct_size, int64_t count,
                                        float p, mp_dtype_t dtype);
static inline mp_dropout_desc_t mp_dropout_desc_default(int64_t count, float p, mp_dtype_t dtype) {
  mp_dropout_desc_t desc;
  mp_dropout_desc_init(&desc, sizeof desc, count, p, dtype);
  return desc;
}

/** Computes y = x mask / (1 - p), where the mask is 0 with probability p and otherwise 1.
 *
 *  The backward pass is the same call with dy as x and dx as y: the mask is not stored but
 *  recomputed from seed, offset and element index.  Element i is dropped if word i % 4 of
 *  Philox 4x32-10 is less than floor(2^32 p).  The key is the seed; the counter, low words first,
 *  is i / 4 (1 word), the offset (2 words) and i / 4 / 2^32 (1 word).  mp_rnn_* use different
 *  random words, even with the same seed.
 *
 *  A dropped element is 0 even if x is NaN.  The others are multiplied by 1 / (1 - p) in fp32 and
 *  rounded once.  With p = 0, y equals x.
 *
 *  @param offset  device, 1 value, optional; NULL = 0.  Selects the mask: use a counter in device
 *                 memory that changes in every training step, such as
 *                 mp_optimizer_get_step_address; otherwise all steps have equal masks.  A
 *                 replayed CUDA graph reads its current value.  It must be the same in the forward
 *                 and backward pass of a step.
 *  @param x       device, count elements.
 *  @param y       device, count elements, written; may be x.
 *  @param stats   host, optional: of y, in the backward pass.
 *  @source Srivastava et al., Dropout, 2014; Salmon et al., Parallel Random Numbers, 2011. */
MP_API mp_status_t mp_dropout(mp_context_t context, const mp_dropout_desc_t *desc,
                              const uint64_t *offset, const void *x, void *y,
                              const mp_grad_stats_t *stats, mp_stream_t stream);

/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_SEQUENCES_H */
