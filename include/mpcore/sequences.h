/* mpcore/sequences.h: embedding, dropout, rotary embedding and softmax. */
#ifndef MPCORE_SEQUENCES_H
#define MPCORE_SEQUENCES_H

#include "core.h"

MP_BEGIN_C

/** @defgroup sequences 11. Embedding, dropout, rotary embedding, softmax
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
  uint32_t flags;           /**< bitwise or of mp_embedding_flags_t */
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
 *  @param indices  device, num_indices integers of desc->dtype_indices.
 *  @param dout     device, num_indices x embedding_dim.
 *  @param dtable   device, num_embeddings x embedding_dim, overwritten.
 *                  MP_EMBEDDING_FLAG_ACCUMULATE writes only rows with an index, except the
 *                  padding row.
 *  @param stats    host, optional: of the elements written to dtable. */
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

/** Bits of mp_rope_desc_t.flags. */
typedef enum mp_rope_flags {
  /** Rotates the pairs of elements (2i, 2i + 1), as in GPT-J.  Without it, the pairs are
   *  (i, i + rotary_dim / 2), as in GPT-NeoX and Llama. */
  MP_ROPE_FLAG_INTERLEAVED = 1 << 0,
  /** Rotates by the negative angles: the backward pass, with dy as x and dx as y. */
  MP_ROPE_FLAG_INVERSE = 1 << 1
} mp_rope_flags_t;

/** Shape, layout and angles of a rotary position embedding:
 *
 *      x, y    rows x heads x head_dim: element (i, h, e) is at i x_row + h x_head + e
 *
 *  A row is a token.  One call rotates q and k in a packed [q | k | v]: heads = q_heads + kv_heads,
 *  x_row = (q_heads + 2 kv_heads) head_dim.  Tensors of layout heads x rows x head_dim have
 *  x_head = rows head_dim and x_row = head_dim. */
typedef struct mp_rope_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;   /**< type of x and y */
  int64_t rows;       /**< tokens, >= 0 */
  int32_t heads;      /**< >= 0 */
  int32_t head_dim;   /**< elements per head, >= 2 */
  int32_t rotary_dim; /**< leading elements that are rotated: even, 2 to min(head_dim, 512) */
  uint32_t flags;     /**< bitwise or of mp_rope_flags_t */
  int64_t x_row;      /**< stride of rows in elements; 0 = heads x_head */
  int64_t x_head;     /**< stride of heads in elements; 0 = head_dim */
  float base;         /**< finite, > 0; used only without inv_freq */
  uint32_t reserved0; /**< must be 0 */
  int64_t period;     /**< >= 0: tokens of a sequence, used only without positions; 0 = rows */
} mp_rope_desc_t;

/** Initializes a rotation of all elements of dense rows: base = 10000, no flags, one sequence. */
MP_API mp_status_t mp_rope_desc_init(mp_rope_desc_t *desc, size_t struct_size, int64_t rows,
                                     int32_t heads, int32_t head_dim, mp_dtype_t dtype);
static inline mp_rope_desc_t mp_rope_desc_default(int64_t rows, int32_t heads, int32_t head_dim,
                                                  mp_dtype_t dtype) {
  mp_rope_desc_t desc;
  mp_rope_desc_init(&desc, sizeof desc, rows, heads, head_dim, dtype);
  return desc;
}

/** Rotates pairs of elements by angles that are proportional to the position of the token:
 *
 *      angle[r][i] = position[r] inv_freq[i]                         0 <= i < rotary_dim / 2
 *      y[r][h][a] = x[r][h][a] cos(angle[r][i]) - x[r][h][b] sin(angle[r][i])
 *      y[r][h][b] = x[r][h][b] cos(angle[r][i]) + x[r][h][a] sin(angle[r][i])
 *
 *  (a, b) are the elements of pair i.  Elements from rotary_dim on are copied.
 *
 *  - Accuracy: the position is rounded to fp32, and so is the product.  cos and sin of this angle
 *    are within 0.51 ulp of fp32.  The rotation is in fp32 and rounded once.  Both targets give
 *    equal bits.
 *  - Range: an angle beyond 2^31 in magnitude, infinite or NaN makes its pairs NaN.
 *  - rows = 0 or heads = 0 does nothing.
 *
 *  Not supported: different strides of x and y, and positions with several coordinates.
 *
 *  @param positions  device, rows integers of any sign; NULL = row number % period.
 *  @param inv_freq   device, rotary_dim / 2 floats, e.g. scaled for long contexts;
 *                    NULL = base^(-2i / rotary_dim), rounded to fp32.
 *  @param x          device, rows x heads x head_dim.
 *  @param y          device, with the layout of x, written; may be x.
 *  @param stats      host, optional: of y, in the backward pass.
 *  @source Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, 2021,
 *          section 3.2.2.
 *  @retval MP_ERROR_INVALID_ARGUMENT strides with which two elements share an address */
MP_API mp_status_t mp_rope(mp_context_t context, const mp_rope_desc_t *desc,
                           const int32_t *positions, const float *inv_freq, const void *x, void *y,
                           const mp_grad_stats_t *stats, mp_stream_t stream);

