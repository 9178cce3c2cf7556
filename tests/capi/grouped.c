/* mpcore/gemm.h: groups of products.  Item 0 is 4 x 16 x 8, item 1 is 8 x 16 x 8, all fp16, dense;
 * each matrix has 512 bytes of the arena. */
#define MP_ENABLE_EXPERIMENTAL
#include <stdio.h>

#include "harness.h"

enum { kA = 0, kB = 1024, kC = 2048, kD = 3072, kExtra = 4096, kWorkspace = 8192, kItem = 512 };

static mp_gemm_desc_t good_desc(void) {
  return mp_gemm_desc_default(0, 0, 0, MP_FP16, MP_FP16);
}

static mp_gemm_group_item_t good_item(int index) {
  const size_t offset = (size_t)index * kItem;
  mp_gemm_group_item_t i = mp_gemm_group_item_default(4 + 4 * index, 16, 8);
  i.A = at(kA + offset);
  i.B = at(kB + offset);
  i.C = at(kC + offset);
  i.D = at(kD + offset);
  return i;
}

static mp_status_t grouped(const mp_gemm_desc_t *d, int32_t count,
                           const mp_gemm_group_item_t *items) {
  return mp_gemm_grouped(context, d, count, items, NULL, NULL, 0, NULL);
}

/* ---------------------------------------------------------------- the defaults */

static void test_group_defaults(void) {
  const mp_gemm_desc_t d = good_desc();
  check(d.m == 0 && d.n == 0 && d.k == 0 && d.ld_a == 0 && d.ld_b == 0 && d.ld_c == 0 &&
            d.ld_d == 0 && d.alpha == 1.0f && d.batch_count == 1,
        "mp_gemm_desc_default of an empty product is a group's descriptor");
  const mp_gemm_group_item_t i = mp_gemm_group_item_default(2, 3, 5);
  check(i.struct_size == sizeof i && i.m == 2 && i.n == 3 && i.k == 5 && i.ld_a == 5 &&
            i.ld_b == 3 && i.ld_c == 3 && i.ld_d == 3 && i.A == NULL && i.B == NULL &&
            i.C == NULL && i.D == NULL,
        "mp_gemm_group_item_default is dense");
}

/* ---------------------------------------------------------------- descriptor */

static mp_status_t call_grouped(void *s) {
  const mp_gemm_group_item_t items[2] = {good_item(0), good_item(1)};
  return grouped(s, 2, items);
}

static mp_status_t call_workspace_size(void *s) {
  const mp_gemm_group_item_t items[2] = {good_item(0), good_item(1)};
  return mp_gemm_grouped_workspace_size(context, s, 2, items, NULL, &out.bytes);
}

static void check_desc(const char *function, mp_status_t (*call)(void *)) {
  const struct field_case fields[] = {
      INTS(mp_gemm_desc_t, op_a, 0),
      INTS(mp_gemm_desc_t, op_b, -1),
      INTS(mp_gemm_desc_t, dtype_ab, MP_DTYPE_NONE),
      INTS(mp_gemm_desc_t, dtype_cd, invalid_dtype()),
      INTS(mp_gemm_desc_t, batch_count, 0, 2),
      INTS(mp_gemm_desc_t, m, 4),
      INTS(mp_gemm_desc_t, n, 16),
      INTS(mp_gemm_desc_t, k, -8),
      INTS(mp_gemm_desc_t, ld_a, 8),
      INTS(mp_gemm_desc_t, ld_b, 16),
      INTS(mp_gemm_desc_t, ld_c, 16),
      INTS(mp_gemm_desc_t, ld_d, 16),
      INTS(mp_gemm_desc_t, stride_a, 1),
      INTS(mp_gemm_desc_t, stride_b, 1),
      INTS(mp_gemm_desc_t, stride_c, 1),
      INTS(mp_gemm_desc_t, stride_d, -1),
      FIELD(mp_gemm_desc_t, plan, pointers, MP_ERROR_NOT_FOUND, named_plan("abacus")),
  };
  const mp_gemm_desc_t initial = good_desc();
  CHECK_STRUCT(function, "desc", initial, call, fields);
}

/* ---------------------------------------------------------------- items */

CALL_OF(call_item, grouped(REF(mp_gemm_desc_t, good_desc()), 1, s))

static mp_status_t call_item_transposed(void *s) {
  mp_gemm_desc_t d = good_desc();
  d.op_a = d.op_b = MP_OP_T;
  return grouped(&d, 1, s);
}

