/* Trains a GPT-2 on a text, in fp32 or mixed precision, and generates text.
 *
 *   gpt [OPTIONS] FILE        gpt --help lists the options
 *
 * FILE is a text of 96 characters: line ends and printable ASCII.  With --gpt2, it contains tokens
 * of 16 bits, as written by the scripts of nanoGPT.
 *
 * Saved files have the parameter names and shapes of GPT-2, and a checkpoint of mpcore: a resumed
 * run has the bits of an uninterrupted one. */
#define _POSIX_C_SOURCE 200112L /* clock_gettime */
#include <math.h>
#include <time.h>

#include "program.h"
#include "safetensors.h"

#define MIB(bytes) ((double)(bytes) / 1048576)

static program_option options[] = {
    {"--dtype", "fp16", "type of products and activations: fp32, fp16 or bf16"},
    {"--steps", "200", "steps: a tenth of warm-up, then cosine decay to a tenth of the rate"},
    {"--stop", "", "last step of this run, if it is not the last of the schedule"},
    {"--batch", "16", "sequences per step"},
    {"--rate", "0.01", "largest learning rate"},
    {"--layers", "2", "transformer blocks"},
    {"--width", "64", "size of a token's vector"},
    {"--heads", "2", "attention heads per block"},
    {"--context", "64", "tokens per sequence"},
    {"--gpt2", "", "124M, 355M, 774M or 1558M: the shape of a GPT-2, for tokens"},
    {"--load", "", "safetensors file: weights, or a run to continue"},
    {"--save", "", "safetensors file to write at the end"},
    {"--sample", "200", "tokens to generate at the end"},
    {"--prompt", "In the beginning", "text to continue"},
    {"--logits", "", "safetensors file for the logits of the first tokens of FILE"}};

static float rate;
static int64_t last_step, sampled;

/* Returns the name of FILE. */
static const char *read_arguments(int argc, char **argv) {
  static const char usage[] = "gpt [OPTIONS] FILE";
  const int at = read_options(argc, argv, 1, usage);
  const int is_alone = read_options(argc, argv, at + 1, usage) == argc; /* after more options */
  char *end;
  rate = strtof(option("--rate"), &end);
  check("--rate", rate > 0 && !*end ? NULL : "must be a number > 0");
  last_step = integer(*option("--stop") ? "--stop" : "--steps", 0);
  sampled = integer("--sample", 0);
  check("FILE", at < argc && is_alone ? NULL : "must be one argument; see --help");
  return argv[at];
}

/* ---------------------------------------------------------------- network */

enum { CHARACTERS = 96, GPT2_TOKENS = 50257, GPT2_CONTEXT = 1024, MAX_PARAMETERS = 4 + 12 * 96 };

static mp_dtype_t low; /* type of products and activations */
static int32_t *text;
static int64_t text_length, layers, width, heads, length, classes, batch;

static void read_shape(void) {
  static const char *const names[] = {"124M", "355M", "774M", "1558M"};
  static const int64_t gpt2[][3] = {{12, 768, 12}, {24, 1024, 16}, {36, 1280, 20}, {48, 1600, 25}};
  const char *const type = option("--dtype");
  for (low = MP_FP16; low < MP_FP32 && strcmp(mp_dtype_name(low), type);)
    low = (mp_dtype_t)(low + 1);
  check("--dtype", strcmp(mp_dtype_name(low), type) ? "must be fp32, fp16 or bf16" : NULL);
  layers = integer("--layers", 0), width = integer("--width", 0), heads = integer("--heads", 0);
  length = integer("--context", 0), classes = CHARACTERS, batch = integer("--batch", 0);
  if (!*option("--gpt2")) return;
  size_t i = 0;
  for (; i < LENGTH(names) && strcmp(names[i], option("--gpt2"));) i++;
  check("--gpt2", i < LENGTH(names) ? NULL : "must be 124M, 355M, 774M or 1558M");
  layers = gpt2[i][0], width = gpt2[i][1], heads = gpt2[i][2];
  length = GPT2_CONTEXT, classes = GPT2_TOKENS;
}

struct model {
  mp_graph_t graph;
  int32_t tokens, labels, output; /* inputs; loss or logits */
  void *device_tokens;            /* and labels */
  int count;
  st_tensor parameters[MAX_PARAMETERS]; /* without data */
  int32_t ids[MAX_PARAMETERS];          /* in the graph */
};

