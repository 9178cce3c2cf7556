/* Trains a perceptron on Fashion-MNIST, in fp32 or, by calling mp_graph_set_autocast, in mixed
 * precision.
 *
 *   fashion FOLDER [fp32|fp16|bf16 [STEPS]]
 *
 * FOLDER contains train-images-idx3-ubyte and train-labels-idx1-ubyte, unpacked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpcore.h"
#define CHECK(call) \
  if ((call) != MP_SUCCESS) exit((fprintf(stderr, "fashion: %s\n", mp_last_error()), 1))
enum {
  IMAGES = 60000,
  PIXELS = 784,
  HIDDEN = 256,
  CLASSES = 10,
  BATCH = 100,
  STEPS = IMAGES / BATCH
};

static unsigned char images[16 + IMAGES * PIXELS],
    labels[8 + IMAGES]; /* after the idx header of 16 and 8 bytes */
static float values[BATCH * PIXELS > PIXELS *HIDDEN ? BATCH *PIXELS : PIXELS *HIDDEN];
static mp_graph_t graph;

static void load(const char *folder, const char *name, unsigned char *bytes, size_t size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  if (!file || fread(bytes, 1, size, file) != size)
    exit((fprintf(stderr, "fashion: cannot read %s\n", path), 2));
  fclose(file);
}

/* y = x w + b; t is x, w, b. */
static int32_t linear(const char *name, int32_t *t, int64_t in, int64_t out) {
  const int64_t extent[] = {in, out};
  int32_t y;
  CHECK(mp_graph_add_parameter(graph, "w", 2, extent, &t[1]));
  CHECK(mp_graph_add_parameter(graph, "b", 1, extent + 1, &t[2]));
  CHECK(mp_graph_add_node(graph, "Linear", name, t, 3, NULL, 0, &y, 1));
  return y;
}

/* Small values from a linear congruential generator; the biases stay 0. */
static void initialize(int32_t w, int count) {
  static uint32_t state = 1;
  for (int i = 0; i < count; i++) {
    state = state * 1664525u + 1013904223u;
    values[i] = ((float)(state >> 24) - 127.5f) / 2048.0f;
  }
  CHECK(mp_graph_write(graph, w, values, NULL));
}

int main(int argc, char **argv) {
  if (argc < 2) exit((fprintf(stderr, "fashion FOLDER [fp32|fp16|bf16 [STEPS]]\n"), 2));
  load(argv[1], "train-images-idx3-ubyte", images, sizeof images);
  load(argv[1], "train-labels-idx1-ubyte", labels, sizeof labels);
  const char *type = argc > 2 ? argv[2] : "fp16";
  const mp_dtype_t low = !strcmp(type, "fp32")   ? MP_FP32
                         : !strcmp(type, "bf16") ? MP_BF16
                                                 : MP_FP16;
  const int steps = argc > 3 && atoi(argv[3]) < STEPS ? atoi(argv[3]) : STEPS;

  mp_context_t context;
  CHECK(mp_context_create(&context, NULL));
  CHECK(mp_graph_create(&graph, context));
  const int64_t extent[] = {BATCH, PIXELS};
  int32_t first[3], second[3], xent[2], logits, loss;
  CHECK(mp_graph_add_input(graph, "x", MP_FP32, 2, extent, &first[0]));
  const int32_t hidden = linear("fc1", first, PIXELS, HIDDEN);
  CHECK(mp_graph_add_node(graph, "Relu", "relu", &hidden, 1, NULL, 0, &second[0], 1));
  xent[0] = logits = linear("fc2", second, HIDDEN, CLASSES);
  CHECK(mp_graph_add_input(graph, "labels", MP_DTYPE_NONE, 1, extent, &xent[1]));
  CHECK(mp_graph_add_node(graph, "SoftmaxXent", "loss", xent, 2, NULL, 0, &loss, 1));
  CHECK(mp_graph_set_loss(graph, loss));

  mp_autocast_config_t config = mp_autocast_config_default(low == MP_BF16 ? MP_BF16 : MP_FP16);
  config.flags = MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE; /* also on a CPU, although it is not faster */
  mp_autocast_t policy;
  CHECK(mp_autocast_create(&policy, &config));
  if (low != MP_FP32) CHECK(mp_graph_set_autocast(graph, policy)); /* mixed precision */
  CHECK(mp_graph_compile(graph));
  initialize(first[1], PIXELS * HIDDEN);
  initialize(second[1], HIDDEN * CLASSES);

  mp_param_group_t group = mp_param_group_default(MP_OPT_SGD, 0.1f);
  group.beta1 = 0.0f;
  mp_optimizer_desc_t sgd = mp_optimizer_desc_default(MP_OPT_SGD);
  sgd.groups = &group;
  CHECK(mp_graph_get_lists(graph, &sgd.grads, &sgd.master, &sgd.model));
  mp_optimizer_t optimizer;
  CHECK(mp_optimizer_create(&optimizer, context, &sgd));
  const mp_scaler_config_t dynamic = mp_autocast_scaler_default(low);
  mp_scaler_t scaler;
  CHECK(mp_scaler_create(&scaler, context, &dynamic));

  void *x, *y;
  CHECK(mp_malloc(context, &x, BATCH * PIXELS * sizeof(float)));
  CHECK(mp_malloc(context, &y, BATCH * sizeof(int32_t)));
  CHECK(mp_graph_bind(graph, first[0], x));
  CHECK(mp_graph_bind(graph, xent[1], y));
  float sum = 0;
  for (int step = 0; step < steps; step++) {
    int32_t batch[BATCH];
    for (int i = 0; i < BATCH * PIXELS; i++)
      values[i] = (float)images[16 + step * BATCH * PIXELS + i] / 256.0f;
    for (int i = 0; i < BATCH; i++) batch[i] = labels[8 + step * BATCH + i];
    CHECK(mp_memcpy(context, x, values, sizeof(float) * BATCH * PIXELS, NULL));
    CHECK(mp_memcpy(context, y, batch, sizeof batch, NULL));
    CHECK(mp_graph_forward(graph, MP_GRAPH_MODE_TRAINING, NULL));
    CHECK(mp_graph_backward(graph, scaler, NULL));
    CHECK(mp_scale_step(optimizer, scaler, NULL, NULL));
    if (step < steps - 100)
      continue; /* average the last hundred losses; the host waits only here */
    float value;
    mp_graph_tensor_t info;
    MP_INIT_STRUCT(&info);
    CHECK(mp_graph_get_tensor(graph, loss, &info));
    CHECK(mp_memcpy(context, &value, info.data, sizeof value, NULL));
    CHECK(mp_stream_sync(context, NULL));
    sum += value;
  }
  printf("%s: loss %.4f\n", type, (double)sum / (steps < 100 ? steps : 100));
  mp_optimizer_destroy(optimizer), mp_scaler_destroy(scaler), mp_graph_destroy(graph),
      mp_autocast_destroy(policy);
  mp_free(context, x), mp_free(context, y), mp_context_destroy(context);
  return 0;
}
