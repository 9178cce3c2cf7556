/* mpcore/rnn.h: sizes from mp_rnn_get_sizes, and calls without steps or sequences. */
#include <stdio.h>

#define MP_ENABLE_EXPERIMENTAL
#include "harness.h"

/* ---------------------------------------------------------------- sizes */

CALL_OF(get_these_sizes,
        mp_rnn_get_sizes(context,
                         REF(mp_rnn_desc_t, mp_rnn_desc_default(MP_RNN_GRU, 2, 3, 6, 4, MP_BF16)),
                         s))

/** Bytes of the reserve per step, sequence, unit, layer and direction. */
static const struct kept {
  mp_rnn_cell_t cell;
  uint32_t flags, gates;
  size_t bytes16, bytes32;
} kept[] = {{MP_RNN_TANH, 0, 1, 4, 8},
            {MP_RNN_RELU, MP_RNN_FLAG_NO_BIAS, 1, 4, 8},
            {MP_RNN_LSTM, MP_RNN_FLAG_ACCUMULATE, 4, 14, 24},
            {MP_RNN_GRU, 0, 3, 10, 20},
            {MP_RNN_GRU, MP_RNN_FLAG_RESET_FIRST, 3, 10, 20}};

static const struct shape {
  int32_t layers, batch, timesteps, input, hidden;
  uint32_t directions;
} shapes[] = {{1, 1, 1, 1, 1, 1},     {2, 2, 3, 6, 4, 2},
              {3, 5, 7, 300, 33, 1},  {1, 64, 50, 256, 512, 2},
              {65535, 1, 1, 1, 1, 2}, {4, 1 << 12, 1 << 16, 8, 1 << 11, 2},
              {2, 0, 3, 6, 4, 2},     {2, 2, 0, 6, 4, 1}};

static int documented_sizes(const struct kept *k, const struct shape *s, mp_dtype_t dtype) {
  mp_rnn_desc_t d =
      mp_rnn_desc_default(k->cell, s->batch, s->timesteps, s->input, s->hidden, dtype);
  mp_rnn_sizes_t sizes;
  const size_t exact = (dtype == MP_FP32 ? k->bytes32 : k->bytes16) * (size_t)s->batch *
                       (size_t)s->timesteps * (size_t)s->hidden * (size_t)s->layers * s->directions;
  d.layers = s->layers;
  d.flags = k->flags | (s->directions == 2 ? MP_RNN_FLAG_BIDIRECTIONAL : 0);
  MP_INIT_STRUCT(&sizes);
  return mp_rnn_get_sizes(context, &d, &sizes) == MP_SUCCESS && sizes.gates == k->gates &&
         sizes.directions == s->directions &&
         sizes.num_weights == (uint32_t)s->layers * s->directions && sizes.reserve_bytes >= exact &&
         sizes.reserve_bytes - exact < 256;
}

/* ---------------------------------------------------------------- kernels */

static mp_status_t call_kernel_info(void *s) {
  mp_kernel_info_t info;
  MP_INIT_STRUCT(&info);
  return mp_rnn_kernel_info(context, s, 0, &info);
}

static void test_kernel_info(void) {
  mp_rnn_desc_t d = mp_rnn_desc_default(MP_RNN_GRU, 2, 3, 6, 4, MP_BF16);
  mp_kernel_info_t info;
  mp_rnn_sizes_t sizes;
  MP_INIT_STRUCT(&info);
  MP_INIT_STRUCT(&sizes);
  const mp_rnn_desc_t initial = mp_rnn_desc_default(MP_RNN_GRU, 2, 3, 6, 4, MP_BF16);
  check_struct_size(SUBJECT("mp_rnn_kernel_info", "desc", initial, call_kernel_info));
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
  const mp_rnn_desc_t d = mp_rnn_desc_default(MP_RNN_GRU, 2, 3, 6, 4, MP_BF16);
  check(d.cell == MP_RNN_GRU && d.batch == 2 && d.timesteps == 3 && d.input_size == 6 &&
            d.hidden_size == 4 && d.dtype == MP_BF16,
        "mp_rnn_desc_default: arguments");
  check(d.layers == 1 && d.flags == 0 && d.dtype_dw == MP_BF16 && d.dropout == 0.0f &&
            d.clip == 0.0f && d.dropout_seed == 0 && d.x_step == 0 && d.x_row == 0 &&
            d.y_step == 0 && d.y_row == 0 && d.plan == NULL,
        "mp_rnn_desc_default: other fields");
}