CALL_OF(call_item_workspace_size,
        mp_gemm_grouped_workspace_size(context, REF(mp_gemm_desc_t, good_desc()), 1, s, NULL,
                                       &out.bytes))

static mp_gemm_group_item_t good_transposed_item(void) {
  mp_gemm_group_item_t i = good_item(0);
  i.ld_a = i.m;
  i.ld_b = i.k;
  return i;
}

static void check_item(const char *function, mp_status_t (*call)(void *)) {
  const struct field_case fields[] = {
      INTS(mp_gemm_group_item_t, reserved0, 1),
      INTS(mp_gemm_group_item_t, m, -1),
      INTS(mp_gemm_group_item_t, n, -1),
      INTS(mp_gemm_group_item_t, k, -1),
      INTS(mp_gemm_group_item_t, ld_a, 7, INT64_MAX),
      INTS(mp_gemm_group_item_t, ld_b, 15),
      INTS(mp_gemm_group_item_t, ld_c, 15),
      INTS(mp_gemm_group_item_t, ld_d, 0, INT64_MAX / 4),
  };
  const mp_gemm_group_item_t initial = good_item(0);
  CHECK_STRUCT(function, "items[0]", initial, call, fields);
}

static void test_item_data(void) {
  const mp_gemm_group_item_t initial = good_item(0);
  CHECK_FIELD("mp_gemm_grouped", "items[0]", initial, call_item,
              FIELD(mp_gemm_group_item_t, C, pointers, MP_ERROR_MISALIGNED, at(1)));

  const struct field_case transposed_fields[] = {
      INTS(mp_gemm_group_item_t, ld_a, 3),
      INTS(mp_gemm_group_item_t, ld_b, 7),
  };
  const mp_gemm_group_item_t initial_transposed_item = good_transposed_item();
  CHECK_FIELDS("mp_gemm_grouped", "items[0] (transposed)", initial_transposed_item,
               call_item_transposed, transposed_fields);
}

/** Checks the complete message; nothing was written, so item 0 was not launched either. */
static void check_sentence(const char *sentence, const mp_gemm_desc_t *d, int32_t count,
                           const mp_gemm_group_item_t *items, mp_status_t want) {
  check_failure(sentence, "mp_gemm_grouped", grouped(d, count, items), want,
                strncmp(sentence, "mp_gemm_grouped: items[1]", 25) == 0 ? "items[1]" : "items");
  check(strcmp(mp_last_error(), sentence) == 0, sentence);
}

static void test_sentences(void) {
  mp_gemm_desc_t d = good_desc();
  mp_gemm_group_item_t items[2] = {good_item(0), good_item(1)};
  items[1].ld_a = 6;
  check_sentence("mp_gemm_grouped: items[1].ld_a = 6 is smaller than k = 8 (op_a = N)", &d, 2,
                 items, MP_ERROR_INVALID_ARGUMENT);
  items[1] = good_item(1);
  items[1].n = -3;
  check_sentence("mp_gemm_grouped: items[1].n = -3 is negative", &d, 2, items,
                 MP_ERROR_INVALID_ARGUMENT);
  items[1] = good_item(1);
  items[1].D = NULL;
  check_sentence("mp_gemm_grouped: items[1].D = NULL", &d, 2, items, MP_ERROR_INVALID_ARGUMENT);
  items[1] = good_item(1);
  d.m = 4;
  check_sentence("mp_gemm_grouped: m = 4 must be 0: the items specify the shapes", &d, 2, items,
                 MP_ERROR_INVALID_ARGUMENT);
  d = good_desc();

  d.beta = 0.5f;
  items[1].C = NULL;
  check_sentence("mp_gemm_grouped: items[1].C = NULL, but beta = 0.5 requires C", &d, 2, items,
                 MP_ERROR_INVALID_ARGUMENT);
  items[1].C = items[1].D;
  WORKS(grouped(&d, 2, items));
  items[1].ld_c = 24;
  check_sentence("mp_gemm_grouped: items[1].ld_c = 24 must equal ld_d = 16 if C = D", &d, 2, items,
                 MP_ERROR_INVALID_ARGUMENT);
}

