/* mpcore/rnn.h: invalid arguments of a bidirectional LSTM of two layers. */
#define MP_ENABLE_EXPERIMENTAL
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

enum { kLayers = 2, kWeights = 4, kSteps = 3, kBatch = 2, kInput = 6, kHidden = 4 };

/* Offsets of the arguments; weights have 512 bytes per layer and direction. */
enum { kX = 0, kY = 256, kH0 = 512, kC0 = 640, kHn = 768, kCn = 896, kDy = 1024, kDx = 1152 };
enum { kDhn = 1280, kDcn = 1344, kDh0 = 1472, kDc0 = 1536, kFoundInf = 1792, kAmax = 1796 };
enum { kLengths = 1800, kW = 2048, kDw = 4096, kReserve = 6144, kWorkspace = 8192 };
enum { kReserveBytes = 2048, kWorkspaceBytes = 8192 };

/** The arguments of the four calls. */
static struct arguments {
  mp_rnn_desc_t desc;
  mp_rnn_tensors_t tensors;
  mp_rnn_weights_t weights[kWeights];
  mp_rnn_weight_grads_t grads[kWeights];
  void *workspace;
  size_t workspace_bytes;
} args;

static void set_desc(void) {
  args.desc = mp_rnn_desc_default(MP_RNN_LSTM, kBatch, kSteps, kInput, kHidden, MP_FP16);
  args.desc.layers = kLayers;
  args.desc.flags = MP_RNN_FLAG_BIDIRECTIONAL;
}

/** Sets all arguments, optional ones included, to valid values. */
static void set_arguments(void) {
  mp_rnn_tensors_t *t = &args.tensors;
  memset(&args, 0, sizeof args);
  set_desc();
  for (size_t i = 0; i < kWeights; i++) {
    const size_t w = kW + 512 * i, g = kDw + 512 * i, size = sizeof(mp_rnn_weights_t);
    const mp_rnn_weights_t weights = {size, 0, at(w), at(w + 256), at(w + 384), at(w + 448)};
    const mp_rnn_weight_grads_t grads = {size, 0, at(g), at(g + 256), at(g + 384), at(g + 448)};
    args.weights[i] = weights;
    args.grads[i] = grads;
  }
  MP_INIT_STRUCT(t);
  t->num_weights = kWeights;
  t->weights = args.weights, t->weight_grads = args.grads;
  t->x = at(kX), t->y = at(kY), t->dy = at(kDy), t->dx = at(kDx);
  t->h0 = at(kH0), t->hn = at(kHn), t->dhn = at(kDhn), t->dh0 = at(kDh0);
  t->c0 = at(kC0), t->cn = at(kCn), t->dcn = at(kDcn), t->dc0 = at(kDc0);
  t->stats.found_inf = at(kFoundInf), t->stats.amax = at(kAmax);
  t->reserve = at(kReserve), t->reserve_bytes = kReserveBytes;
  args.workspace = at(kWorkspace), args.workspace_bytes = kWorkspaceBytes;
}

/* ---------------------------------------------------------------- the four calls */

enum { kTraining = 1, kInference = 2, kData = 4, kGrads = 8, kForward = 3, kUsesWeights = 7 };
enum { kKeeps = kTraining | kData | kGrads, kAll = 15 };

static const struct pass {
  int bit;
  const char *function;
  mp_status_t (*call)(mp_context_t, const mp_rnn_desc_t *, const mp_rnn_tensors_t *, void *, size_t,
                      mp_stream_t);
} passes[] = {
    {kTraining, "mp_rnn_forward_training", mp_rnn_forward_training},
    {kInference, "mp_rnn_forward_inference", mp_rnn_forward_inference},
    {kData, "mp_rnn_backward_data", mp_rnn_backward_data},
    {kGrads, "mp_rnn_backward_weights", mp_rnn_backward_weights},
};
enum { kPasses = 4 };

static mp_status_t run(const struct pass *pass) {
  return pass->call(context, &args.desc, &args.tensors, args.workspace, args.workspace_bytes, NULL);
}

