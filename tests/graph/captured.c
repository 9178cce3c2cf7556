/* Compares a training whose steps are captured into a CUDA graph with one that calls
 * mp_graph_forward and _backward, with autocast and a skipped step.  One step runs before the
 * capture.  A separate program, because it calls the CUDA runtime. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpcore.h"

#define CHECK(call) \
  if ((call) != MP_SUCCESS) exit((fprintf(stderr, "captured: %s\n", mp_last_error()), 1))
#define CUDA(call) \
  if ((call) != cudaSuccess) exit((fprintf(stderr, "captured: %s failed\n", #call), 1))

enum { BATCH = 16, IN = 24, HIDDEN = 32, CLASSES = 8, STEPS = 12, BROKEN_STEP = 5 };
enum { WEIGHTS = IN * HIDDEN + HIDDEN * CLASSES };

static mp_context_t context;
static cudaStream_t stream;

struct training {
  mp_graph_t graph;
  int32_t x, labels, w1, w2, loss;
  float *images;
  int32_t *classes;
  mp_optimizer_t optimizer;
  mp_scaler_t scaler;
};

/* Adds a node without attributes; returns its first output. */
static int32_t node(mp_graph_t graph, const char *op, const char *name, int32_t a, int32_t b) {
  const int32_t inputs[] = {a, b};
  int32_t y;
  CHECK(mp_graph_add_node(graph, op, name, inputs, b < 0 ? 1 : 2, NULL, 0, &y, 1));
  return y;
}

static void describe(struct training *t) {
  const int64_t x[] = {BATCH, IN}, w1[] = {IN, HIDDEN}, w2[] = {HIDDEN, CLASSES};
  CHECK(mp_graph_create(&t->graph, context));
  CHECK(mp_graph_add_input(t->graph, "x", MP_FP32, 2, x, &t->x));
  CHECK(mp_graph_add_input(t->graph, "labels", MP_DTYPE_NONE, 1, x, &t->labels));
  CHECK(mp_graph_add_parameter(t->graph, "w1", 2, w1, &t->w1));
  CHECK(mp_graph_add_parameter(t->graph, "w2", 2, w2, &t->w2));
  const int32_t z = node(t->graph, "Linear", "fc1", t->x, t->w1);
  const int32_t h = node(t->graph, "Dropout", "drop", node(t->graph, "Gelu", "gelu", z, -1), -1);
  t->loss =
      node(t->graph, "SoftmaxXent", "loss", node(t->graph, "Linear", "fc2", h, t->w2), t->labels);
  CHECK(mp_graph_set_loss(t->graph, t->loss));
  mp_autocast_config_t config = mp_autocast_config_default(MP_FP16);
  config.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT;
  mp_autocast_t policy;
  CHECK(mp_autocast_create(&policy, &config));
  CHECK(mp_graph_set_autocast(t->graph, policy));
  CHECK(mp_graph_compile(t->graph));
  mp_autocast_destroy(policy);
}

static void create(struct training *t) {
  float values[WEIGHTS], images[BATCH * IN];
  int32_t classes[BATCH];
  describe(t);
  for (int i = 0; i < WEIGHTS; i++) values[i] = (float)(i * 37 % 64 - 32) / 256.0f;
  for (int i = 0; i < BATCH * IN; i++) images[i] = (float)(i * 29 % 32 - 16) / 16.0f;
  for (int i = 0; i < BATCH; i++) classes[i] = i % CLASSES;
  CHECK(mp_graph_write(t->graph, t->w1, values, stream));
  CHECK(mp_graph_write(t->graph, t->w2, values + IN * HIDDEN, stream));
  CHECK(mp_malloc(context, (void **)&t->images, sizeof images));
  CHECK(mp_malloc(context, (void **)&t->classes, sizeof classes));
  CHECK(mp_memcpy(context, t->images, images, sizeof images, stream));
  CHECK(mp_memcpy(context, t->classes, classes, sizeof classes, stream));
  CHECK(mp_graph_bind(t->graph, t->x, t->images));
  CHECK(mp_graph_bind(t->graph, t->labels, t->classes));

  mp_param_group_t group = mp_param_group_default(MP_OPT_SGD, 0.5f);
  group.beta1 = 0.0f;
  mp_optimizer_desc_t sgd = mp_optimizer_desc_default(MP_OPT_SGD);
  sgd.groups = &group;
  CHECK(mp_graph_get_lists(t->graph, &sgd.grads, &sgd.master, &sgd.model));
  CHECK(mp_optimizer_create(&t->optimizer, context, &sgd));
  const mp_scaler_config_t backoff = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  CHECK(mp_scaler_create(&t->scaler, context, &backoff));
  CHECK(mp_stream_sync(context, stream)); /* the values are on this stack */
}