/* Adds a matrix, or a vector if rows = 0. */
static int32_t add_parameter(struct model *m, const char *part, const char *suffix, int64_t rows,
                             int64_t columns) {
  check("--layers", m->count < MAX_PARAMETERS ? NULL : "must be at most 96");
  st_tensor *p = &m->parameters[m->count];
  int32_t *id = &m->ids[m->count++];
  char *name = allocate(64);
  snprintf(name, 64, "%s.%s", part, suffix);
  *p = (st_tensor){name, "F32", 1, {columns}, NULL, (size_t)columns * sizeof(float)};
  if (rows > 0) *p = (st_tensor){name, "F32", 2, {rows, columns}, NULL, p->bytes * (size_t)rows};
  CHECK(mp_graph_add_parameter(m->graph, name, p->rank, p->shape, id));
  return *id;
}

/* Adds a node with up to 4 inputs; the last ones can be -1. */
static int32_t add_node(struct model *m, const char *op, const char *name, int32_t a, int32_t b,
                        int32_t c, int32_t d, const mp_graph_attribute_t *attributes,
                        uint32_t num_attributes) {
  const int32_t inputs[] = {a, b, c, d};
  const uint32_t count = d >= 0 ? 4 : c >= 0 ? 3 : b >= 0 ? 2 : 1;
  int32_t y;
  CHECK(mp_graph_add_node(m->graph, op, name, inputs, count, attributes, num_attributes, &y, 1));
  return y;
}

/* Returns e.g. "h.0.ln_1". */
static const char *in_layer(int64_t layer, const char *part) {
  static char name[40];
  snprintf(name, sizeof name, "h.%d.%s", (int)layer, part);
  return name;
}

/* Adds a Linear or, if in = 0, a LayerNorm, and its parameters. */
static int32_t add_layer(struct model *m, int32_t x, const char *part, int64_t in, int64_t out) {
  const int32_t w = add_parameter(m, part, "weight", in, out);
  const int32_t b = add_parameter(m, part, "bias", 0, out);
  return add_node(m, in > 0 ? "Linear" : "LayerNorm", part, x, w, b, -1, NULL, 0);
}

/* Describes and compiles the network: with its loss or, for one sequence, with its logits. */
static struct model *make_model(int is_training) {
  struct model *m = allocate(sizeof *m);
  CHECK(mp_graph_create(&m->graph, context));
  const int64_t extent[] = {is_training ? batch : 1, length};
  const mp_graph_attribute_t causal[] = {mp_graph_int("heads", heads), mp_graph_int("causal", 1)};
  const mp_graph_attribute_t transposed = mp_graph_int("transposed", 1);
  CHECK(mp_graph_add_input(m->graph, "tokens", MP_DTYPE_NONE, 2, extent, &m->tokens));
  const int32_t wte = add_parameter(m, "wte", "weight", classes, width);
  const int32_t wpe = add_parameter(m, "wpe", "weight", length, width);
  int32_t x = add_node(m, "Embedding", "wte", wte, m->tokens, -1, -1, NULL, 0);
  x = add_node(m, "Add", "positions", x, wpe, -1, -1, NULL, 0);
  for (int64_t i = 0; i < layers; i++) {
    int32_t h = add_layer(m, x, in_layer(i, "ln_1"), 0, width);
    h = add_layer(m, h, in_layer(i, "attn.c_attn"), width, 3 * width);
    h = add_node(m, "Attention", in_layer(i, "attn"), h, -1, -1, -1, causal, 2);
    h = add_layer(m, h, in_layer(i, "attn.c_proj"), width, width);
    x = add_node(m, "Add", in_layer(i, "attn/residual"), x, h, -1, -1, NULL, 0);
    h = add_layer(m, x, in_layer(i, "ln_2"), 0, width);
    h = add_layer(m, h, in_layer(i, "mlp.c_fc"), width, 4 * width);
    h = add_node(m, "Gelu", in_layer(i, "mlp.gelu"), h, -1, -1, -1, NULL, 0);
    h = add_layer(m, h, in_layer(i, "mlp.c_proj"), 4 * width, width);
    x = add_node(m, "Add", in_layer(i, "mlp/residual"), x, h, -1, -1, NULL, 0);
  }
  x = add_layer(m, x, "ln_f", 0, width);
  if (is_training) { /* the table is also the last layer */
    CHECK(mp_graph_add_input(m->graph, "labels", MP_DTYPE_NONE, 2, extent, &m->labels));
    m->output = add_node(m, "LinearXent", "loss", x, wte, -1, m->labels, NULL, 0);
    CHECK(mp_graph_set_loss(m->graph, m->output));
  } else {
    m->output = add_node(m, "Linear", "logits", x, wte, -1, -1, &transposed, 1);
    CHECK(mp_graph_add_output(m->graph, m->output));
  }
  mp_autocast_t policy;
  mp_autocast_config_t config = mp_autocast_config_default(low == MP_FP32 ? MP_FP16 : low);
  config.flags = MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE; /* also on a CPU, although it is not faster */
  if (!is_training) config.flags |= MP_AUTOCAST_FLAG_KEEP_IO; /* fp32 logits */
  CHECK(mp_autocast_create(&policy, &config));
  if (low != MP_FP32) CHECK(mp_graph_set_autocast(m->graph, policy));
  CHECK(mp_graph_compile(m->graph));
  mp_autocast_destroy(policy);
  CHECK(mp_malloc(context, &m->device_tokens, 2 * (size_t)(extent[0] * length) * sizeof *text));
  CHECK(mp_graph_bind(m->graph, m->tokens, m->device_tokens));
  return m;
}