static const char *label_of(const struct pass *pass, const char *what) {
  static char label[192];
  snprintf(label, sizeof label, "%s: %s", pass->function, what);
  return label;
}

static void fail(int bits, const char *what, mp_status_t status, const char *argument) {
  for (size_t i = 0; i < kPasses; i++) {
    const struct pass *p = &passes[i];
    if (bits & p->bit) check_failure(label_of(p, what), p->function, run(p), status, argument);
  }
}

static void work(int bits, const char *what) {
  for (size_t i = 0; i < kPasses; i++)
    if (bits & passes[i].bit) check_success(label_of(&passes[i], what), run(&passes[i]));
}

/* ---------------------------------------------------------------- descriptor */

static const struct pass *pass_of_subject;

CALL_OF(call_with_desc, pass_of_subject->call(context, s, &args.tensors, args.workspace,
                                              args.workspace_bytes, NULL))
static mp_status_t get_sizes(void *s) {
  mp_rnn_sizes_t sizes, before;
  MP_INIT_STRUCT(&sizes);
  before = sizes;
  const mp_status_t status = mp_rnn_get_sizes(context, s, &sizes);
  check(status == MP_SUCCESS || memcmp(&sizes, &before, sizeof sizes) == 0, "sizes stay");
  return status;
}

static void test_desc_fields(void) {
  const struct field_case fields[] = {
      INTS(mp_rnn_desc_t, cell, 0, 5, -1),
      INTS(mp_rnn_desc_t, flags, 1 << 5, 1u << 31 | MP_RNN_FLAG_BIDIRECTIONAL,
           MP_RNN_FLAG_RESET_FIRST),
      INTS(mp_rnn_desc_t, dtype, MP_DTYPE_NONE, invalid_dtype()),
      INTS(mp_rnn_desc_t, dtype_dw, MP_DTYPE_NONE, invalid_dtype()),
      INTS(mp_rnn_desc_t, layers, 0, 65536),
      INTS(mp_rnn_desc_t, input_size, 0, -6),
      INTS(mp_rnn_desc_t, hidden_size, 0, -4),
      INTS(mp_rnn_desc_t, batch, -1),
      INTS(mp_rnn_desc_t, timesteps, -1),
      REALS(mp_rnn_desc_t, dropout, -0.125, 1, NAN),
      REALS(mp_rnn_desc_t, clip, -1, INFINITY, NAN),
      INTS(mp_rnn_desc_t, x_row, 5, -6, INT64_MAX / 2, INT64_MAX),
      INTS(mp_rnn_desc_t, x_step, 5, -12, 11, INT64_MAX / 8, INT64_MAX),
      INTS(mp_rnn_desc_t, y_row, 7, -8, INT64_MAX / 2, INT64_MAX),
      INTS(mp_rnn_desc_t, y_step, 7, -16, 15, INT64_MAX / 8, INT64_MAX),
      FIELD(mp_rnn_desc_t, plan, pointers, MP_ERROR_NOT_FOUND, named_plan("abacus")),
  };
  set_arguments();
  CHECK_STRUCT("mp_rnn_get_sizes", "desc", args.desc, get_sizes, fields);
  for (size_t i = 0; i < kPasses; i++) {
    pass_of_subject = &passes[i];
    CHECK_STRUCT(passes[i].function, "desc", args.desc, call_with_desc, fields);
  }
}

/** Checks combinations of fields that are invalid together. */
static void check_pair(const char *what, const char *argument) {
  mp_rnn_sizes_t sizes = INITIALIZED(mp_rnn_sizes_t);
  check_failure(what, "mp_rnn_get_sizes", mp_rnn_get_sizes(context, &args.desc, &sizes),
                MP_ERROR_INVALID_ARGUMENT, argument);
  fail(kAll, what, MP_ERROR_INVALID_ARGUMENT, argument);
  set_desc();
}

/** Batch-major strides; sequences begin this many elements too early. */
static void make_batch_major(int64_t of_x, int64_t of_y) {
  args.desc.x_step = kInput, args.desc.x_row = kSteps * kInput - of_x;
  args.desc.y_step = 2 * kHidden, args.desc.y_row = kSteps * 2 * kHidden - of_y;
}