static void destroy(struct training *t) {
  mp_optimizer_destroy(t->optimizer);
  mp_scaler_destroy(t->scaler);
  mp_graph_destroy(t->graph);
  mp_free(context, t->images);
  mp_free(context, t->classes);
}

static void enqueue_step(const struct training *t) {
  CHECK(mp_graph_forward(t->graph, MP_GRAPH_MODE_TRAINING, stream));
  CHECK(mp_graph_backward(t->graph, t->scaler, stream));
  CHECK(mp_scale_step(t->optimizer, t->scaler, NULL, stream));
}

static cudaGraphExec_t capture_step(const struct training *t) {
  cudaGraph_t captured;
  cudaGraphExec_t step;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  enqueue_step(t);
  CUDA(cudaStreamEndCapture(stream, &captured));
  CUDA(cudaGraphInstantiateWithFlags(&step, captured, 0));
  CUDA(cudaGraphDestroy(captured));
  return step;
}

/* @param step  NULL: calls instead of replays */
static void train(const struct training *t, cudaGraphExec_t step) {
  for (int i = 0; i < STEPS; i++) {
    const float pixel = i == BROKEN_STEP ? 1e6f : 1.0f; /* infinity in fp16 */
    CHECK(mp_memcpy(context, t->images, &pixel, sizeof pixel, stream));
    CHECK(mp_stream_sync(context, stream));
    if (step != NULL) {
      CUDA(cudaGraphLaunch(step, stream));
    } else {
      enqueue_step(t);
    }
  }
}

/* State in which both trainings must agree. */
struct outcome {
  mp_scaler_state_t scaler;
  int64_t step; /* determines the dropout masks */
  float loss, weights[WEIGHTS];
};

static void read_outcome(const struct training *t, struct outcome *o) {
  const int32_t tensors[] = {t->w1, t->w2, t->loss};
  float *const values[] = {o->weights, o->weights + IN * HIDDEN, &o->loss};
  const size_t counts[] = {IN * HIDDEN, HIDDEN * CLASSES, 1};
  memset(o, 0, sizeof *o);
  MP_INIT_STRUCT(&o->scaler);
  CHECK(mp_scaler_get_state_sync(t->scaler, &o->scaler, stream));
  CHECK(mp_graph_get_step_sync(t->graph, &o->step, stream));
  for (int i = 0; i < 3; i++) {
    mp_graph_tensor_t info;
    MP_INIT_STRUCT(&info);
    CHECK(mp_graph_get_tensor(t->graph, tensors[i], &info));
    CHECK(mp_memcpy(context, values[i], info.data, counts[i] * sizeof(float), stream));
  }
  CHECK(mp_stream_sync(context, stream));
}

int main(void) {
  mp_context_config_t config = mp_context_config_default();
  config.device = MP_DEVICE_CURRENT;
  CHECK(mp_context_create(&context, &config));
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  struct training called, replayed;
  static struct outcome first, wanted, got;
  create(&called);
  create(&replayed);
  enqueue_step(&called);
  enqueue_step(&replayed);
  read_outcome(&called, &first);
  const cudaGraphExec_t step = capture_step(&replayed);
  train(&called, NULL);
  train(&replayed, step);
  read_outcome(&called, &wanted);
  read_outcome(&replayed, &got);

  const int is_equal = memcmp(&wanted, &got, sizeof got) == 0;
  const int has_trained = memcmp(first.weights, got.weights, sizeof got.weights) != 0;
  const int is_good = is_equal && has_trained && got.scaler.skipped == 1 && got.step == STEPS + 1;
  printf("captured: %d replays, %lld skipped, loss %.4f: %s\n", STEPS,
         (long long)got.scaler.skipped, (double)got.loss,
         is_equal ? "as call by call" : "NOT as call by call");
  CUDA(cudaGraphExecDestroy(step));
  destroy(&called);
  destroy(&replayed);
  CUDA(cudaStreamDestroy(stream));
  mp_context_destroy(context);
  printf("%d passed, %d failed\n", is_good, !is_good);
  return !is_good;
}
