/* A training loop in mixed precision, with checkpoint and resume.
 *
 *   train [--device host|auto|N] [--steps N] [--checkpoint FILE] [--resume FILE]
 *
 *   --device      the CPU; the GPU if there is one, else the CPU (default); or GPU N
 *   --steps       train up to this step (default 120)
 *   --checkpoint  write FILE after the last step
 *   --resume      continue from FILE, bitwise equal to one uninterrupted run
 *
 * The network is logits = relu(x w1 + b1) w2.  Weights, activations and gradients are fp16, master
 * weights and optimizer state fp32.  To show skipped steps, the scaler grows after every 8 clean
 * steps until gradients overflow, and one sample of step 33 is broken.  The last line printed is a
 * hash of the master weights.  The examples in the other languages train the same network on the
 * same data, and on the host target they print the same hash.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpcore.h"

#define CHECK(call) \
  if ((call) != MP_SUCCESS) exit((fprintf(stderr, "train: %s\n", mp_last_error()), 1))

enum { BATCH = 32, IN = 24, HIDDEN = 32, CLASSES = 8, BROKEN_STEP = 33 };
enum { W1, B1, W2, NUM_PARAMETERS };

static const int64_t numels[NUM_PARAMETERS] = {
    [W1] = IN * HIDDEN, [B1] = HIDDEN, [W2] = HIDDEN * CLASSES};
/* The bias gradient is computed by an epilogue, in fp32. */
static const mp_dtype_t grad_dtypes[NUM_PARAMETERS] = {MP_FP16, MP_FP32, MP_FP16};
enum { LARGEST = IN * HIDDEN }; /* elements of the largest tensor; a batch is not larger */

struct trainer {
  mp_context_t context;
  void *staging; /* fp32 values before conversion to fp16 */
  void *x, *h, *logits, *dh;
  void *labels, *row_loss, *loss;
  void *model[NUM_PARAMETERS], *grad[NUM_PARAMETERS];
  void *master[NUM_PARAMETERS];
  mp_tensor_list_t models, grads, masters;
  mp_optimizer_t optimizer;
  mp_scaler_t scaler;
  uint32_t random; /* state of the random number generator; part of a checkpoint */
};

static void fail(const char *what, const char *argument) {
  fprintf(stderr, "train: %s %s\n", what, argument);
  exit(2);
}

/* ---------------------------------------------------------------- data */

/* Linear congruential generator; returns its upper 8 bits, -128 to 127. */
static int next_random(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return (int)(*state >> 24) - 128;
}

static void upload_fp16(struct trainer *t, void *dst, const float *src, int64_t count) {
  CHECK(mp_memcpy(t->context, t->staging, src, (size_t)count * sizeof(float), NULL));
  CHECK(mp_cast(t->context, t->staging, MP_FP32, dst, MP_FP16, count, NULL));
}

/* Uploads a batch.  A sample is noise around the center of its class, in multiples of 2^-6, which
 * are exact in fp16. */
static void load_batch(struct trainer *t, int step) {
  float x[BATCH * IN];
  int32_t labels[BATCH];
  for (int i = 0; i < BATCH; i++) {
    labels[i] = (next_random(&t->random) + 128) % CLASSES;
    uint32_t center = (uint32_t)labels[i];
    for (int j = 0; j < IN; j++) {
      x[i * IN + j] = (float)(next_random(&center) + next_random(&t->random)) / 64.0f;
    }
  }
  if (step == BROKEN_STEP) x[0] = 1e6f; /* infinity in fp16 */
  upload_fp16(t, t->x, x, BATCH * IN);
  CHECK(mp_memcpy(t->context, t->labels, labels, sizeof labels, NULL));
}

/* ---------------------------------------------------------------- network */

static void gemm(struct trainer *t, const mp_gemm_desc_t *desc, const void *a, const void *b,
                 void *d, const mp_epilogue_t *epilogue) {
  CHECK(mp_gemm(t->context, desc, a, b, NULL, d, epilogue, NULL, 0, NULL));
}