static void test_desc_pairs(void) {
  const mp_rnn_cell_t cells[] = {MP_RNN_TANH, MP_RNN_RELU, MP_RNN_GRU};
  set_arguments();
  for (size_t i = 0; i < 3; i++) {
    args.desc.cell = cells[i], args.desc.clip = 1;
    check_pair("clip is not supported by this cell", "clip");
    if (cells[i] == MP_RNN_GRU) continue;
    args.desc.cell = cells[i], args.desc.flags |= MP_RNN_FLAG_RESET_FIRST;
    check_pair("MP_RNN_FLAG_RESET_FIRST is not supported by this cell", "flags");
  }
  args.desc.flags |= MP_RNN_FLAG_SKIP_INPUT;
  check_pair("MP_RNN_FLAG_SKIP_INPUT with input_size != hidden_size", "input_size");
  make_batch_major(1, 0);
  check_pair("sequences of x overlap", "x_row");
  make_batch_major(0, 1);
  check_pair("sequences of y overlap", "y_row");

  args.desc.timesteps = args.desc.batch = args.desc.hidden_size = INT32_MAX;
  check_pair("a product of three sizes that exceeds 64 bits", "timesteps");
  args.desc.batch = args.desc.hidden_size = INT32_MAX;
  check_pair("a product of two sizes that exceeds 64 bits", "batch");
  args.desc.layers = 65535, args.desc.hidden_size = INT32_MAX;
  check_pair("a size of all layers that exceeds 64 bits", "layers");
  args.desc.timesteps = args.desc.input_size = INT32_MAX;
  check_pair("a size of the inputs that exceeds 64 bits", "input_size");
}

/** Checks descriptors just inside the limits. */
static void test_desc_works(void) {
  set_arguments();
  make_batch_major(0, 0);
  work(kAll, "batch-major");
  set_desc();
  args.desc.x_step = 13, args.desc.y_row = 9;
  work(kAll, "strided rows and steps");
  set_desc();
  args.desc.plan = named_plan("rnn_steps");
  args.desc.dropout = 0.875f, args.desc.clip = 1;
  args.desc.flags |= MP_RNN_FLAG_ACCUMULATE;
  work(kAll, "dropout, clip, MP_RNN_FLAG_ACCUMULATE and the name of the kernel");
  set_desc();
  args.desc.cell = MP_RNN_GRU;
  args.desc.flags |= MP_RNN_FLAG_RESET_FIRST;
  work(kAll, "MP_RNN_FLAG_RESET_FIRST");
}

/* ---------------------------------------------------------------- bytes */

/** Each call needs at most the bytes of mp_rnn_get_sizes; one byte fewer is rejected. */
static void test_bytes(void) {
  mp_rnn_sizes_t sizes;
  char sentence[96];
  set_arguments();
  MP_INIT_STRUCT(&sizes);
  WORKS(mp_rnn_get_sizes(context, &args.desc, &sizes));
  check(sizes.reserve_bytes <= args.tensors.reserve_bytes &&
            sizes.workspace_bytes <= args.workspace_bytes,
        "reserve and workspace fit into the arena");
  args.tensors.reserve_bytes = sizes.reserve_bytes;
  args.workspace_bytes = sizes.workspace_bytes;
  work(kAll, "the bytes of mp_rnn_get_sizes");
  args.tensors.reserve_bytes--;
  snprintf(sentence, sizeof sentence, "reserve_bytes = %lu must be at least %lu",
           (unsigned long)args.tensors.reserve_bytes, (unsigned long)sizes.reserve_bytes);
  fail(kKeeps, "reserve_bytes - 1", MP_ERROR_WORKSPACE_TOO_SMALL, sentence);
  work(kInference, "reserve_bytes - 1");

  args.tensors.reserve_bytes = sizes.reserve_bytes;
  for (size_t i = 0; i < kPasses; i++) {
    args.workspace_bytes = 0;
    fail(passes[i].bit, "workspace_bytes = 0", MP_ERROR_WORKSPACE_TOO_SMALL, "workspace_bytes");
    const char *needed = strstr(mp_last_error(), "at least ");
    args.workspace_bytes = needed == NULL ? 0 : strtoul(needed + 9, NULL, 10);
    check(args.workspace_bytes > 0 && args.workspace_bytes <= sizes.workspace_bytes,
          label_of(&passes[i], "needs at most the bytes of mp_rnn_get_sizes"));
    work(passes[i].bit, "the required workspace_bytes");
    snprintf(sentence, sizeof sentence, "workspace_bytes = %lu must be at least %lu",
             (unsigned long)args.workspace_bytes - 1, (unsigned long)args.workspace_bytes);
    args.workspace_bytes--;
    fail(passes[i].bit, "workspace_bytes - 1", MP_ERROR_WORKSPACE_TOO_SMALL, sentence);
  }
}

