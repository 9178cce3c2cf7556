/* mpcore/attention.h: scaled dot-product attention. */
#ifndef MPCORE_ATTENTION_H
#define MPCORE_ATTENTION_H

#include "core.h"

MP_BEGIN_C

/** @defgroup attention 12. Attention
 *
 *  Scaled dot-product attention of one or more heads, and its gradients.  Scores are never stored.
 *  For query i and key j of a sequence, with T = round(256 dropout):
 *
 *      s[i][j] = scale sum_e q[i][e] k[j][e]
 *      lse[i] = ln(sum_j exp(s[i][j]) [+ exp(sink)])     p[i][j] = exp(s[i][j] - lse[i])
 *      keep[i][j] = mask[i][j] / (1 - T / 256)           o[i] = sum_j p[i][j] keep[i][j] v[j]
 *
 *      D[i] = sum_c d_o[i][c] o[i][c]
 *      ds[i][j] = p[i][j] (keep[i][j] sum_c d_o[i][c] v[j][c] - D[i])
 *      dv[j] = sum_i p[i][j] keep[i][j] d_o[i]
 *      dq[i] = scale sum_j ds[i][j] k[j]                 dk[j] = scale sum_i ds[i][j] q[i]
 *      dsink = -sum_i exp(sink - lse[i]) D[i]
 *
 *  - Heads: desc->heads query heads share desc->kv_heads heads of k and v; query head h reads head
 *    h / (heads / kv_heads).  dk and dv are sums over the query heads of their head.
 *  - Sequences are padded or packed.  In the padded form, sequence b has q_len rows of q and kv_len
 *    rows of k and v, of which tensors->q_lengths[b] and kv_lengths[b] are valid.  In the packed
 *    form, the rows of all sequences are adjacent, and tensors->q_ends[b] and kv_ends[b] are the
 *    rows after the last row of sequence b (without the leading 0 of cu_seqlens).
 *  - Masks: all keys of the sequence are visible, except with MP_ATTENTION_FLAG_CAUSAL and
 *    MP_ATTENTION_FLAG_WINDOW.  The diagonal of query i is key i + (keys - queries) of its
 *    sequence, so the last query and the last key are aligned (bottom right).
 *  - Queries without a visible key have o = 0, lse = -infinity and zero gradients, with sinks too.
 *    So do rows past the valid length, and packed rows past the last end; dk and dv of keys that
 *    no query sees are 0.
 *  - Precision: scores, maximum, sums, lse and D are fp32.  exp(s - maximum) in the forward pass,
 *    and p and ds in the backward pass, are rounded to desc->dtype as operands of the products
 *    with v, d_o, q and k; the sum in lse uses the unrounded values.
 *  - Dropout stores nothing: the mask is a function of seed, offset, sequence, head, i and j.
 *    Score (i, j) is dropped if its byte of Philox 4x32-7 is less than T.  The key is dropout_seed
 *    + *dropout_offset x 0x9E3779B97F4A7C15.  The counter, low words first, is 4 (i / 16) + (i mod
 *    8) / 2, 4 (j / 16) + (j mod 8) / 2, b heads + h, 0x6D704154.  The byte is 2 ((j mod 16) / 8) +
 *    j mod 2 of word 2 ((i mod 16) / 8) + i mod 2.
 *  - NaN and infinity never cross a sequence.  Within a sequence, a NaN in v[j] reaches all queries
 *    that see key j, and may reach other queries of the sequence.  A query whose visible scores are
 *    all -infinity becomes NaN.
 *  - Invalid lengths: the host cannot check device memory without waiting.  A length outside [0,
 *    q_len] or [0, kv_len] makes all outputs of its sequence NaN, so that the step is skipped, in
 *    the packed form too.  An end below its predecessor counts as equal to it, an end past q_rows
 *    or kv_rows as q_rows or kv_rows.  Nothing is accessed outside the tensors.
 *  - Determinism: no output bit depends on the number of SMs.  No output bit depends on the batch
 *    size, other sequences, padding or packing, except the gradient of sinks, which is a sum over
 *    all sequences.  A row of o and lse does not depend on other queries.  The kernel, and with it
 *    the order of sums, is selected by type, head dimensions, device, and whether all rows are
 *    16-byte aligned.
 *
 *  Not supported: decoding with paged or appended keys, additive biases, ALiBi, soft-capped scores.
 *
 *  @source Vaswani et al., Attention Is All You Need, 2017, section 3.2; Dao, FlashAttention-2,
 *  2023, section 3.1 (both passes without stored scores); Ainslie et al., GQA, 2023 (shared heads);
 *  Beltagy et al., Longformer, 2020, section 3.1 (windows); Xiao et al., Efficient Streaming
 *  Language Models with Attention Sinks, 2023 (sinks); Salmon et al., Parallel Random Numbers,
 *  2011 (dropout).
 *  @{ */