static void forward(struct trainer *t) {
  mp_epilogue_t relu = mp_epilogue_default();
  relu.activation = MP_ACT_RELU;
  relu.bias = t->model[B1];
  relu.dtype_bias = MP_FP16;
  const mp_gemm_desc_t first = mp_gemm_desc_default(BATCH, HIDDEN, IN, MP_FP16, MP_FP16);
  gemm(t, &first, t->x, t->model[W1], t->h, &relu);
  const mp_gemm_desc_t second = mp_gemm_desc_default(BATCH, CLASSES, HIDDEN, MP_FP16, MP_FP16);
  gemm(t, &second, t->h, t->model[W2], t->logits, NULL);
}

/* Computes the loss and replaces the logits with their gradient times S. */
static void loss(struct trainer *t) {
  const mp_xent_desc_t desc = mp_xent_desc_default(BATCH, CLASSES, MP_FP16);
  mp_xent_tensors_t tensors;
  MP_INIT_STRUCT(&tensors);
  tensors.x = tensors.dx = t->logits;
  tensors.labels = t->labels;
  tensors.loss_scale = mp_scaler_get_scale_address(t->scaler);
  tensors.row_loss = t->row_loss;
  tensors.loss = t->loss;
  CHECK(mp_softmax_xent(t->context, &desc, &tensors, NULL));
}

static void backward(struct trainer *t) {
  const void *dlogits = t->logits;

  mp_gemm_desc_t dw2 = mp_gemm_desc_default(HIDDEN, CLASSES, BATCH, MP_FP16, MP_FP16);
  dw2.op_a = MP_OP_T; /* h is BATCH x HIDDEN */
  dw2.ld_a = HIDDEN;
  gemm(t, &dw2, t->h, dlogits, t->grad[W2], NULL);

  mp_gemm_desc_t dh = mp_gemm_desc_default(BATCH, HIDDEN, CLASSES, MP_FP16, MP_FP16);
  dh.op_b = MP_OP_T; /* w2 is HIDDEN x CLASSES */
  dh.ld_b = CLASSES;
  mp_epilogue_t drelu = mp_epilogue_default();
  drelu.activation = MP_ACT_DRELU;
  drelu.aux = t->h; /* relu'(z) = relu'(relu(z)), so z is not stored */
  drelu.dbias = t->grad[B1];
  drelu.stats.found_inf = mp_scaler_get_found_inf_address(t->scaler);
  gemm(t, &dh, dlogits, t->model[W2], t->dh, &drelu);

  mp_gemm_desc_t dw1 = mp_gemm_desc_default(IN, HIDDEN, BATCH, MP_FP16, MP_FP16);
  dw1.op_a = MP_OP_T;
  dw1.ld_a = IN;
  gemm(t, &dw1, t->x, t->dh, t->grad[W1], NULL);
}

/* Checks, unscales, clips and applies the gradients, writes the fp16 weights, adjusts S. */
static void update(struct trainer *t) {
  mp_step_options_t options = mp_step_options_default();
  options.max_grad_norm = 1.0f;
  CHECK(mp_scale_step(t->optimizer, t->scaler, &options, NULL));
}

/* ---------------------------------------------------------------- set-up */

static void *allocate(struct trainer *t, size_t bytes) {
  void *memory;
  CHECK(mp_malloc(t->context, &memory, bytes));
  CHECK(mp_memset(t->context, memory, 0, bytes, NULL));
  return memory;
}

static mp_tensor_list_t make_list(struct trainer *t, void **data, mp_dtype_t dtype,
                                  const mp_dtype_t *dtypes) {
  mp_tensor_list_desc_t desc;
  mp_tensor_list_t list;
  MP_INIT_STRUCT(&desc);
  desc.dtype = dtype;
  desc.dtypes = dtypes;
  desc.count = NUM_PARAMETERS;
  desc.numel = numels;
  desc.data = data;
  for (int i = 0; i < NUM_PARAMETERS; i++) {
    const mp_dtype_t element = dtypes ? dtypes[i] : dtype;
    data[i] = allocate(t, (size_t)numels[i] * mp_dtype_size(element));
  }
  CHECK(mp_tensor_list_create(&list, t->context, &desc));
  return list;
}