/* Linear congruential generator; returns its upper bits. */
static uint32_t next_random(uint32_t *state, int bits) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> (32 - bits);
}

/* Sets initial weights: 1 in norms, 0 in other vectors, approximately normal numbers in matrices,
 * smaller ones in terms of residual sums.  The sum of 12 bytes has mean 1530 and deviation 256. */
static void initialize(struct model *m) {
  uint32_t state = 1;
  for (int i = 0; i < m->count; i++) {
    const st_tensor *p = &m->parameters[i];
    const double terms = strstr(p->name, "c_proj") ? 2 * (double)layers : 1;
    const float deviation = (float)(0.02 / sqrt(terms));
    const float constant = strstr(p->name, ".weight") ? 1 : 0; /* of a vector */
    float *values = allocate(p->bytes);
    for (size_t k = 0; k < p->bytes / sizeof *values; k++) {
      int sum = -1530;
      for (int n = 0; n < 12 && p->rank == 2; n++) sum += (int)next_random(&state, 8);
      values[k] = p->rank == 2 ? (float)sum / 256 * deviation : constant;
    }
    CHECK(mp_graph_write(m->graph, m->ids[i], values, NULL));
    free(values);
  }
}

static int32_t token_of(int character) {
  return character == '\n' ? 0 : character >= ' ' && character <= '~' ? character - ' ' + 1 : 1;
}

/* Reads characters, or tokens of 16 bits. */
static void read_text(const char *path) {
  size_t size;
  unsigned char *bytes = (unsigned char *)read_file(path, &size);
  const int has_characters = classes == CHARACTERS;
  text_length = (int64_t)(has_characters ? size : size / 2);
  text = allocate((size_t)text_length * sizeof *text);
  for (int64_t i = 0; i < text_length; i++) {
    text[i] = has_characters ? token_of(bytes[i]) : bytes[2 * i] + 256 * bytes[2 * i + 1];
    check(path, text[i] < classes ? NULL : "contains a token >= 50257");
  }
  free(bytes);
  check(path, text_length > length ? NULL : "must be longer than a context");
}

/* Copies a batch to the device: sequences from positions that depend only on the step. */
static void load_batch(int64_t step, int32_t *tokens, int32_t *labels) {
  uint32_t state = (uint32_t)step * 2654435761u;
  const size_t bytes = (size_t)length * sizeof *text;
  for (int64_t i = 0; i < batch; i++) {
    const uint64_t high = next_random(&state, 24), next = next_random(&state, 24);
    const int32_t *from = text + (high << 24 | next) % (uint64_t)(text_length - length);
    CHECK(mp_memcpy(context, tokens + i * length, from, bytes, NULL));
    CHECK(mp_memcpy(context, labels + i * length, from + 1, bytes, NULL));
  }
}

/* ---------------------------------------------------------------- optimizer and files */

static struct model *net;
static mp_optimizer_t optimizer;
static mp_scaler_t scaler;
static const char *const kCheckpoint = "mpcore.checkpoint"; /* name of its tensor in files */