static void test_sizes(void) {
  mp_rnn_sizes_t initial;
  MP_INIT_STRUCT(&initial);
  check_struct_size(SUBJECT("mp_rnn_get_sizes", "sizes", initial, get_these_sizes));
  for (size_t i = 0; i < COUNT(kept); i++)
    for (int dtype = MP_FP16; dtype <= MP_FP32; dtype++)
      for (size_t j = 0; j < COUNT(shapes); j++) {
        char label[96];
        snprintf(label, sizeof label, "sizes of cell %d, flags %u, %s, shape %u", (int)kept[i].cell,
                 (unsigned)kept[i].flags, mp_dtype_name((mp_dtype_t)dtype), (unsigned)j);
        check(documented_sizes(&kept[i], &shapes[j], (mp_dtype_t)dtype), label);
      }
}

/* ---------------------------------------------------------------- no rows */

enum { kBatch = 2, kInput = 5, kHidden = 4, kGateRows = 16, kPattern = 0xA5, kFill = 0x3C };
enum { kH0 = 0, kC0 = 256, kDhn = 512, kDcn = 768, kHn = 1024, kCn = 1280, kDh0 = 1536 };
enum { kDc0 = 1792, kW = 2048, kDw = 4096, kReserve = 6144, kWorkspace = 8192 };
enum { kReserveBytes = 2048, kWorkspaceBytes = 8192 };
enum { kH = kBatch * kHidden * 2, kC = kBatch * kHidden * 4, kBehind = 16 };

static mp_rnn_desc_t desc;
static mp_rnn_weights_t weights;
static mp_rnn_weight_grads_t grads;
static mp_rnn_tensors_t tensors;

static void set_arguments(int32_t batch, int32_t timesteps) {
  const mp_rnn_weights_t w = {
      sizeof(mp_rnn_weights_t), 0, at(kW), at(kW + 512), at(kW + 1024), at(kW + 1280)};
  const mp_rnn_weight_grads_t dw = {
      sizeof(mp_rnn_weight_grads_t), 0, at(kDw), at(kDw + 512), at(kDw + 1024), at(kDw + 1280)};
  desc = mp_rnn_desc_default(MP_RNN_LSTM, batch, timesteps, kInput, kHidden, MP_FP16);
  weights = w, grads = dw;
  MP_INIT_STRUCT(&tensors);
  tensors.num_weights = 1, tensors.weights = &weights, tensors.weight_grads = &grads;
}

/** Sets the states and their gradients; x, y and dy are absent because they have no rows. */
static void set_states(void) {
  tensors.h0 = at(kH0), tensors.hn = at(kHn), tensors.dhn = at(kDhn), tensors.dh0 = at(kDh0);
  tensors.c0 = at(kC0), tensors.cn = at(kCn), tensors.dcn = at(kDcn), tensors.dc0 = at(kDc0);
  mp_memset(context, at(kH0), kFill, kH, NULL);
  mp_memset(context, at(kC0), kFill + 1, kC, NULL);
  mp_memset(context, at(kDhn), kFill + 2, kH, NULL);
  mp_memset(context, at(kDcn), kFill + 3, kC, NULL);
}

/** Returns whether `count` bytes at `offset` are `value`, and the bytes after them unwritten. */
static int are(size_t offset, size_t count, int value) {
  unsigned char bytes[512 + kBehind];
  mp_memcpy(context, bytes, at(offset), count + kBehind, NULL);
  mp_stream_sync(context, NULL);
  for (size_t i = 0; i < count + kBehind; i++)
    if (bytes[i] != (i < count ? value : kPattern)) return 0;
  return 1;
}

static int grads_are(int value) {
  return are(kDw, kGateRows * kInput * 2, value) &&
         are(kDw + 512, kGateRows * kHidden * 2, value) && are(kDw + 1024, kGateRows * 4, value) &&
         are(kDw + 1280, kGateRows * 4, value);
}