/** Bits of mp_attention_desc_t.flags. */
typedef enum mp_attention_flags {
  MP_ATTENTION_FLAG_CAUSAL = 1 << 0, /**< masks the keys after the diagonal */
  MP_ATTENTION_FLAG_WINDOW = 1 << 1  /**< applies window_left and window_right */
} mp_attention_flags_t;

/** Strides of a tensor of rows and heads, in elements, >= 0.  The elements of a head are adjacent.
 *
 *  0 = dense: `head` is the head dimension, `row` the number of heads x `head`, `batch` q_len or
 *  kv_len x `row`.  Rows and heads must not overlap.
 *
 *  Frozen: part of mp_attention_desc_t. */
typedef struct mp_attention_layout {
  int64_t batch; /**< distance between sequences; read only in the padded form */
  int64_t row;   /**< distance between rows */
  int64_t head;  /**< distance between heads */
} mp_attention_layout_t;

/** Shape, masks and layouts of an attention. */
typedef struct mp_attention_desc {
  uint32_t struct_size;
  mp_dtype_t dtype;     /**< type of q, k, v, o and their gradients */
  int32_t batch;        /**< sequences, >= 0 */
  int32_t heads;        /**< heads of q and o, >= 1; batch x heads is less than 2^31 */
  int32_t kv_heads;     /**< heads of k and v, >= 1; divides heads */
  int32_t head_dim;     /**< elements of a head of q and k, 1 to 256 */
  int32_t head_dim_v;   /**< elements of a head of v and o, up to 256; 0 = head_dim */
  float dropout;        /**< in [0, 1); rounded to a multiple of 1/256, which must be below 1 */
  int64_t q_len;        /**< rows of q and o per sequence, up to 2^30; packed: the largest number */
  int64_t kv_len;       /**< rows of k and v per sequence, likewise */
  int64_t q_rows;       /**< packed: rows of q and o, less than 2^31; 0 = padded form */
  int64_t kv_rows;      /**< packed: rows of k and v, less than 2^31; 0 = padded form */
  float scale;          /**< factor of the scores, >= 0; 0 = 1 / sqrt(head_dim) */
  uint32_t flags;       /**< bitwise or of mp_attention_flags_t; 0 = all keys are visible */
  int32_t window_left;  /**< visible keys before the diagonal, >= -1; -1 = all.  Read only with
                            MP_ATTENTION_FLAG_WINDOW */
  int32_t window_right; /**< visible keys after the diagonal, likewise; 0 if causal */
  uint64_t dropout_seed;   /**< any value; calls with equal seed and offset have equal masks */
  mp_attention_layout_t q; /**< strides of q and dq */
  mp_attention_layout_t k; /**< strides of k and dk */
  mp_attention_layout_t v; /**< strides of v and dv */
  mp_attention_layout_t o; /**< strides of o and d_o */
} mp_attention_desc_t;

/** Initializes an attention of dense padded sequences: kv_heads = heads, head_dim_v = head_dim, no
 *  dropout, scale = 1 / sqrt(head_dim), all keys visible, windows of -1. */