static void make_optimizer(void) {
  const int32_t steps = integer("--steps", 0);
  mp_param_group_t groups[2]; /* matrices, vectors */
  mp_optimizer_desc_t adamw;
  CHECK(mp_optimizer_desc_from_name("adamw", &adamw, sizeof adamw, groups, sizeof *groups, rate));
  groups[0].beta2 = 0.95f;
  groups[0].weight_decay = 0.1f;
  groups[0].lr_schedule = MP_LR_COSINE;
  groups[0].warmup_steps = steps / 10;
  groups[0].decay_steps = steps > 0 ? steps - steps / 10 : 1;
  groups[0].lr_end = rate / 10;
  groups[1] = groups[0];
  groups[1].weight_decay = 0;
  uint32_t group_of[MAX_PARAMETERS];
  for (int i = 0; i < net->count; i++) group_of[i] = net->parameters[i].rank == 1;
  adamw.groups = groups, adamw.num_groups = 2;
  adamw.tensor_group = group_of;
  CHECK(mp_graph_get_lists(net->graph, &adamw.grads, &adamw.master, &adamw.model));
  CHECK(mp_optimizer_create(&optimizer, context, &adamw));
  const mp_scaler_config_t config = mp_autocast_scaler_default(low); /* fp16: with backoff */
  CHECK(mp_scaler_create(&scaler, context, &config));
}

static uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a of the weights, to compare runs */

/* Returns host copies of the parameters, and hashes them. */
static st_tensor *download_all(void) {
  st_tensor *all = allocate(((size_t)net->count + 1) * sizeof *all);
  for (int i = 0; i < net->count; i++) {
    all[i] = net->parameters[i];
    unsigned char *bytes = allocate(all[i].bytes);
    all[i].data = bytes;
    download(bytes, data_of(net->graph, net->ids[i]), all[i].bytes);
    for (size_t k = 0; k < all[i].bytes; k++) hash = (hash ^ bytes[k]) * 0x100000001b3u;
  }
  return all;
}

/* Writes the weights, and a checkpoint with the states of optimizer and scaler. */
static void save(st_tensor *all, const char *path) {
  size_t bytes;
  CHECK(mp_optimizer_checkpoint_size(optimizer, scaler, &bytes));
  void *data = allocate(bytes);
  CHECK(mp_optimizer_save_sync(optimizer, scaler, data, bytes, NULL));
  all[net->count] = (st_tensor){kCheckpoint, "U8", 1, {(int64_t)bytes}, data, bytes};
  check(path, st_write(path, all, net->count + 1, (const char *const[]){"format", "pt", NULL}));
  free(data);
}

/* Loads weights and, if the file has them, the states of optimizer and scaler. */
static void load(const char *path) {
  st_file file;
  check(path, st_read(path, &file));
  for (int i = 0; i < net->count; i++) {
    const st_tensor *p = &net->parameters[i], *t = st_find(&file, p->name);
    const int matches = t && st_has_shape(t, p->dtype, p->rank, p->shape);
    check(p->name, matches ? NULL : "must be in the file, as F32 in the shape of the network");
    CHECK(mp_graph_write(net->graph, net->ids[i], t->data, NULL));
  }
  const st_tensor *c = st_find(&file, kCheckpoint);
  if (c && mp_optimizer_restore_sync(optimizer, scaler, c->data, c->bytes, NULL) != MP_SUCCESS)
    printf("weights only, because another --dtype was used: %s\n", mp_last_error());
  st_close(&file);
}

/* ---------------------------------------------------------------- training */

static void print_memory(void) {
  mp_graph_memory_t m;
  MP_INIT_STRUCT(&m);
  CHECK(mp_graph_get_memory(net->graph, &m));
  const int64_t moments = 2 * m.parameters, rest = m.states + m.workspace + 8 * batch * length;
  const int64_t sum = m.parameters + m.copies + m.gradients + moments + m.activations + rest;
  printf(
      "%lld parameters; MiB: weights %.2f, copies %.2f, gradients %.2f, moments %.2f, "
      "activations %.2f, rest %.2f, sum %.2f\n",
      (long long)m.parameters / 4, MIB(m.parameters), MIB(m.copies), MIB(m.gradients), MIB(moments),
      MIB(m.activations), MIB(rest), MIB(sum));
}
static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void train(void) {
  int32_t *tokens = net->device_tokens, *labels = tokens + batch * length;
  CHECK(mp_graph_bind(net->graph, net->labels, labels));
  mp_step_options_t clipping = mp_step_options_default();
  clipping.max_grad_norm = 1;
  int64_t printed = state_of(scaler).steps;
  double start = seconds();
  for (int64_t step = printed + 1; step <= last_step; step++) {
    load_batch(step, tokens, labels);
    CHECK(mp_graph_forward(net->graph, MP_GRAPH_MODE_TRAINING, NULL));
    CHECK(mp_graph_backward(net->graph, scaler, NULL));
    CHECK(mp_scale_step(optimizer, scaler, &clipping, NULL));
    if (step % 10 && step != last_step) continue; /* the host waits only here */
    float loss;
    download(&loss, data_of(net->graph, net->output), sizeof loss);
    const mp_scaler_state_t state = state_of(scaler);
    printf("step %lld  loss %.4f  scale %.0f  skipped %lld  tokens/s %.0f\n", (long long)step,
           (double)loss, (double)state.scale, (long long)state.skipped,
           (double)((step - printed) * batch * length) / (seconds() - start));
    printed = step, start = seconds();
  }
}