/** Elements of a row that a softmax includes. */
typedef enum mp_softmax_mask {
  MP_SOFTMAX_MASK_NONE = 0, /**< all */
  /** Row i includes columns 0 to i % mask_rows + columns - mask_rows: the last query sees all keys.
   *  With more queries than keys, the first mask_rows - columns of them see none. */
  MP_SOFTMAX_MASK_CAUSAL = 1,
  MP_SOFTMAX_MASK_LENGTHS = 2, /**< row i includes columns 0 to mask[i / mask_rows] - 1 */
  MP_SOFTMAX_MASK_ADDITIVE = 3 /**< all; row i % mask_rows of a matrix is added to row i */
} mp_softmax_mask_t;

/** Bits of mp_softmax_desc_t.flags. */
typedef enum mp_softmax_flags {
  MP_SOFTMAX_FLAG_LOG = 1 << 0 /**< y is the natural logarithm of the softmax */
} mp_softmax_flags_t;

/** Shape, types and mask of a softmax over the columns of each row. */
typedef struct mp_softmax_desc {
  uint32_t struct_size;
  mp_dtype_t dtype; /**< type of x, y, dy and dx */
  mp_softmax_mask_t mask;
  uint32_t flags;  /**< bitwise or of mp_softmax_flags_t */
  int64_t rows;    /**< >= 0 */
  int64_t columns; /**< >= 0 */
  int64_t ld_x;    /**< row stride of x and dx, >= columns */
  int64_t ld_y;    /**< row stride of y and dy, >= columns */
  float scale;     /**< factor of x, finite; e.g. 1 / sqrt(head_dim) */
  /** Type of the mask, used only with MP_SOFTMAX_MASK_ADDITIVE. */
  mp_dtype_t dtype_mask;
  /** >= 0; 0 = rows.  CAUSAL: queries of a matrix.  LENGTHS: consecutive rows with the same length.
   *  ADDITIVE: rows of the mask. */
  int64_t mask_rows;
  int64_t ld_mask; /**< >= columns, used only with MP_SOFTMAX_MASK_ADDITIVE */
} mp_softmax_desc_t;

/** Initializes a softmax of dense rows: scale = 1, no mask, dtype_mask = dtype, ld_mask = columns.
 */
MP_API mp_status_t mp_softmax_desc_init(mp_softmax_desc_t *desc, size_t struct_size, int64_t rows,
                                        int64_t columns, mp_dtype_t dtype);
static inline mp_softmax_desc_t mp_softmax_desc_default(int64_t rows, int64_t columns,
                                                        mp_dtype_t dtype) {
  mp_softmax_desc_t desc;
  mp_softmax_desc_init(&desc, sizeof desc, rows, columns, dtype);
  return desc;
}

/** Computes softmax or log-softmax of each row, in fp32 and rounded once:
 *
 *      s[j] = scale x[i][j] + mask[i % mask_rows][j]      the mask only if it is additive
 *      y[i][j] = exp(s[j]) / sum_k exp(s[k])              over the columns that the mask includes
 *
 *  - Excluded elements of x are not read; their y is 0, with MP_SOFTMAX_FLAG_LOG -infinity.
 *  - A row without an included element, or with -infinity in all of them, is 0 in every element;
 *    with MP_SOFTMAX_FLAG_LOG it is -infinity.
 *  - NaN or +infinity in an included element makes the included elements of the row NaN.
 *  - A length outside [0, columns] makes its rows NaN, so that the step is skipped.  The host
 *    cannot check lengths without waiting.
 *  - Determinism: the bits of a row depend on its values, the type, the number of columns and the
 *    mask, not on other rows, addresses or the size of the device.
 *
 *  With mp_gemm_batched, this is attention with stored scores, e.g. with a trained additive bias.
 *
 *  @param x     device, rows x columns.
 *  @param mask  device; LENGTHS: ceil(rows / mask_rows) int32; ADDITIVE: mask_rows x columns of
 *               desc->dtype_mask; otherwise ignored, and may be NULL.
 *  @param y     device, rows x columns, written; may be x (equal ld).  Must not overlap the mask.
 *  @source Vaswani et al., Attention Is All You Need, 2017, sections 3.2.1 and 3.2.3. */
MP_API mp_status_t mp_softmax_forward(mp_context_t context, const mp_softmax_desc_t *desc,
                                      const void *x, const void *mask, void *y, mp_stream_t stream);

/** Computes the gradient of mp_softmax_forward from its result, in fp32 and rounded once:
 *
 *      dx[i][j] = scale y[i][j] (dy[i][j] - sum_k dy[i][k] y[i][k])
 *      dx[i][j] = scale (dy[i][j] - exp(y[i][j]) sum_k dy[i][k])          MP_SOFTMAX_FLAG_LOG
 *
 *  - Excluded elements of dy are not read; their dx is 0.  dx is 0 also where y is 0, or -infinity
 *    with MP_SOFTMAX_FLAG_LOG, if dy is finite.
 *  - An additive mask is not read.  Its gradient is the sum of dx / scale over the repetitions:
 *    mp_sum_rows of dx with period = mask_rows if scale = 1.
 *
 *  @param y      device, rows x columns, as written by mp_softmax_forward.
 *  @param dy     device, rows x columns.
 *  @param mask   device, as in the forward pass; ADDITIVE: ignored, and may be NULL.
 *  @param dx     device, rows x columns, written; may be y or dy (equal ld).
 *  @param stats  host, optional: of dx. */
MP_API mp_status_t mp_softmax_backward(mp_context_t context, const mp_softmax_desc_t *desc,
                                       const void *y, const void *dy, const void *mask, void *dx,
                                       const mp_grad_stats_t *stats, mp_stream_t stream);

/** @} */

MP_END_C

#endif /* MPCORE_SEQUENCES_H */
