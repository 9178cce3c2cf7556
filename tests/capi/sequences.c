/* mpcore/sequences.h: embeddings of 5 words, 6 rows of 8 fp16 elements; dropout of 100. */
#include <math.h>
#include <stdio.h>

#include "harness.h"

enum { kRows = 6, kVocabulary = 5, kWidth = 8 };

/* Offsets. */
enum { kTable = 0, kIndices = 256, kOut = 512, kDout = 1024, kDtable = 1536, kFoundInf = 2048 };
enum { kAmax = 2304, kX = 2560, kY = 3072, kOffset = 3584 };

/** Scratch memory; larger than the arena, and its contents are not checked. */
static void *workspace;
static size_t workspace_bytes;

static mp_embedding_desc_t embedding_desc(void) {
  return mp_embedding_desc_default(kRows, kVocabulary, kWidth, MP_FP16);
}

/* ---------------------------------------------------------------- descriptors */

CALL_OF(call_forward, mp_embedding_forward(context, s, at(kTable), at(kIndices), at(kOut), NULL))
static mp_status_t call_backward(void *s) {
  const mp_grad_stats_t stats = {at(kFoundInf), at(kAmax)};
  return mp_embedding_backward(context, s, at(kIndices), at(kDout), at(kDtable), &stats, workspace,
                               workspace_bytes, NULL);
}
CALL_OF(call_size, mp_embedding_workspace_size(context, s, &out.bytes))

static void test_embedding_desc(void) {
  const struct field_case fields[] = {
      INTS(mp_embedding_desc_t, dtype, MP_DTYPE_NONE, MP_INT32),
      INTS(mp_embedding_desc_t, dtype_dtable, MP_DTYPE_NONE, MP_INT64),
      INTS(mp_embedding_desc_t, dtype_indices, MP_DTYPE_NONE, MP_FP32, MP_INT64 + 1),
      INTS(mp_embedding_desc_t, flags, 4, MP_EMBEDDING_FLAG_ACCUMULATE | 1u << 31),
      INTS(mp_embedding_desc_t, num_indices, -1, (int64_t)1 << 31, INT64_MAX),
      INTS(mp_embedding_desc_t, num_embeddings, 0, -5),
      INTS(mp_embedding_desc_t, embedding_dim, 0, -8, INT64_MAX / 8, INT64_MAX),
      INTS(mp_embedding_desc_t, ld_table, 7, -8, INT64_MAX / 8, INT64_MAX),
      INTS(mp_embedding_desc_t, ld_out, 7, INT64_MAX / 8),
      INTS(mp_embedding_desc_t, ld_dtable, 7, INT64_MAX / 8),
  };
  const mp_embedding_desc_t initial = embedding_desc();
  CHECK_STRUCT("mp_embedding_forward", "desc", initial, call_forward, fields);
  CHECK_STRUCT("mp_embedding_backward", "desc", initial, call_backward, fields);
  CHECK_STRUCT("mp_embedding_workspace_size", "desc", initial, call_size, fields);

  const int64_t outside[] = {-1, kVocabulary, INT32_MAX, (int64_t)1 << 32};
  for (size_t i = 0; i < COUNT(outside); i++) {
    mp_embedding_desc_t d = embedding_desc();
    d.padding_index = outside[i];
    check_success("padding_index without its flag", call_backward(&d));
    d.flags = MP_EMBEDDING_FLAG_PADDING;
    check_failure("padding_index", "mp_embedding_forward", call_forward(&d),
                  MP_ERROR_INVALID_ARGUMENT, "padding_index");
    check_failure("padding_index", "mp_embedding_backward", call_backward(&d),
                  MP_ERROR_INVALID_ARGUMENT, "padding_index");
  }
  mp_embedding_desc_t d = embedding_desc();
  d.padding_index = kVocabulary - 1;
  d.flags = MP_EMBEDDING_FLAG_PADDING | MP_EMBEDDING_FLAG_ACCUMULATE;
  check_success("the last word is the padding", call_backward(&d));
}

/* ---------------------------------------------------------------- pointers */