static void create(struct trainer *t, int device) {
  mp_context_config_t config = mp_context_config_default();
  config.device = device;
  CHECK(mp_context_create(&t->context, &config));

  t->staging = allocate(t, LARGEST * sizeof(float));
  t->x = allocate(t, BATCH * IN * 2);
  t->h = allocate(t, BATCH * HIDDEN * 2);
  t->dh = allocate(t, BATCH * HIDDEN * 2);
  t->logits = allocate(t, BATCH * CLASSES * 2);
  t->labels = allocate(t, BATCH * sizeof(int32_t));
  t->row_loss = allocate(t, BATCH * sizeof(float));
  t->loss = allocate(t, sizeof(float));

  t->models = make_list(t, t->model, MP_FP16, NULL);
  t->grads = make_list(t, t->grad, MP_DTYPE_NONE, grad_dtypes);
  t->masters = make_list(t, t->master, MP_FP32, NULL);

  mp_param_group_t group;
  mp_optimizer_desc_t adamw;
  CHECK(
      mp_optimizer_desc_from_name("adamw", &adamw, sizeof adamw, &group, sizeof group, 0.015625f));
  group.weight_decay = 0.0078125f;
  adamw.grads = t->grads;
  adamw.master = t->masters;
  adamw.model = t->models;
  CHECK(mp_optimizer_create(&t->optimizer, t->context, &adamw)); /* allocates the moments */

  mp_scaler_config_t backoff = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  backoff.growth_interval = 8;
  CHECK(mp_scaler_create(&t->scaler, t->context, &backoff));

  t->random = 1;
  float weights[LARGEST];
  for (int i = 0; i < NUM_PARAMETERS; i++) {
    for (int j = 0; j < numels[i]; j++) {
      weights[j] = i == B1 ? 0.0f : (float)next_random(&t->random) / 512.0f;
    }
    CHECK(mp_memcpy(t->context, t->master[i], weights, (size_t)numels[i] * sizeof(float), NULL));
  }
  CHECK(mp_optimizer_write_model(t->optimizer, NULL)); /* the fp16 weights from the masters */
}

static void destroy_list(struct trainer *t, mp_tensor_list_t list, void **data) {
  mp_tensor_list_destroy(list);
  for (int i = 0; i < NUM_PARAMETERS; i++) mp_free(t->context, data[i]);
}

static void destroy(struct trainer *t) {
  mp_scaler_destroy(t->scaler);
  mp_optimizer_destroy(t->optimizer);
  destroy_list(t, t->models, t->model);
  destroy_list(t, t->grads, t->grad);
  destroy_list(t, t->masters, t->master);
  void *buffers[] = {t->staging, t->x, t->h, t->dh, t->logits, t->labels, t->row_loss, t->loss};
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) mp_free(t->context, buffers[i]);
  mp_context_destroy(t->context);
}

/* ---------------------------------------------------------------- results and checkpoints */

static void download(struct trainer *t, void *dst, const void *src, size_t bytes) {
  CHECK(mp_memcpy(t->context, dst, src, bytes, NULL));
  CHECK(mp_stream_sync(t->context, NULL));
}

static mp_scaler_state_t scaler_state(struct trainer *t) {
  mp_scaler_state_t state;
  MP_INIT_STRUCT(&state);
  CHECK(mp_scaler_get_state_sync(t->scaler, &state, NULL));
  return state;
}

static void print_progress(struct trainer *t, int step) {
  const mp_scaler_state_t state = scaler_state(t);
  float value;
  download(t, &value, t->loss, sizeof value);
  printf("step %d  loss %.4f  scale %.0f  skipped %d\n", step, (double)value, (double)state.scale,
         (int)state.skipped);
}

