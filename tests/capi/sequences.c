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

INIT(init_embedding, mp_embedding_desc_t, embedding_desc())
CALL_OF(call_forward, mp_embedding_forward(context, s, at(kTable), at(kIndices), at(kOut), NULL))
static mp_status_t call_backward(void *s) {
  const mp_grad_stats_t stats = {at(kFoundInf), at(kAmax)};
  return mp_embedding_backward(context, s, at(kIndices), at(kDout), at(kDtable), &stats, workspace,
                               workspace_bytes, NULL);
}
static mp_status_t call_size(void *s) {
  size_t bytes = 1;
  const mp_status_t status = mp_embedding_workspace_size(context, s, &bytes);
  check((status != MP_SUCCESS) == (bytes == 1), "a failing call does not write the bytes");
  return status;
}

#define EMBEDDING_FIELD(field, member, v) \
  FIELD(mp_embedding_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_embedding_desc(void) {
  const struct field_case fields[] = {
      EMBEDDING_FIELD(dtype, i, MP_DTYPE_NONE),
      EMBEDDING_FIELD(dtype, i, MP_INT32),
      EMBEDDING_FIELD(dtype_dtable, i, MP_DTYPE_NONE),
      EMBEDDING_FIELD(dtype_dtable, i, MP_INT64),
      EMBEDDING_FIELD(dtype_indices, i, MP_DTYPE_NONE),
      EMBEDDING_FIELD(dtype_indices, i, MP_FP32),
      EMBEDDING_FIELD(dtype_indices, i, MP_INT64 + 1),
      EMBEDDING_FIELD(flags, i, 4),
      EMBEDDING_FIELD(flags, i, MP_EMBEDDING_FLAG_ACCUMULATE | 1u << 31),
      EMBEDDING_FIELD(num_indices, i, -1),
      EMBEDDING_FIELD(num_indices, i, (int64_t)1 << 31),
      EMBEDDING_FIELD(num_indices, i, INT64_MAX),
      EMBEDDING_FIELD(num_embeddings, i, 0),
      EMBEDDING_FIELD(num_embeddings, i, -5),
      EMBEDDING_FIELD(embedding_dim, i, 0),
      EMBEDDING_FIELD(embedding_dim, i, -8),
      EMBEDDING_FIELD(embedding_dim, i, INT64_MAX / 8),
      EMBEDDING_FIELD(embedding_dim, i, INT64_MAX),
      EMBEDDING_FIELD(ld_table, i, 7),
      EMBEDDING_FIELD(ld_table, i, -8),
      EMBEDDING_FIELD(ld_table, i, INT64_MAX / 8),
      EMBEDDING_FIELD(ld_table, i, INT64_MAX),
      EMBEDDING_FIELD(ld_out, i, 7),
      EMBEDDING_FIELD(ld_out, i, INT64_MAX / 8),
      EMBEDDING_FIELD(ld_dtable, i, 7),
      EMBEDDING_FIELD(ld_dtable, i, INT64_MAX / 8),
  };
  const struct subject subjects[] = {
      {"mp_embedding_forward", "desc", sizeof(mp_embedding_desc_t), init_embedding, call_forward},
      {"mp_embedding_backward", "desc", sizeof(mp_embedding_desc_t), init_embedding, call_backward},
      {"mp_embedding_workspace_size", "desc", sizeof(mp_embedding_desc_t), init_embedding,
       call_size},
  };
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
    CHECK_STRUCT(&subjects[i], fields);
  }

  const int64_t outside[] = {-1, kVocabulary, INT32_MAX, (int64_t)1 << 32};
  for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
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
  FAILS(mp_embedding_backward, (context, &other, NULL, NULL, NULL, NULL, NULL, 0, NULL),
        MP_ERROR_INVALID_ARGUMENT, "dtable");
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
INIT(init_dropout, mp_dropout_desc_t, dropout_desc())
CALL_OF(call_dropout, mp_dropout(context, s, at(kOffset), at(kX), at(kY), NULL, NULL))

#define DROPOUT_FIELD(field, member, v) \
  FIELD(mp_dropout_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_dropout(void) {
  const struct field_case fields[] = {
      DROPOUT_FIELD(dtype, i, MP_DTYPE_NONE),
      DROPOUT_FIELD(dtype, i, MP_INT32),
      DROPOUT_FIELD(count, i, -1),
      DROPOUT_FIELD(count, i, INT64_MAX),
      DROPOUT_FIELD(p, f, -0.125f),
      DROPOUT_FIELD(p, f, 1),
      DROPOUT_FIELD(p, f, NAN),
      DROPOUT_FIELD(p, f, INFINITY),
      DROPOUT_FIELD(reserved0, i, 1),
  };
  const struct subject subject = {"mp_dropout", "desc", sizeof(mp_dropout_desc_t), init_dropout,
                                  call_dropout};
  CHECK_STRUCT(&subject, fields);

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