static void test_no_indices(void) {
  mp_embedding_desc_t none = embedding_desc();
  none.num_indices = 0;
  WORKS(mp_embedding_forward(context, &none, NULL, NULL, NULL, NULL));
}

struct arguments {
  const void *indices, *dout;
  void *dtable, *found_inf, *amax, *workspace;
};

static mp_status_t backward_of(const mp_embedding_desc_t *d, const struct arguments *a) {
  const mp_grad_stats_t stats = {a->found_inf, a->amax};
  return mp_embedding_backward(context, d, a->indices, a->dout, a->dtable, &stats, a->workspace,
                               workspace_bytes, NULL);
}

static void test_alignment(void) {
  const mp_embedding_desc_t d = embedding_desc();
  const struct arguments good = {at(kIndices),  at(kDout), at(kDtable),
                                 at(kFoundInf), at(kAmax), workspace};
  mp_embedding_desc_t other = d;
  other.dtype_dtable = MP_FP32;
  struct arguments a = good;
  a.dtable = at(kDtable + 2);
  check_failure("2-byte aligned fp32", "mp_embedding_backward", backward_of(&other, &a),
                MP_ERROR_MISALIGNED, "dtable");
  other = d;
  other.dtype_indices = MP_INT64;
  a = good;
  a.indices = at(kIndices + 4);
  check_failure("4-byte aligned int64", "mp_embedding_backward", backward_of(&other, &a),
                MP_ERROR_MISALIGNED, "indices");
  other = d;
  other.num_indices = 0;
  WORKS(mp_embedding_backward(context, &other, NULL, NULL, at(kDtable), NULL, NULL, 0, NULL));
  INVALID(mp_embedding_backward, (context, &other, NULL, NULL, NULL, NULL, NULL, 0, NULL),
          "dtable");
}

static void test_bytes(void) {
  const mp_embedding_desc_t d = embedding_desc();
  char sentence[96];
  size_t bytes = 0;
  WORKS(mp_embedding_workspace_size(context, &d, &bytes));
  check(bytes == workspace_bytes, "the workspace has the required bytes");
  snprintf(sentence, sizeof sentence, "workspace_bytes = %lu must be at least %lu",
           (unsigned long)bytes - 1, (unsigned long)bytes);
  FAILS(mp_embedding_backward,
        (context, &d, at(kIndices), at(kDout), at(kDtable), NULL, workspace, bytes - 1, NULL),
        MP_ERROR_WORKSPACE_TOO_SMALL, sentence);
}

/* ---------------------------------------------------------------- dropout */

static mp_dropout_desc_t dropout_desc(void) {
  return mp_dropout_desc_default(100, 0.5f, MP_FP16);
}
CALL_OF(call_dropout, mp_dropout(context, s, at(kOffset), at(kX), at(kY), NULL, NULL))

static void test_dropout(void) {
  const struct field_case fields[] = {
      INTS(mp_dropout_desc_t, dtype, MP_DTYPE_NONE, MP_INT32),
      INTS(mp_dropout_desc_t, count, -1, INT64_MAX),
      REALS(mp_dropout_desc_t, p, -0.125, 1, NAN, INFINITY),
      INTS(mp_dropout_desc_t, reserved0, 1),
  };
  const mp_dropout_desc_t initial = dropout_desc();
  CHECK_STRUCT("mp_dropout", "desc", initial, call_dropout, fields);

  mp_dropout_desc_t d = dropout_desc();
  WORKS(mp_dropout(context, &d, NULL, at(kX), at(kX), NULL, NULL));
  d.count = 0;
  WORKS(mp_dropout(context, &d, NULL, NULL, NULL, NULL, NULL));
}

void test_sequences(void) {
  const mp_embedding_desc_t d = embedding_desc();
  WORKS(mp_embedding_workspace_size(context, &d, &workspace_bytes));
  WORKS(mp_malloc(context, &workspace, workspace_bytes));
  test_embedding_desc();
  test_no_indices();
  test_alignment();
  test_bytes();
  test_dropout();
  mp_free(context, workspace);
}