/* ---------------------------------------------------------------- pointers */

/** tests/support/calls/test_arguments.cpp checks each pointer alone. */
static void test_pointers(void) {
  mp_rnn_tensors_t *t = &args.tensors;
  set_arguments();
  t->h0 = t->dhn = t->hn = t->dh0 = t->dx = NULL;
  t->c0 = t->dcn = t->cn = t->dc0 = NULL;
  t->stats.found_inf = t->stats.amax = NULL;
  for (size_t i = 0; i < kWeights; i++) MP_INIT_STRUCT(&args.grads[i]);
  work(kAll, "without optional tensors");

  set_arguments();
  args.desc.cell = MP_RNN_GRU;
  t->c0 = t->dcn = t->cn = t->dc0 = at(1);
  work(kAll, "tensors of MP_RNN_LSTM are ignored by other cells");
  set_arguments();
  args.desc.dtype = MP_FP32;
  t->x = at(2);
  fail(kForward | kGrads, "2-byte aligned fp32", MP_ERROR_MISALIGNED, "x");
}

/** Checks a pointer in a host array that is NULL or misaligned. */
static void check_element(int bits, const char *array, size_t i, const char *field, void *element) {
  void *good, *bad = at(1);
  char name[48], what[80];
  memcpy(&good, element, sizeof good);
  snprintf(name, sizeof name, "%s[%u].%s", array, (unsigned)i, field);
  snprintf(what, sizeof what, "%s is misaligned", name);
  memcpy(element, &bad, sizeof bad);
  fail(bits, what, MP_ERROR_MISALIGNED, name);
  memset(element, 0, sizeof good);
  snprintf(what, sizeof what, "%s = NULL", name);
  fail(bits & kUsesWeights, what, MP_ERROR_INVALID_ARGUMENT, name);
  work(bits & kGrads, what);
  memcpy(element, &good, sizeof good);
}

/** Checks all pointers of the arrays; pointers that the flags disable are ignored. */
static void check_elements(uint32_t flags) {
  void *taken[8 * kWeights], *bad = at(1);
  size_t count = 0;
  set_arguments();
  args.desc.flags |= flags;
  if (flags & MP_RNN_FLAG_SKIP_INPUT) args.desc.input_size = kHidden;
  for (size_t i = 0; i < kWeights; i++) {
    mp_rnn_weights_t *w = &args.weights[i];
    mp_rnn_weight_grads_t *g = &args.grads[i];
    const int skips = i < 2 && (flags & MP_RNN_FLAG_SKIP_INPUT) != 0;
    const int no_bias = (flags & MP_RNN_FLAG_NO_BIAS) != 0;
    const struct {
      const char *name;
      void *weight, *grad;
      int is_taken;
    } fields[] = {{"w_ih", &w->w_ih, &g->w_ih, skips},
                  {"w_hh", &w->w_hh, &g->w_hh, 0},
                  {"b_ih", &w->b_ih, &g->b_ih, no_bias},
                  {"b_hh", &w->b_hh, &g->b_hh, no_bias}};
    for (size_t j = 0; j < 4; j++) {
      if (fields[j].is_taken) {
        taken[count++] = fields[j].weight, taken[count++] = fields[j].grad;
        continue;
      }
      check_element(kUsesWeights, "weights", i, fields[j].name, fields[j].weight);
      check_element(kGrads, "weight_grads", i, fields[j].name, fields[j].grad);
    }
  }
  for (size_t i = 0; i < count; i++) memcpy(taken[i], &bad, sizeof bad);
  work(kUsesWeights, "weights that the flags disable are ignored");
  work(kGrads, "gradients of weights that the flags disable are ignored");
}