#define CALL(function) \
  (function(context, &desc, &tensors, at(kWorkspace), kWorkspaceBytes, NULL) == MP_SUCCESS)

static void check_weight_grads(const char *label) {
  check(CALL(mp_rnn_backward_weights) && grads_are(0), label);
  reset();
  desc.flags |= MP_RNN_FLAG_ACCUMULATE;
  check(CALL(mp_rnn_backward_weights) && grads_are(kPattern), label);
  reset();
}

/** Checks that states and gradients of states are copied unchanged. */
static void check_states(const char *label) {
  set_states();
  check(CALL(mp_rnn_forward_training) && are(kHn, kH, kFill) && are(kCn, kC, kFill + 1), label);
  reset();
  set_states();
  check(CALL(mp_rnn_forward_inference) && are(kHn, kH, kFill) && are(kCn, kC, kFill + 1), label);
  reset();
  set_states();
  check(CALL(mp_rnn_backward_data) && are(kDh0, kH, kFill + 2) && are(kDc0, kC, kFill + 3), label);
  reset();
  tensors.h0 = tensors.c0 = tensors.dhn = tensors.dcn = NULL;
  check(CALL(mp_rnn_forward_training) && are(kHn, kH, 0) && are(kCn, kC, 0), label);
  reset();
  check(CALL(mp_rnn_backward_data) && are(kDh0, kH, 0) && are(kDc0, kC, 0), label);
  reset();
}

static void test_no_steps(void) {
  set_arguments(kBatch, 0);
  check_states("no steps: h, c and their gradients are copied");
  check_weight_grads("no steps: weight gradients are zeroed or, if accumulated, unchanged");
}

/** Packed steps without sequences. */
static void test_packed_without_rows(void) {
  const int32_t sizes[] = {0, 0, 0};
  set_arguments(kBatch, 3);
  tensors.batch_sizes = sizes;
  tensors.x = at(0), tensors.y = at(0), tensors.dy = at(0);
  tensors.reserve = at(kReserve), tensors.reserve_bytes = kReserveBytes;
  check_states("packed steps without rows: h, c and their gradients are copied");
  check_weight_grads(
      "packed steps without rows: weight gradients are zeroed or, if accumulated, unchanged");
}

static void test_no_sequences(void) {
  set_arguments(0, 3);
  check(CALL(mp_rnn_forward_training) && CALL(mp_rnn_forward_inference), "no sequences: forward");
  check(CALL(mp_rnn_backward_data), "no sequences: backward");
  reset();
  check_weight_grads("no sequences: weight gradients are zeroed or, if accumulated, unchanged");
  set_states();
  check(CALL(mp_rnn_forward_training) && CALL(mp_rnn_backward_data) && are(kHn, kH, kPattern) &&
            are(kDh0, kH, kPattern),
        "no sequences: states are not written");
  reset();
}

/** Checks fields other than pointers in arrays of two weights and gradients. */
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
    set_arguments(kBatch, 0);
    desc.flags = MP_RNN_FLAG_BIDIRECTIONAL;
    mp_rnn_weights_t two[2] = {weights, weights};
    mp_rnn_weight_grads_t two_grads[2] = {grads, grads};
    tensors.num_weights = 2, tensors.weights = two, tensors.weight_grads = two_grads;
    two[cases[i].index].struct_size = two_grads[cases[i].index].struct_size = cases[i].struct_size;
    two[cases[i].index].reserved0 = two_grads[cases[i].index].reserved0 = cases[i].reserved0;
    FAILS(mp_rnn_forward_training,
          (context, &desc, &tensors, at(kWorkspace), kWorkspaceBytes, NULL), cases[i].status,
          cases[i].sentence);
    FAILS(mp_rnn_backward_weights,
          (context, &desc, &tensors, at(kWorkspace), kWorkspaceBytes, NULL), cases[i].status,
          cases[i].sentence);
  }
}

void test_rnn_sizes(void) {
  test_default();
  test_sizes();
  test_kernel_info();
  test_no_steps();
  test_packed_without_rows();
  test_no_sequences();
  test_array_elements();
}
