/* A training step captured into a CUDA graph: one launch per step, for any number of kernels.
 *
 *   cc cuda_graph.c $(pkg-config --cflags --libs mpcore) -lcudart -o cuda_graph && ./cuda_graph
 *
 * The device decides whether a step is skipped, and updates the loss scale and the step counter, so
 * every replay makes the same launches.  The program runs the same training twice: call by call
 * and as replays of the graph.  A broken sample makes both runs skip a step.  The results must be
 * bitwise equal.  Requires the CUDA runtime; does nothing without a CUDA device.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpcore.h"

#define CHECK(call) \
  if ((call) != MP_SUCCESS) exit((fprintf(stderr, "cuda_graph: %s\n", mp_last_error()), 1))

enum { BATCH = 32, IN = 64, CLASSES = 16, STEPS = 20, BROKEN_STEP = 7 };
enum { WEIGHTS = IN * CLASSES };

static mp_context_t context;
static cudaStream_t stream;

static void check_cuda(cudaError_t error, const char *call) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "cuda_graph: %s: %s\n", call, cudaGetErrorString(error));
  exit(1);
}
#define CUDA(call) check_cuda(call, #call)

/* ---------------------------------------------------------------- training run */

/* logits = x w; w and its gradient are fp16, the master weights fp32. */
struct training {
  void *x, *logits, *w, *dw;
  float *row_loss, *loss;
  int32_t *labels;
  void *master;
  mp_tensor_list_t model_list, grad_list, master_list;
  mp_optimizer_t optimizer;
  mp_scaler_t scaler;
};

static void *device_zeros(size_t bytes) {
  void *memory;
  CHECK(mp_malloc(context, &memory, bytes));
  CHECK(mp_memset(context, memory, 0, bytes, stream));
  return memory;
}

static mp_tensor_list_t weight_list(void *data, mp_dtype_t dtype) {
  const int64_t numel = WEIGHTS;
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

/* Sample i is `fp16_value` at i and 0 elsewhere; its class is i mod CLASSES. */
static void set_sample(struct training *t, int i, uint16_t fp16_value) {
  uint16_t *const x = t->x;
  CHECK(mp_memcpy(context, x + i * IN + i, &fp16_value, sizeof fp16_value, stream));
  CHECK(mp_stream_sync(context, stream)); /* the value is on this function's stack */
}

static const uint16_t fp16_one = 0x3c00, fp16_infinity = 0x7c00;

static void create_training(struct training *t) {
  t->x = device_zeros(BATCH * IN * 2);
  t->logits = device_zeros(BATCH * CLASSES * 2);
  t->w = device_zeros(WEIGHTS * 2);
  t->dw = device_zeros(WEIGHTS * 2);
  t->row_loss = device_zeros(BATCH * 4);
  t->loss = device_zeros(4);
  t->labels = device_zeros(BATCH * 4);
  t->master = device_zeros(WEIGHTS * 4);

  int32_t labels[BATCH];
  for (int i = 0; i < BATCH; i++) {
    labels[i] = i % CLASSES;
    set_sample(t, i, fp16_one);
  }
  CHECK(mp_memcpy(context, t->labels, labels, sizeof labels, stream));
  CHECK(mp_stream_sync(context, stream));

  t->model_list = weight_list(t->w, MP_FP16);
  t->grad_list = weight_list(t->dw, MP_FP16);
  t->master_list = weight_list(t->master, MP_FP32);

  const mp_scaler_config_t policy = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  CHECK(mp_scaler_create(&t->scaler, context, &policy));
  const mp_param_group_t group = mp_param_group_default(MP_OPT_SGD, 2.0f);
  mp_optimizer_desc_t sgd = mp_optimizer_desc_default(MP_OPT_SGD);
  sgd.groups = &group;
  sgd.grads = t->grad_list;
  sgd.master = t->master_list;
  sgd.model = t->model_list;
  CHECK(mp_optimizer_create(&t->optimizer, context, &sgd)); /* allocates the momentum */
}

static void destroy_training(struct training *t) {
  mp_optimizer_destroy(t->optimizer);
  mp_scaler_destroy(t->scaler);
  mp_tensor_list_destroy(t->model_list);
  mp_tensor_list_destroy(t->grad_list);
  mp_tensor_list_destroy(t->master_list);
  void *memory[] = {t->x, t->logits, t->w, t->dw, t->row_loss, t->loss, t->labels, t->master};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) mp_free(context, memory[i]);
}