/* ---------------------------------------------------------------- mp_rnn_tensors_t */

CALL_OF(call_with_tensors,
        pass_of_subject->call(context, &args.desc, s, args.workspace, args.workspace_bytes, NULL))

static void test_tensors_struct(void) {
  const struct field_case fields[] = {
      INTS(mp_rnn_tensors_t, num_weights, 0, kWeights - 1, kWeights + 1, UINT32_MAX),
  };
  set_arguments();
  for (size_t i = 0; i < kPasses; i++) {
    pass_of_subject = &passes[i];
    CHECK_STRUCT(passes[i].function, "tensors", args.tensors, call_with_tensors, fields);
  }
}

static void test_in_place(void) {
  set_arguments(), args.tensors.hn = at(kH0);
  fail(kTraining, "hn = h0", MP_ERROR_INVALID_ARGUMENT, "hn");
  work(kInference, "hn = h0");
  set_arguments(), args.tensors.cn = at(kC0);
  fail(kTraining, "cn = c0", MP_ERROR_INVALID_ARGUMENT, "cn");
  work(kInference, "cn = c0");
  set_arguments(), args.tensors.stats.found_inf = args.tensors.stats.amax = at(kDh0);
  fail(kData | kGrads, "statistics overlap", MP_ERROR_INVALID_ARGUMENT, "found_inf");
}

static void test_batch_sizes(void) {
  static const struct {
    int32_t sizes[kSteps];
    const char *culprit;
  } cases[] = {{{3, 2, 2}, "batch_sizes[0] = 3"},    {{-1, 0, 0}, "batch_sizes[0] = -1"},
               {{2, -1, 0}, "batch_sizes[1] = -1"},  {{1, 2, 1}, "batch_sizes[1] = 2"},
               {{2, 0, 1}, "batch_sizes[2] = 1"},    {{2, 2, INT32_MIN}, "batch_sizes[2]"},
               {{2, 2, INT32_MAX}, "batch_sizes[2]"}};
  const int32_t good[kSteps] = {2, 1, 0};
  set_arguments();
  for (size_t i = 0; i < COUNT(cases); i++) {
    args.tensors.batch_sizes = cases[i].sizes;
    fail(kAll, cases[i].culprit, MP_ERROR_INVALID_ARGUMENT, cases[i].culprit);
  }
  args.tensors.batch_sizes = good;
  work(kAll, "packed");
  args.tensors.lengths = at(kLengths);
  fail(kAll, "lengths and batch_sizes", MP_ERROR_INVALID_ARGUMENT, "lengths");
  fail(kAll, "lengths and batch_sizes", MP_ERROR_INVALID_ARGUMENT, "batch_sizes");
  args.tensors.batch_sizes = NULL;
  work(kAll, "lengths");
  args.tensors.batch_sizes = good, args.tensors.lengths = NULL;
  args.desc.x_step = args.desc.y_step = 1000;
  work(kAll, "packed: x_step and y_step are ignored");
}

/** Checks fields other than pointers in the arrays of weights and their gradients. */
static void test_array_elements(void) {
  const uint32_t size = sizeof(mp_rnn_weights_t);
  const struct {
    const char *sentence;
    int index;
    uint32_t struct_size, reserved0;
    mp_status_t status;
  } cases[] = {
      {"struct_size = 0 must be", 0, 0, 0, MP_ERROR_STRUCT_SIZE},
      {"struct_size = 36 must be a multiple of 8", 0, size - 4, 0, MP_ERROR_STRUCT_SIZE},
      {"struct_size = 32 must equal", 1, size - 8, 0, MP_ERROR_STRUCT_SIZE},
      {"reserved0 = 7", 1, size, 7, MP_ERROR_INVALID_ARGUMENT},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    set_arguments();
    mp_rnn_weights_t *const w = &args.weights[cases[i].index];
    mp_rnn_weight_grads_t *const g = &args.grads[cases[i].index];
    w->struct_size = g->struct_size = cases[i].struct_size;
    w->reserved0 = g->reserved0 = cases[i].reserved0;
    fail(kTraining | kGrads, cases[i].sentence, cases[i].status, cases[i].sentence);
  }
}

