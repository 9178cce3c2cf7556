/* mpcore/sequences.h: what stands around layers of sequences. */
#ifndef MPCORE_SEQUENCES_H
#define MPCORE_SEQUENCES_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup sequences 15. Around sequences: embeddings and dropout
 *  @{ */

/** Bits of mp_embedding_desc_t.flags. */
typedef enum mp_embedding_flags {
  /** The gradient of row `padding_index` is 0, whatever dout is where that index stands; forward the
   *  row is one like any other.  As in torch. */
  MP_EMBEDDING_PADDING = 1 << 0,
  /** The gradient is added to what is there: micro-batches, or a table that is used twice.
   *  dtype_dtable = MP_FP32 loses nothing on the way. */
  MP_EMBEDDING_ACCUMULATE = 1 << 1
} mp_embedding_flags_t;

/** A table of vectors, and how many of them are looked up. */
typedef struct mp_embedding_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;        /**< of table, out and dout */
  mp_dtype_t dtype_dtable; /**< of the gradient */
  uint32_t flags;          /**< mp_embedding_flags_t, or-ed */
  int64_t rows;            /**< of out and dout, one for each index; 0 to 2^31 - 1 */
  int32_t vocabulary;      /**< rows of table and dtable, >= 1 */
  int32_t padding_index;   /**< in [0, vocabulary); without its flag it is not looked at */
  int64_t width;           /**< elements of a row, >= 1 */
  int64_t ld_table;        /**< >= width, as the two below */
  int64_t ld_out;          /**< of out and of dout */
  int64_t ld_dtable;
} mp_embedding_desc_t;

/** Dense rows, no flags; dtype_dtable = dtype. */
MP_API mp_status_t mp_embedding_desc_init(mp_embedding_desc_t *desc, size_t struct_size,
                                          int64_t rows, int32_t vocabulary, int64_t width,
                                          mp_dtype_t dtype);
static inline mp_embedding_desc_t mp_embedding_desc_default(int64_t rows, int32_t vocabulary,
                                                            int64_t width, mp_dtype_t dtype) {
  mp_embedding_desc_t desc;
  mp_embedding_desc_init(&desc, sizeof desc, rows, vocabulary, width, dtype);
  return desc;
}

/** out[i] = table[indices[i]].
 *
 *  An index outside [0, vocabulary) reads nothing and makes its row NaN, so that the step is skipped
 *  and the mistake shows; the host cannot check indices without waiting.
 *
 *  @param table    device, vocabulary x width.
 *  @param indices  device, rows integers.
 *  @param out      device, rows x width, written; must not overlap table. */
MP_API mp_status_t mp_embedding_forward(mp_context_t context, const mp_embedding_desc_t *desc,
                                        const void *table, const int32_t *indices, void *out,
                                        mp_stream_t stream);

/** Bytes of workspace that backward needs: for each row 17 + width / 8, for each row of the table 4, and
 *  less than 128 KiB + 8 width beside that; 0 for no rows.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_embedding_workspace_size(mp_context_t context,
                                               const mp_embedding_desc_t *desc, size_t *bytes);

/** dtable[v] = sum of dout[i] over all i with indices[i] = v; 0 where there is none.
 *
 *  Summed in fp32 and in a fixed order, and rounded once; with MP_EMBEDDING_ACCUMULATE what was there
 *  is the last summand.  The order is that of i, by stretches of 64 rows with the same index whose
 *  sums are combined where there are more.  So the bits of a row of dtable depend on the rows of dout
 *  that belong to it, on their order and on width; not on other indices, nor on the device.
 *
 *  Indices outside [0, vocabulary) add to nothing.  A NaN in dout reaches one row of dtable.
 *
 *  @param indices    device, rows integers.
 *  @param dout       device, rows x width.
 *  @param dtable     device, vocabulary x width, every element written; with MP_EMBEDDING_ACCUMULATE
 *                    the rows that an index has, except that of the padding.
 *  @param found_inf  device, 1 float, optional: set to 1 and never cleared, see mp_epilogue_t.
 *  @param amax       device, 1 float, optional, updated: of what is written to dtable, once it is
 *                    rounded.
 *  @param workspace  device, 256-byte aligned; mp_embedding_workspace_size bytes.
 *  @retval MP_ERROR_WORKSPACE_TOO_SMALL workspace_bytes is less than is needed */
MP_API mp_status_t mp_embedding_backward(mp_context_t context, const mp_embedding_desc_t *desc,
                                         const int32_t *indices, const void *dout, void *dtable,
                                         float *found_inf, float *amax, void *workspace,
                                         size_t workspace_bytes, mp_stream_t stream);

/** Which elements are dropped, and of how many. */
typedef struct mp_dropout_desc {
  uint32_t struct_size;
  mp_dtype_t dtype; /**< of x and y */
  int64_t count;    /**< elements, >= 0 */
  uint64_t seed; /**< any number; another one for every tensor that is to have a mask of its own */
  float p;       /**< [0, 1): of the elements that become 0; the others are divided by 1 - p */
  uint32_t reserved0; /**< must be 0 */
} mp_dropout_desc_t;

/** Without a seed: 0. */
MP_API mp_status_t mp_dropout_desc_init(mp_dropout_desc_t *desc, size_t struct_size, int64_t count,
                                        float p, mp_dtype_t dtype);
static inline mp_dropout_desc_t mp_dropout_desc_default(int64_t count, float p, mp_dtype_t dtype) {
  mp_dropout_desc_t desc;
  mp_dropout_desc_init(&desc, sizeof desc, count, p, dtype);
  return desc;
}

/** Forward and backward: y = x mask / (1 - p), where the mask is 0 with probability p and otherwise 1.
 *
 *  The mask is stored nowhere.  It follows from seed, offset and the place of an element, so a second
 *  call with dy in place of x gives dx.  Element i is dropped where word i % 4 of Philox 4x32-10 is
 *  less than 2^32 p, rounded down; its key is the seed, and its counter, low words first, is i / 4
 *  (1 word), the offset (2), and i / 4 / 2^32 (1).  mp_rnn_* draw other words, with the same seed too.
 *
 *  A dropped element is 0, NaN or not.  The others are multiplied with 1 / (1 - p) in fp32 and rounded
 *  once.  With p = 0, y is x.
 *
 *  @param offset  device, 1 integer, optional, 0 if absent: other masks for every value.  Without it
 *                 every step has the same mask: training gives a counter on the device, such as
 *                 mp_optimizer_step_counter, which a replayed graph reads too.  Forward and
 *                 backward of a step need the same.
 *  @param x       device, count elements.
 *  @param y       device, as many, written; may be x.
 *  @source Srivastava et al., Dropout, 2014; Salmon et al., Parallel Random Numbers, 2011. */
MP_API mp_status_t mp_dropout(mp_context_t context, const mp_dropout_desc_t *desc,
                              const uint64_t *offset, const void *x, void *y, mp_stream_t stream);

/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MPCORE_SEQUENCES_H */