/* Enqueues the step to capture: forward, loss, backward, update. */
static void enqueue_step(const struct training *t) {
  const mp_gemm_desc_t forward = mp_gemm_desc_default(BATCH, CLASSES, IN, MP_FP16, MP_FP16);
  mp_gemm_desc_t wgrad = mp_gemm_desc_default(IN, CLASSES, BATCH, MP_FP16, MP_FP16);
  wgrad.op_a = MP_OP_T; /* x is BATCH x IN, its transpose IN x BATCH */
  wgrad.ld_a = IN;
  const mp_xent_desc_t xent = mp_xent_desc_default(BATCH, CLASSES, MP_FP16);
  mp_xent_tensors_t loss;
  MP_INIT_STRUCT(&loss);
  loss.x = loss.dx = t->logits; /* the gradient replaces the logits */
  loss.labels = t->labels;
  loss.loss_scale = mp_scaler_get_scale_address(t->scaler);
  loss.row_loss = t->row_loss;
  loss.loss = t->loss;
  CHECK(mp_gemm(context, &forward, t->x, t->w, NULL, t->logits, NULL, NULL, 0, stream));
  CHECK(mp_softmax_xent(context, &xent, &loss, stream));
  CHECK(mp_gemm(context, &wgrad, t->x, t->logits, NULL, t->dw, NULL, NULL, 0, stream));
  CHECK(mp_scale_step(t->optimizer, t->scaler, NULL, stream));
}

/* ---------------------------------------------------------------- the graph */

static cudaGraphExec_t capture_step(const struct training *t) {
  cudaGraph_t graph;
  cudaGraphExec_t step;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  enqueue_step(t); /* nothing runs yet */
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiateWithFlags(&step, graph, 0));
  CUDA(cudaGraphDestroy(graph));
  return step;
}

/* @param step  NULL: enqueue the calls one by one */
static void train(struct training *t, cudaGraphExec_t step) {
  for (int i = 0; i < STEPS; i++) {
    if (i == BROKEN_STEP) set_sample(t, 0, fp16_infinity);
    if (i == BROKEN_STEP + 1) set_sample(t, 0, fp16_one);
    if (step != NULL) {
      CUDA(cudaGraphLaunch(step, stream));
    } else {
      enqueue_step(t);
    }
  }
}

/* The values that must be equal in both runs. */
struct outcome {
  mp_scaler_state_t scaler;
  int64_t applied;
  float loss;
  float master[WEIGHTS];
};

static void read_outcome(const struct training *t, struct outcome *o) {
  memset(o, 0, sizeof *o);
  MP_INIT_STRUCT(&o->scaler);
  CHECK(mp_scaler_get_state_sync(t->scaler, &o->scaler, stream));
  CHECK(mp_optimizer_get_step_sync(t->optimizer, &o->applied, NULL, stream));
  CHECK(mp_memcpy(context, &o->loss, t->loss, sizeof o->loss, stream));
  CHECK(mp_memcpy(context, o->master, t->master, sizeof o->master, stream));
  CHECK(mp_stream_sync(context, stream));
}

int main(void) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    printf("cuda_graph: no CUDA device; nothing was captured\n");
    return 0;
  }
  mp_context_config_t config = mp_context_config_default();
  config.device = MP_DEVICE_CURRENT;
  CHECK(mp_context_create(&context, &config));
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  struct training called, replayed;
  create_training(&called);
  create_training(&replayed);
  /* One ordinary step first: the first launch of a kernel does setup that cannot be captured. */
  enqueue_step(&called);
  enqueue_step(&replayed);
  const cudaGraphExec_t step = capture_step(&replayed);
  train(&called, NULL);
  train(&replayed, step);

  static struct outcome wanted, got;
  read_outcome(&called, &wanted);
  read_outcome(&replayed, &got);
  const int equal = memcmp(&wanted, &got, sizeof got) == 0;
  printf("%d replays, %lld skipped, loss %.4f: %s\n", STEPS, (long long)got.scaler.skipped,
         (double)got.loss, equal ? "equal to separate calls" : "NOT equal to separate calls");

  CUDA(cudaGraphExecDestroy(step));
  destroy_training(&called);
  destroy_training(&replayed);
  CUDA(cudaStreamDestroy(stream));
  mp_context_destroy(context);
  return equal && got.scaler.skipped == 1 && got.applied == STEPS ? 0 : 1;
}