/** struct_size of the first item is the stride of the items. */
static void test_distance(void) {
  const mp_gemm_desc_t d = good_desc();
  mp_gemm_group_item_t items[3] = {good_item(0), good_item(1), good_item(1)};
  items[1].struct_size += 8;
  check_sentence("mp_gemm_grouped: items[1].struct_size = 104 must equal items[0].struct_size = 96",
                 &d, 2, items, MP_ERROR_STRUCT_SIZE);
  items[0].struct_size += 4;
  check_sentence("mp_gemm_grouped: items[0].struct_size = 100 must be a multiple of 8", &d, 2,
                 items, MP_ERROR_STRUCT_SIZE);

  /* A newer caller: 16 more bytes per item. */
  union {
    unsigned char bytes[2 * (sizeof(mp_gemm_group_item_t) + 16)];
    mp_gemm_group_item_t first;
  } newer;
  const size_t distance = sizeof newer.bytes / 2;
  memset(&newer, 0, sizeof newer);
  for (int index = 0; index < 2; index++) {
    mp_gemm_group_item_t i = good_item(index);
    i.struct_size = (uint32_t)distance;
    i.k = 0; /* D = 0 */
    memcpy(newer.bytes + (size_t)index * distance, &i, sizeof i);
  }
  mp_gemm_group_item_t last;
  memcpy(&last, newer.bytes + distance, sizeof last);
  int good = grouped(&d, 2, &newer.first) == MP_SUCCESS;
  uint16_t corners[2] = {1, 1};
  good =
      good && mp_memcpy(context, &corners[0], at(kD), 2, NULL) == MP_SUCCESS &&
      mp_memcpy(context, &corners[1], at(kD + kItem + (8 * 16 - 1) * 2), 2, NULL) == MP_SUCCESS &&
      mp_stream_sync(context, NULL) == MP_SUCCESS;
  check(good && corners[0] == 0 && corners[1] == 0, "items with the stride of a newer version");
  reset();

  newer.bytes[sizeof newer.bytes - 1] = 1;
  check_sentence(
      "mp_gemm_grouped: items[1].struct_size = 112: byte 111 is not 0, but this library supports "
      "only "
      "96 bytes; the caller was compiled against a newer mpcore",
      &d, 2, &newer.first, MP_ERROR_STRUCT_SIZE);
}

/* ---------------------------------------------------------------- epilogue */

static mp_epilogue_t good_epilogue(void) {
  mp_epilogue_t e = mp_epilogue_default();
  e.scale = at(kExtra);
  e.stats.found_inf = at(kExtra + 4);
  return e;
}

static mp_status_t call_epilogue(void *s) {
  const mp_gemm_desc_t d = good_desc();
  const mp_gemm_group_item_t items[2] = {good_item(0), good_item(1)};
  return mp_gemm_grouped(context, &d, 2, items, s, NULL, 0, NULL);
}

static void test_epilogue(void) {
  const mp_epilogue_t initial = good_epilogue();
  check_scaling_epilogue(SUBJECT("mp_gemm_grouped", "epilogue", initial, call_epilogue), at(kC),
                         MP_ERROR_UNSUPPORTED);
}

/* ---------------------------------------------------------------- other arguments */

static void test_arguments(void) {
  const mp_gemm_desc_t d = good_desc();
  const mp_gemm_group_item_t items[2] = {good_item(0), good_item(1)};
  const mp_gemm_group_item_t *const i = items;
  INVALID(mp_gemm_grouped, (context, &d, -1, i, NULL, NULL, 0, NULL), "count");
  WORKS(mp_gemm_grouped(context, &d, 2, i, NULL, at(kWorkspace), 512, NULL));
  const mp_gemm_group_item_t many_tiles = mp_gemm_group_item_default(INT64_C(1) << 34, 16, 8);
  const mp_gemm_group_item_t too_many[2] = {many_tiles, many_tiles}; /* 2^30 of 16 x 16 each */
  WORKS(mp_gemm_grouped_workspace_size(context, &d, 1, too_many, NULL, &out.bytes));
  FAILS(mp_gemm_grouped_workspace_size, (context, &d, 2, too_many, NULL, &out.bytes),
        MP_ERROR_UNSUPPORTED, "m");
  INVALID(mp_gemm_grouped_workspace_size, (context, &d, -1, i, NULL, &out.bytes), "count");
}

