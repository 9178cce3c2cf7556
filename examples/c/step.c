/* One training step in mixed precision: forward, loss, backward, update.
 *
 *   cc step.c $(pkg-config --cflags --libs mpcore) -o step && ./step
 *
 * The network is one layer, logits = x w.  w and its gradient are fp16.  The optimizer updates the
 * master weights, which are fp32.
 */
#include <stdio.h>
#include <stdlib.h>

#include "mpcore.h"

#define CHECK(call) \
  if ((call) != MP_SUCCESS) exit((fprintf(stderr, "%s\n", mp_last_error()), 1))

enum { BATCH = 32, IN = 64, CLASSES = 16 };

static mp_context_t context;

static void *device_zeros(size_t bytes) {
  void *memory;
  CHECK(mp_malloc(context, &memory, bytes));
  CHECK(mp_memset(context, memory, 0, bytes, NULL));
  return memory;
}

/* Returns a list of one tensor with the shape of the weights. */
static mp_tensor_list_t list_of(void *data, mp_dtype_t dtype) {
  const int64_t numel = IN * CLASSES;
  mp_tensor_list_desc_t desc;
  mp_tensor_list_t list;
  MP_INIT_STRUCT(&desc);
  desc.dtype = dtype;
  desc.count = 1;
  desc.data = &data;
  desc.numel = &numel;
  CHECK(mp_tensor_list_create(&list, context, &desc));
  return list;
}

int main(void) {
  CHECK(mp_context_create(&context, NULL));

  /* Sample i is 1 at i and 0 elsewhere; its class is i mod CLASSES. */
  float x_host[BATCH * IN] = {0};
  int32_t labels_host[BATCH];
  for (int i = 0; i < BATCH; i++) {
    x_host[i * IN + i] = 1.0f;
    labels_host[i] = i % CLASSES;
  }
  float *staging = device_zeros(sizeof x_host), *row_loss = device_zeros(BATCH * 4);
  float *loss = device_zeros(4);
  int32_t *labels = device_zeros(sizeof labels_host);
  void *x = device_zeros(BATCH * IN * 2), *logits = device_zeros(BATCH * CLASSES * 2);
  CHECK(mp_memcpy(context, staging, x_host, sizeof x_host, NULL));
  CHECK(mp_cast(context, staging, MP_FP32, x, MP_FP16, BATCH * IN, NULL));
  CHECK(mp_memcpy(context, labels, labels_host, sizeof labels_host, NULL));

  void *w = device_zeros(IN * CLASSES * 2), *dw = device_zeros(IN * CLASSES * 2);
  void *master = device_zeros(IN * CLASSES * 4), *momentum = device_zeros(IN * CLASSES * 4);

  mp_scaler_config_t policy = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  mp_scaler_t scaler;
  CHECK(mp_scaler_create(&scaler, context, &policy));

  const mp_param_group_t group = mp_param_group_default(MP_OPT_SGD, 8.0f);
  mp_optimizer_desc_t sgd = mp_optimizer_desc_default(MP_OPT_SGD);
  sgd.groups = &group;
  sgd.grads = list_of(dw, MP_FP16);
  sgd.master = list_of(master, MP_FP32);
  sgd.model = list_of(w, MP_FP16);
  sgd.m = list_of(momentum, MP_FP32);
  mp_optimizer_t optimizer;
  CHECK(mp_optimizer_create(&optimizer, context, &sgd));

  const mp_gemm_desc_t forward = mp_gemm_desc_default(BATCH, CLASSES, IN, MP_FP16, MP_FP16);
  mp_gemm_desc_t wgrad = mp_gemm_desc_default(IN, CLASSES, BATCH, MP_FP16, MP_FP16);
  wgrad.op_a = MP_OP_T; /* x is BATCH x IN, its transpose IN x BATCH */
  wgrad.ld_a = IN;
  const mp_xent_desc_t xent = mp_xent_desc_default(BATCH, CLASSES, MP_FP16);
  mp_xent_tensors_t tensors;
  MP_INIT_STRUCT(&tensors);
  tensors.x = tensors.dx = logits; /* logits become their gradient, times S */
  tensors.labels = labels;
  tensors.loss_scale = mp_scaler_get_scale_address(scaler);
  tensors.row_loss = row_loss;
  tensors.loss = loss;

  float losses[2];
  for (int i = 0; i < 2; i++) { /* the second loss shows the effect of the first step */
    CHECK(mp_gemm(context, &forward, x, w, NULL, logits, NULL, NULL, 0, NULL));
    CHECK(mp_softmax_xent(context, &xent, &tensors, NULL));
    CHECK(mp_gemm(context, &wgrad, x, logits, NULL, dw, NULL, NULL, 0, NULL));
    CHECK(mp_scale_step(optimizer, scaler, NULL, NULL));
    CHECK(mp_memcpy(context, &losses[i], loss, sizeof *loss, NULL));
    CHECK(mp_stream_sync(context, NULL));
  }
  printf("loss %.4f, after one step %.4f\n", (double)losses[0], (double)losses[1]);

  mp_optimizer_destroy(optimizer);
  mp_scaler_destroy(scaler);
  mp_tensor_list_destroy(sgd.grads);
  mp_tensor_list_destroy(sgd.master);
  mp_tensor_list_destroy(sgd.model);
  mp_tensor_list_destroy(sgd.m);
  void *memory[] = {staging, row_loss, loss, labels, x, logits, w, dw, master, momentum};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) mp_free(context, memory[i]);
  mp_context_destroy(context);
  return losses[1] < losses[0] ? 0 : 1;
}