/* FNV-1a hash of the bytes of the master weights. */
static uint64_t hash_weights(struct trainer *t) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int i = 0; i < NUM_PARAMETERS; i++) {
    unsigned char bytes[LARGEST * sizeof(float)];
    const size_t size = (size_t)numels[i] * sizeof(float);
    download(t, bytes, t->master[i], size);
    for (size_t j = 0; j < size; j++) hash = (hash ^ bytes[j]) * 0x100000001b3u;
  }
  return hash;
}

/* Reads or writes a file: the state of the random number generator, then the checkpoint. */
static void transfer(FILE *file, const char *path, struct trainer *t, void *checkpoint,
                     size_t bytes, int is_write) {
  if (!file) fail("cannot open", path);
  const size_t done =
      is_write ? fwrite(&t->random, sizeof t->random, 1, file) + fwrite(checkpoint, bytes, 1, file)
               : fread(&t->random, sizeof t->random, 1, file) + fread(checkpoint, bytes, 1, file);
  if (fclose(file) != 0 || done != 2) fail(is_write ? "cannot write" : "invalid checkpoint", path);
}

static void *allocate_checkpoint(struct trainer *t, size_t *bytes) {
  CHECK(mp_optimizer_checkpoint_size(t->optimizer, t->scaler, bytes));
  void *checkpoint = malloc(*bytes);
  if (!checkpoint) fail("out of memory for", "a checkpoint");
  return checkpoint;
}

static void save(struct trainer *t, const char *path) {
  size_t bytes;
  void *checkpoint = allocate_checkpoint(t, &bytes);
  CHECK(mp_optimizer_save_sync(t->optimizer, t->scaler, checkpoint, bytes, NULL));
  transfer(fopen(path, "wb"), path, t, checkpoint, bytes, 1);
  free(checkpoint);
}

/* Returns the number of steps done. */
static int resume(struct trainer *t, const char *path) {
  size_t bytes;
  void *checkpoint = allocate_checkpoint(t, &bytes);
  transfer(fopen(path, "rb"), path, t, checkpoint, bytes, 0);
  CHECK(mp_optimizer_restore_sync(t->optimizer, t->scaler, checkpoint, bytes, NULL));
  free(checkpoint);
  return (int)scaler_state(t).steps;
}

/* ---------------------------------------------------------------- main */

int main(int argc, char **argv) {
  int device = MP_DEVICE_AUTO, steps = 120, step = 0;
  const char *checkpoint_path = NULL, *resume_path = NULL;
  for (int i = 1; i + 1 < argc; i += 2) {
    const char *name = argv[i], *value = argv[i + 1];
    if (strcmp(name, "--device") == 0) {
      device = strcmp(value, "host") == 0   ? MP_DEVICE_HOST
               : strcmp(value, "auto") == 0 ? MP_DEVICE_AUTO
                                            : atoi(value);
    } else if (strcmp(name, "--steps") == 0) {
      steps = atoi(value);
    } else if (strcmp(name, "--checkpoint") == 0) {
      checkpoint_path = value;
    } else if (strcmp(name, "--resume") == 0) {
      resume_path = value;
    } else {
      fail("unknown argument", name);
    }
  }
  if (argc % 2 == 0) fail("missing value after", argv[argc - 1]);

  struct trainer trainer;
  create(&trainer, device);
  if (resume_path) step = resume(&trainer, resume_path);
  while (step < steps) {
    step++;
    load_batch(&trainer, step);
    forward(&trainer);
    loss(&trainer);
    backward(&trainer);
    update(&trainer);
    if (step % 10 == 0) print_progress(&trainer, step); /* the host waits only here */
  }
  if (checkpoint_path) save(&trainer, checkpoint_path);
  printf("weights %016llx\n", (unsigned long long)hash_weights(&trainer));
  destroy(&trainer);
  return 0;
}