MP_API mp_status_t mp_attention_desc_init(mp_attention_desc_t *desc, size_t struct_size,
                                          int32_t batch, int32_t heads, int64_t q_len,
                                          int64_t kv_len, int32_t head_dim, mp_dtype_t dtype);
static inline mp_attention_desc_t mp_attention_desc_default(int32_t batch, int32_t heads,
                                                            int64_t q_len, int64_t kv_len,
                                                            int32_t head_dim, mp_dtype_t dtype) {
  mp_attention_desc_t desc;
  mp_attention_desc_init(&desc, sizeof desc, batch, heads, q_len, kv_len, head_dim, dtype);
  return desc;
}

/** Tensors of an attention, device.  Initialize with MP_INIT_STRUCT.
 *
 *  q, k and v, or dq, dk and dv, may be parts of one matrix of packed QKV.  In the descriptor,
 *  q.row = k.row = v.row = (heads + 2 kv_heads) head_dim; k and v point heads x head_dim and
 *  (heads + kv_heads) head_dim elements after q. */
typedef struct mp_attention_tensors {
  uint32_t struct_size;
  uint32_t reserved0;             /**< must be 0 */
  const int32_t *q_ends;          /**< batch integers; packed form only */
  const int32_t *kv_ends;         /**< batch integers; packed form only */
  const int32_t *q_lengths;       /**< batch integers; padded form only, NULL = q_len */
  const int32_t *kv_lengths;      /**< batch integers; padded form only, NULL = kv_len */
  const uint64_t *dropout_offset; /**< 1 integer; NULL = 0.  See mp_dropout */
  const float *sinks;             /**< heads floats, optional: logits without a value */
  const void *q;                  /**< rows x heads x head_dim */
  const void *k;                  /**< rows x kv_heads x head_dim */
  const void *v;                  /**< rows x kv_heads x head_dim_v */
  const void *d_o;                /**< gradient of o; read by the backward pass */
  void *o;                        /**< rows x heads x head_dim_v; read by the backward pass */
  void *dq;                       /**< gradients, written by the backward pass */
  void *dk;
  void *dv;
  /** Padded: batch x heads x q_len floats; packed: heads x q_rows.  The forward pass writes it if
   *  it is not NULL; the backward pass reads it. */
  float *lse;
  float *dsinks;         /**< heads floats, optional, written by the backward pass; needs sinks */
  mp_grad_stats_t stats; /**< backward pass: statistics of dq, dk and dv */
} mp_attention_tensors_t;

/** Computes o and lse.  Needs no workspace.
 *
 *  @param tensors  host: reads q, k, v and sinks, writes o and lse; sinks and lse are optional.
 *                  Outputs must not overlap each other or inputs. */
MP_API mp_status_t mp_attention_forward(mp_context_t context, const mp_attention_desc_t *desc,
                                        const mp_attention_tensors_t *tensors, mp_stream_t stream);

/** Returns the workspace size that mp_attention_backward requires: 4 bytes per element of lse.
 *  @param bytes  host, out. */
MP_API mp_status_t mp_attention_backward_workspace_size(mp_context_t context,
                                                        const mp_attention_desc_t *desc,
                                                        size_t *bytes);

/** Computes dq, dk, dv and dsinks, from the same descriptor, lengths and dropout_offset as the
 *  forward pass.
 *
 *  Gradients are overwritten.  The sums over keys and queries are fp32, in a fixed order.
 *
 *  @param tensors  host: reads q, k, v, o, lse, d_o and sinks, writes dq, dk, dv and dsinks.
 *                  Outputs must not overlap each other or inputs. */
MP_API mp_status_t mp_attention_backward(mp_context_t context, const mp_attention_desc_t *desc,
                                         const mp_attention_tensors_t *tensors, void *workspace,
                                         size_t workspace_bytes, mp_stream_t stream);

/** @} */

MP_END_C

#endif /* MPCORE_ATTENTION_H */