/* ---------------------------------------------------------------- sizes, kernels */

static mp_rnn_desc_t gru(void) {
  return mp_rnn_desc_default(MP_RNN_GRU, kBatch, kSteps, kInput, kHidden, MP_BF16);
}
CALL_OF(get_these_sizes, mp_rnn_get_sizes(context, REF(mp_rnn_desc_t, gru()), s))
CALL_OF(call_kernel_info, mp_rnn_kernel_info(context, s, 0, &INITIALIZED(mp_kernel_info_t)))

static void test_kernel_info(void) {
  mp_rnn_desc_t d = gru();
  mp_kernel_info_t info = INITIALIZED(mp_kernel_info_t);
  mp_rnn_sizes_t sizes = INITIALIZED(mp_rnn_sizes_t);
  check_struct_size(SUBJECT("mp_rnn_get_sizes", "sizes", sizes, get_these_sizes));
  check_struct_size(SUBJECT("mp_rnn_kernel_info", "desc", d, call_kernel_info));
  INVALID(mp_rnn_kernel_info, (context, &d, -1, &info), "index");
  FAILS(mp_rnn_kernel_info, (context, &d, 3, &info), MP_ERROR_NOT_FOUND, "index");
  WORKS(mp_rnn_kernel_info(context, &d, 0, &info));
  WORKS(mp_rnn_get_sizes(context, &d, &sizes));
  check(info.reason == NULL && info.workspace_bytes == sizes.workspace_bytes,
        "mp_rnn_kernel_info: the first kernel is the selected one");
  d.plan = named_plan("rnn_fused_wmma");
  d.dtype = MP_FP32;
  FAILS(mp_rnn_get_sizes, (context, &d, &sizes), MP_ERROR_UNSUPPORTED, "kernel");
  d.dtype = MP_FP16;
  d.flags = MP_RNN_FLAG_RESET_FIRST;
  FAILS(mp_rnn_get_sizes, (context, &d, &sizes), MP_ERROR_UNSUPPORTED, "kernel");
  for (int32_t index = 1; index <= 2; index++) {
    WORKS(mp_rnn_kernel_info(context, &d, index, &info));
    check(info.reason != NULL && info.workspace_bytes == 0,
          "mp_rnn_kernel_info: the reason why a kernel does not support this");
  }
  d.flags = 0;
  d.hidden_size = 12;
  d.plan = named_plan("rnn_fused_wgmma");
  FAILS(mp_rnn_get_sizes, (context, &d, &sizes), MP_ERROR_UNSUPPORTED, "kernel");
}

static void test_default(void) {
  const mp_rnn_desc_t d = gru();
  check(d.cell == MP_RNN_GRU && d.batch == kBatch && d.timesteps == kSteps &&
            d.input_size == kInput && d.hidden_size == kHidden && d.dtype == MP_BF16,
        "mp_rnn_desc_default: arguments");
  check(d.layers == 1 && d.flags == 0 && d.dtype_dw == MP_BF16 && d.dropout == 0.0f &&
            d.clip == 0.0f && d.dropout_seed == 0 && d.x_step == 0 && d.x_row == 0 &&
            d.y_step == 0 && d.y_row == 0 && d.plan == NULL,
        "mp_rnn_desc_default: other fields");
}

void test_rnn(void) {
  test_desc_fields();
  test_desc_pairs();
  test_desc_works();
  test_bytes();
  test_pointers();
  check_elements(0);
  check_elements(MP_RNN_FLAG_NO_BIAS);
  check_elements(MP_RNN_FLAG_SKIP_INPUT);
  test_tensors_struct();
  test_in_place();
  test_batch_sizes();
  test_array_elements();
  test_kernel_info();
  test_default();
}