static void test_empty(void) {
  mp_gemm_desc_t d = good_desc();
  const mp_gemm_group_item_t empty = mp_gemm_group_item_default(0, 16, 8);
  size_t bytes = 1;
  d.plan = named_plan("abacus");
  FAILS(mp_gemm_grouped, (context, &d, 0, NULL, NULL, NULL, 0, NULL), MP_ERROR_NOT_FOUND, "kernel");
  FAILS(mp_gemm_grouped, (context, &d, 1, &empty, NULL, NULL, 0, NULL), MP_ERROR_NOT_FOUND,
        "kernel");
  FAILS(mp_gemm_grouped_workspace_size, (context, &d, 0, NULL, NULL, &out.bytes),
        MP_ERROR_NOT_FOUND, "kernel");
  d.plan = named_plan("wmma_128x128x32_s3"); /* known, but unused */
  WORKS(grouped(&d, 0, NULL));
  check(mp_gemm_grouped_workspace_size(context, &d, 0, NULL, NULL, &bytes) == MP_SUCCESS &&
            bytes == 0,
        "an empty group needs no workspace");
  const mp_gemm_group_item_t items[2] = {mp_gemm_group_item_default(0, 16, 8),
                                         mp_gemm_group_item_default(4, 0, 8)};
  WORKS(grouped(&d, 2, items));
  bytes = 1;
  check(mp_gemm_grouped_workspace_size(context, &d, 2, items, NULL, &bytes) == MP_SUCCESS &&
            bytes == 0,
        "empty products need no workspace");
  reset();

  d.plan = NULL;
  mp_gemm_group_item_t no_k = mp_gemm_group_item_default(4, 16, 0);
  no_k.D = at(kD);
  WORKS(grouped(&d, 1, &no_k));
  const mp_gemm_group_item_t no_data[2] = {mp_gemm_group_item_default(4, 16, 8),
                                           mp_gemm_group_item_default(8, 16, 8)};
  WORKS(mp_gemm_grouped_workspace_size(context, &d, 2, no_data, NULL, &bytes));
}

/** A kernel that requires workspace for one of the products, and one that does not support them. */
static void test_forced_kernel(void) {
  mp_gemm_desc_t d = good_desc();
  mp_gemm_desc_t alone = mp_gemm_desc_default(4, 16, 2048, MP_FP16, MP_FP16);
  mp_gemm_group_item_t items[2] = {good_item(0), mp_gemm_group_item_default(4, 16, 2048)};
  items[1].A = items[1].B = at(0); /* never read */
  items[1].D = nowhere();
  size_t bytes = 0;
  int needs_workspace = 0, refused = 0;
  mp_kernel_info_t info = INITIALIZED(mp_kernel_info_t);
  for (int32_t i = 0; mp_gemm_kernel_info(context, &alone, i, &info) == MP_SUCCESS; i++) {
    if (info.reason != NULL) break;
    d.plan = named_plan(info.name);
    mp_gemm_grouped_workspace_size(context, &d, 1, &items[1], NULL, &bytes);
    if (bytes > 0 && !needs_workspace) {
      needs_workspace = 1;
      reset();
      check_failure("a kernel with too little workspace", "mp_gemm_grouped",
                    grouped(&d, 1, &items[1]), MP_ERROR_WORKSPACE_TOO_SMALL, "workspace_bytes");
    }
    if (mp_gemm_grouped_workspace_size(context, &d, 2, items, NULL, &bytes) ==
            MP_ERROR_UNSUPPORTED &&
        !refused) {
      refused = 1;
      reset();
      check_failure("a kernel that does not support one of the products", "mp_gemm_grouped",
                    grouped(&d, 2, items), MP_ERROR_UNSUPPORTED, "items[0]");
      const mp_gemm_group_item_t swapped[2] = {items[1], items[0]};
      FAILS(mp_gemm_grouped_workspace_size, (context, &d, 2, swapped, NULL, &out.bytes),
            MP_ERROR_UNSUPPORTED, "items[1]");
    }
  }
  reset();
  if (!needs_workspace) skip("a kernel with too little workspace", "no kernel needs any");
  if (!refused)
    skip("a kernel that does not support one of the products", "every kernel supports them");
}

void test_gemm_grouped(void) {
  test_group_defaults();
  check_desc("mp_gemm_grouped", call_grouped);
  check_desc("mp_gemm_grouped_workspace_size", call_workspace_size);
  check_item("mp_gemm_grouped", call_item);
  check_item("mp_gemm_grouped_workspace_size", call_item_workspace_size);
  test_item_data();
  test_sentences();
  test_distance();
  test_epilogue();
  test_arguments();
  test_empty();
  test_forced_kernel();
}