/* ---------------------------------------------------------------- generation */

static struct model *writer; /* the network with logits */
static float *logits;

/* Computes the logits of a context; a pass takes all of its tokens. */
static void compute_logits(const int32_t *tokens) {
  CHECK(mp_memcpy(context, writer->device_tokens, tokens, (size_t)length * sizeof *tokens, NULL));
  CHECK(mp_graph_forward(writer->graph, MP_GRAPH_MODE_INFERENCE, NULL));
  download(logits, data_of(writer->graph, writer->output),
           (size_t)(length * classes) * sizeof *logits);
}

static void save_logits(const char *path) {
  const size_t bytes = (size_t)length * sizeof *text;
  const st_tensor tensors[] = {
      {"tokens", "I32", 1, {length}, text, bytes},
      {"logits", "F32", 2, {length, classes}, logits, bytes * (size_t)classes}};
  compute_logits(text);
  check(path, st_write(path, tensors, 2, NULL));
}

/* Draws a token from the softmax of z / 0.8, by weighted reservoir sampling. */
static int32_t draw(const float *z, uint32_t *random) {
  int32_t drawn = 0;
  float largest = z[0];
  double sum = 0;
  for (int32_t i = 1; i < classes; i++) largest = fmaxf(largest, z[i]);
  for (int32_t i = 0; i < classes; i++) {
    const double weight = exp((z[i] - largest) / 0.8);
    sum += weight;
    if (next_random(random, 24) * sum < weight * (1 << 24)) drawn = i;
  }
  return drawn;
}

/* Generates text after the prompt; with --gpt2, tokens after the first token of FILE. */
static void generate(void) {
  int32_t *window = allocate((size_t)length * sizeof *window);
  int64_t end = 0;
  uint32_t random = 1;
  const int has_characters = classes == CHARACTERS;
  const char *prompt = has_characters ? option("--prompt") : "";
  printf("%s", prompt);
  if ((int64_t)strlen(prompt) > length) prompt += (int64_t)strlen(prompt) - length;
  for (; *prompt; prompt++) window[end++] = token_of(*prompt);
  if (end == 0) window[end++] = text[0];
  for (int64_t i = 0; i < sampled; i++) {
    compute_logits(window);
    const int32_t token = draw(logits + (end - 1) * classes, &random);
    if (end == length) memmove(window, window + 1, (size_t)--end * sizeof *window);
    window[end++] = token;
    printf(has_characters ? "%c" : "%d ", !has_characters ? token : token ? token + 31 : '\n');
  }
  putchar('\n');
  free(window);
}

int main(int argc, char **argv) {
  program = (struct program){"gpt", options, LENGTH(options)};
  const char *path = read_arguments(argc, argv);
  read_shape();
  read_text(path);
  CHECK(mp_context_create(&context, NULL)); /* the GPU if there is one, else the CPU */
  net = make_model(1);
  make_optimizer();
  *option("--load") ? load(option("--load")) : initialize(net);
  print_memory();
  train();
  st_tensor *all = download_all();
  if (*option("--save")) save(all, option("--save"));
  writer = make_model(0);
  logits = allocate((size_t)(length * classes) * sizeof *logits);
  for (int i = 0; i < writer->count; i++)
    CHECK(mp_graph_write(writer->graph, writer->ids[i], all[i].data, NULL));
  if (*option("--logits")) save_logits(option("--logits"));
  if (sampled > 0) generate();
  printf("weights %016llx\n", (unsigned long long)hash);
  mp_optimizer_destroy(optimizer), mp_scaler_destroy(scaler);
  mp_graph_destroy(net->graph), mp_graph_destroy(writer->graph);
  mp_free(context, net->device_tokens), mp_free(context, writer->device_tokens);
  mp_context_destroy(context);
  return 0;
}
