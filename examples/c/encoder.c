/* Runs and fine-tunes sentence encoders of the BERT family, such as all-MiniLM-L6-v2, in fp32 or in
 * mixed precision.  encoder --help prints the options.
 *
 * The network: embeddings of words, positions and types; layers of attention and perceptron with
 * post-norm; the mean over the tokens of a sentence, divided by its norm.
 *
 * Sources: Devlin et al., BERT, 2019; Reimers & Gurevych, Sentence-BERT, 2019 (mean over tokens);
 * Henderson et al., Efficient Natural Language Response Suggestion, 2017, section 4.4 (loss).
 */
#include <math.h>

#include "program.h"
#include "safetensors.h"
#include "wordpiece.h"

/* ---------------------------------------------------------------- options and files */

static program_option options[] = {
    {"--model", "", "folder of config.json, vocab.txt and model.safetensors"},
    {"--weights", "", "weights in place of model.safetensors"},
    {"--dtype", "fp16", "fp32, fp16 or bf16"},
    {"--device", "auto", "host, auto or the number of a GPU"},
    {"--length", "128", "tokens after which a sentence is cut off"},
    {"--embeddings", "", "file for the embeddings of the sentences"},
    {"--fine-tune", "", "file of lines: sentence, tab, sentence"},
    {"--steps", "40", "training steps"},
    {"--batch", "16", "pairs per step"},
    {"--rate", "2e-5", "learning rate after 5 steps of warm-up"},
    {"--held-out", "128", "pairs that are tested and not trained on"},
    {"--save", "", "file for the trained weights"}};
static const char usage[] =
    "encoder --model FOLDER [OPTIONS] SENTENCE...        prints cosine similarities\n"
    "encoder --model FOLDER [OPTIONS] --fine-tune FILE   trains on sentence pairs";

/* Returns the path of a file of the model. */
static const char *in_model(const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", option("--model"), name);
  return path;
}

static char *read_text(const char *path) {
  size_t bytes;
  return read_file(path, &bytes);
}

/* Returns pairs of sentences in random order, and the number of sentences. */
static char **read_pairs(const char *path, int *count) {
  char *text = read_text(path);
  size_t lines = 1, pairs = 0;
  uint32_t random = 1;
  for (const char *c = text; *c; c++) lines += *c == '\n';
  char **sentences = allocate(2 * lines * sizeof *sentences);
  for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n"), pairs++) {
    char *tab = strchr(line, '\t');
    check(line, tab ? NULL : "no tab in this line");
    *tab = 0;
    random = random * 1664525u + 1013904223u; /* linear congruential generator */
    char **place = sentences + 2 * ((uint64_t)random * (pairs + 1) >> 32);
    memmove(sentences + 2 * pairs, place, 2 * sizeof *place);
    place[0] = line, place[1] = tab + 1;
  }
  *count = (int)(2 * pairs);
  return sentences;
}

/* ---------------------------------------------------------------- network */

/* On the device, of 4-byte elements. */
enum { LENGTHS, TOKENS, GRADIENT, SCORES, ROW_LOSS, LOSS, LABELS, WORKSPACE, NUM_BUFFERS };
static void *buffers[NUM_BUFFERS];

static wp_rows all; /* the tokens of all sentences */

static struct network {
  mp_graph_t graph;
  mp_autocast_t policy;
  st_file file;
  int32_t *parameters; /* of each tensor of the file: index in the graph, or -1 */
  int32_t tokens, lengths, gamma, embeddings, gradient; /* indices in the graph */
  int32_t batch, width, heads, layers;                  /* sentences per pass; config.json */
  double epsilon;
  int32_t *staging; /* tokens of a batch, on the host */
  size_t buffer_bytes;
  char layer[64]; /* prefix of all names */
} net;

/* Returns a number of config.json. */
static double setting(const char *config, const char *name) {
  const char *at = strstr(config, name);
  if (at) at = strchr(at, ':');
  check(name, at ? NULL : "must be in config.json");
  return strtod(at + 1, NULL);
}

static const char *full_name(const char *name, const char *suffix) {
  static char full[256];
  snprintf(full, sizeof full, "%s%s%s", net.layer, name, suffix);
  return full;
}

/* Adds a parameter with the shape in the file. */
static int32_t parameter(const char *name, const char *suffix) {
  const char *full = full_name(name, suffix);
  const st_tensor *t = st_find(&net.file, full);
  check(full, t && !strcmp(t->dtype, "F32") ? NULL : "must be in the weights, as F32");
  int32_t *index = &net.parameters[t - net.file.tensors];
  CHECK(mp_graph_add_parameter(net.graph, full, t->rank, t->shape, index));
  return *index;
}

/* Adds integers: one, or a row of them, per sentence. */
static int32_t input(const char *name, int32_t rank) {
  const int64_t extent[] = {net.batch, all.longest};
  int32_t index;
  CHECK(mp_graph_add_input(net.graph, name, MP_DTYPE_NONE, rank, extent, &index));
  return index;
}

/* The two arguments of a node's inputs. */
#define INPUTS(...) (const int32_t[]){__VA_ARGS__}, sizeof(int32_t[]){__VA_ARGS__} / sizeof(int32_t)

static int32_t node(const char *op, const char *name, const int32_t *inputs, size_t num_inputs,
                    const mp_graph_attribute_t *attributes, uint32_t num_attributes) {
  int32_t y;
  CHECK(mp_graph_add_node(net.graph, op, full_name(name, ""), inputs, (uint32_t)num_inputs,
                          attributes, num_attributes, &y, 1));
  return y;
}

static int32_t linear(const char *name, int32_t x) {
  const mp_graph_attribute_t transposed = mp_graph_int("transposed", 1); /* w is [out in] */
  const int32_t w = parameter(name, ".weight"), b = parameter(name, ".bias");
  return node("Linear", name, INPUTS(x, w, b), &transposed, 1);
}

/* Normalizes x + y. */
static int32_t add_norm(const char *name, int32_t x, int32_t y) {
  const mp_graph_attribute_t epsilon = mp_graph_float("epsilon", net.epsilon);
  const int32_t gamma = parameter(name, ".weight"), beta = parameter(name, ".bias");
  const int32_t sum = node("Add", "Add", INPUTS(x, y), NULL, 0);
  return node("LayerNorm", name, INPUTS(sum, gamma, beta), &epsilon, 1);
}

static int32_t transformer_layer(int32_t x) {
  const mp_graph_attribute_t heads = mp_graph_int("heads", net.heads), erf = mp_graph_int("erf", 1);
  const int32_t q = linear("attention.self.query", x);
  const int32_t k = linear("attention.self.key", x);
  const int32_t v = linear("attention.self.value", x);
  const int32_t o = node("Attention", "attention.self", INPUTS(q, k, v, net.lengths), &heads, 1);
  x = add_norm("attention.output.LayerNorm", linear("attention.output.dense", o), x);
  const int32_t h = linear("intermediate.dense", x);
  const int32_t gelu = node("Gelu", "intermediate.gelu", INPUTS(h), &erf, 1);
  return add_norm("output.LayerNorm", linear("output.dense", gelu), x);
}

/* Returns the first rows of a table, which are added to every sentence. */
static int32_t first_rows(const char *table, int64_t count) {
  const mp_graph_attribute_t rows[] = {mp_graph_int("axis", 0), mp_graph_int("end", count)};
  return node("Slice", table, INPUTS(parameter(table, ".weight")), rows, 2);
}

/* Describes the network in fp32. */
static void describe(void) {
  const int64_t width = net.width, axis = 1;
  const mp_graph_attribute_t extent = mp_graph_ints("extent", &width, 1);
  const mp_graph_attribute_t axes = mp_graph_ints("axes", &axis, 1);
  const mp_graph_attribute_t epsilon = mp_graph_float("epsilon", 1e-12);
  net.tokens = input("tokens", 2);
  net.lengths = input("lengths", 1);
  strcpy(net.layer, "embeddings.");
  const int32_t table = parameter("word_embeddings", ".weight");
  const int32_t words = node("Embedding", "word_embeddings", INPUTS(table, net.tokens), NULL, 0);
  const int32_t positions = first_rows("position_embeddings", all.longest);
  const int32_t types = first_rows("token_type_embeddings", 1);
  const int32_t type = node("Reshape", "type", INPUTS(types), &extent, 1);
  const int32_t sum = node("Add", "Add", INPUTS(words, positions), NULL, 0);
  int32_t x = add_norm("LayerNorm", sum, type);
  for (int i = 0; i < net.layers; i++) {
    snprintf(net.layer, sizeof net.layer, "encoder.layer.%d.", i);
    x = transformer_layer(x);
  }
  strcpy(net.layer, "");
  x = node("Mean", "mean", INPUTS(x, net.lengths), &axes, 1);
  /* RMSNorm divides by the root of the mean square, gamma is 1 / sqrt(width): together the norm. */
  CHECK(mp_graph_add_state(net.graph, "gamma", 1, &width, &net.gamma));
  net.embeddings = node("RMSNorm", "normalize", INPUTS(x, net.gamma), &epsilon, 1);
  CHECK(mp_graph_add_output(net.graph, net.embeddings));
}

static void create_buffers(size_t pairs) {
  const size_t batch = (size_t)net.batch, width = (size_t)net.width;
  const size_t tokens = batch * (size_t)all.longest, workspace = pairs > 0 ? 1 << 18 : 0;
  const size_t counts[NUM_BUFFERS] = {batch, tokens, 2 * pairs * width, pairs * pairs, pairs,
                                      1,     pairs,  workspace};
  for (int i = 0; i < NUM_BUFFERS; i++) {
    CHECK(mp_malloc(context, &buffers[i], 4 * counts[i]));
    net.buffer_bytes += 4 * counts[i];
  }
  net.staging = allocate(4 * tokens);
  for (int i = 0; i < (int)pairs; i++) net.staging[i] = i;
  CHECK(mp_memcpy(context, buffers[LABELS], net.staging, 4 * pairs, NULL));
}

/* Creates the network for all sentences, with the weights of the file. */
static void create_network(int batch, int is_trained) {
  const char *path = option("--weights"), *dtype = option("--dtype");
  if (!*path) path = in_model("model.safetensors");
  check(path, st_read(path, &net.file));
  net.parameters = allocate((size_t)net.file.count * sizeof *net.parameters);
  memset(net.parameters, -1, (size_t)net.file.count * sizeof *net.parameters);
  char *config = read_text(in_model("config.json"));
  net.batch = batch;
  net.width = (int32_t)setting(config, "\"hidden_size\"");
  net.heads = (int32_t)setting(config, "\"num_attention_heads\"");
  net.layers = (int32_t)setting(config, "\"num_hidden_layers\"");
  net.epsilon = setting(config, "\"layer_norm_eps\"");
  check("hidden_act", strstr(config, "_act\": \"gelu\"") ? NULL : "must be gelu in config.json");
  free(config);

  CHECK(mp_graph_create(&net.graph, context));
  describe();
  if (is_trained) CHECK(mp_graph_seed_gradient(net.graph, net.embeddings, &net.gradient));
  if (strcmp(dtype, "fp32")) { /* mixed precision */
    const int is_known = !strcmp(dtype, "fp16") || !strcmp(dtype, "bf16");
    check("--dtype", is_known ? NULL : "must be fp32, fp16 or bf16");
    mp_autocast_config_t policy = mp_autocast_config_default(dtype[0] == 'b' ? MP_BF16 : MP_FP16);
    /* Also on a CPU, although not faster; embeddings remain fp32. */
    policy.flags = MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE | MP_AUTOCAST_FLAG_KEEP_IO;
    CHECK(mp_autocast_create(&net.policy, &policy));
    CHECK(mp_graph_set_autocast(net.graph, net.policy));
  }
  CHECK(mp_graph_compile(net.graph));

  for (int i = 0; i < net.file.count; i++)
    if (net.parameters[i] >= 0)
      CHECK(mp_graph_write(net.graph, net.parameters[i], net.file.tensors[i].data, NULL));
  float *gamma = allocate((size_t)net.width * sizeof *gamma);
  for (int i = 0; i < net.width; i++) gamma[i] = (float)(1 / sqrt(net.width));
  CHECK(mp_graph_write(net.graph, net.gamma, gamma, NULL));
  free(gamma);
  create_buffers(is_trained ? (size_t)batch / 2 : 0);
  CHECK(mp_graph_bind(net.graph, net.lengths, buffers[LENGTHS]));
  CHECK(mp_graph_bind(net.graph, net.tokens, buffers[TOKENS]));
  if (is_trained) CHECK(mp_graph_bind(net.graph, net.gradient, buffers[GRADIENT]));
}

/* Computes the embeddings of a batch: `count` sentences from `first` on. */
static void forward(int64_t first, int64_t count, mp_graph_mode_t mode) {
  const size_t row = (size_t)all.longest * sizeof *all.tokens;
  for (int64_t i = 0; i < count; i++)
    memcpy(net.staging + i * all.longest, all.tokens + (first + i) * all.most, row);
  CHECK(mp_memcpy(context, buffers[TOKENS], net.staging, (size_t)count * row, NULL));
  CHECK(mp_memcpy(context, buffers[LENGTHS], all.lengths + first, (size_t)count * 4, NULL));
  CHECK(mp_graph_set_batch(net.graph, count));
  CHECK(mp_graph_forward(net.graph, mode, NULL));
}

/* Returns the embeddings of the first `count` sentences, on the host. */
static float *embed(int count) {
  float *result = allocate((size_t)count * (size_t)net.width * sizeof *result);
  for (int i = 0; i < count; i += net.batch) {
    const int part = count - i < net.batch ? count - i : net.batch;
    forward(i, part, MP_GRAPH_MODE_INFERENCE);
    download(result + (int64_t)i * net.width, data_of(net.graph, net.embeddings),
             (size_t)part * (size_t)net.width * sizeof *result);
  }
  return result;
}

static double similarity(const float *embeddings, int i, int j) {
  double sum = 0;
  for (int64_t k = 0; k < net.width; k++)
    sum += (double)embeddings[i * net.width + k] * (double)embeddings[j * net.width + k];
  return sum;
}

static void compare(char **sentences) {
  float *embeddings = embed(all.count);
  for (int i = 0; i < all.count; i++) {
    for (int j = 0; j < all.count; j++) printf("%7.4f ", similarity(embeddings, i, j));
    printf(" %s\n", sentences[i]);
  }
  const size_t bytes = (size_t)all.count * (size_t)net.width * sizeof *embeddings;
  const st_tensor tensor = {"embeddings", "F32", 2, {all.count, net.width}, embeddings, bytes};
  const char *path = option("--embeddings");
  if (*path) check(path, st_write(path, &tensor, 1, NULL));
  free(embeddings);
}

/* ---------------------------------------------------------------- training */

static void multiply(const mp_gemm_desc_t *desc, const float *a, const float *b, float *d) {
  CHECK(mp_gemm(context, desc, a, b, NULL, d, NULL, buffers[WORKSPACE], 1 << 20, NULL));
}

/* Computes the loss and its gradient, with which mp_graph_backward begins.
 *
 * Sentences 2i and 2i + 1 of a batch are a pair.  Each first sentence selects its partner among all
 * second ones, by softmax cross-entropy of the scores, 20 x cosine. */
static void compute_loss(int64_t pairs) {
  const int64_t width = net.width;
  const float *first = data_of(net.graph, net.embeddings), *second = first + width;
  float *gradient = buffers[GRADIENT];
  mp_gemm_desc_t product = mp_gemm_desc_default(pairs, pairs, width, MP_FP32, MP_FP32);
  product.alpha = 20;
  product.op_b = MP_OP_T;
  product.ld_a = product.ld_b = 2 * width; /* every other row */
  multiply(&product, first, second, buffers[SCORES]);

  const mp_xent_desc_t xent = mp_xent_desc_default(pairs, pairs, MP_FP32);
  mp_xent_tensors_t tensors;
  MP_INIT_STRUCT(&tensors);
  tensors.x = tensors.dx = buffers[SCORES]; /* the gradient replaces the scores */
  tensors.labels = buffers[LABELS];
  tensors.row_loss = buffers[ROW_LOSS];
  tensors.loss = buffers[LOSS];
  CHECK(mp_softmax_xent(context, &xent, &tensors, NULL));

  product = mp_gemm_desc_default(pairs, width, pairs, MP_FP32, MP_FP32);
  product.alpha = 20;
  product.ld_b = product.ld_d = 2 * width;
  multiply(&product, buffers[SCORES], second, gradient);
  product.op_a = MP_OP_T;
  multiply(&product, buffers[SCORES], first, gradient + width);
}

/* Returns the share of the first pairs whose first sentence is most similar to its partner. */
static double top1(int pairs) {
  int correct = 0;
  float *embeddings = embed(2 * pairs);
  for (int i = 0, j; i < pairs; i++) {
    const double partner = similarity(embeddings, 2 * i, 2 * i + 1);
    for (j = 0; j < pairs; j++)
      if (j != i && !(similarity(embeddings, 2 * i, 2 * j + 1) < partner)) break;
    correct += j == pairs;
  }
  free(embeddings);
  return (double)correct / pairs;
}

/* Trains on all pairs except the first `held_out`. */
static void fine_tune(int steps, int held_out) {
  mp_param_group_t group;
  mp_optimizer_desc_t adamw; /* weight decay 0.01 */
  CHECK(mp_optimizer_desc_from_name("adamw", &adamw, sizeof adamw, &group, sizeof group,
                                    strtof(option("--rate"), NULL)));
  group.warmup_steps = 5;
  CHECK(mp_graph_get_lists(net.graph, &adamw.grads, &adamw.master, &adamw.model));
  mp_optimizer_t optimizer;
  CHECK(mp_optimizer_create(&optimizer, context, &adamw));
  const mp_scaler_config_t config =
      mp_autocast_scaler_default(strcmp(option("--dtype"), "fp16") ? MP_FP32 : MP_FP16);
  mp_scaler_t scaler;
  CHECK(mp_scaler_create(&scaler, context, &config));

  const int pairs = net.batch / 2, trained = all.count / 2 - held_out;
  const double before = top1(held_out);
  for (int step = 0; step < steps; step++) {
    const int first = held_out + (int)((int64_t)step * pairs % (trained - pairs + 1));
    forward(2 * first, net.batch, MP_GRAPH_MODE_TRAINING);
    compute_loss(pairs);
    CHECK(mp_graph_backward(net.graph, scaler, NULL));
    CHECK(mp_scale_step(optimizer, scaler, NULL, NULL));
    const mp_scaler_state_t state = state_of(scaler);
    float value;
    download(&value, buffers[LOSS], sizeof value);
    printf("step %d  loss %.4f  scale %g  skipped %d\n", step + 1, (double)value,
           (double)state.scale, (int)state.skipped);
    fflush(stdout);
  }
  printf("top-1 of %d held-out pairs: %.3f before, %.3f after\n", held_out, before, top1(held_out));
  mp_optimizer_destroy(optimizer), mp_scaler_destroy(scaler);
}

static void save_weights(const char *path) {
  const char *const metadata[] = {"format", "pt", NULL};
  for (int i = 0; i < net.file.count; i++) {
    const st_tensor *t = &net.file.tensors[i];
    if (net.parameters[i] >= 0)
      download((void *)t->data, data_of(net.graph, net.parameters[i]), t->bytes);
  }
  check(path, st_write(path, net.file.tensors, net.file.count, metadata));
}

/* Prints the device memory, except small tables of the library. */
static void print_memory(void) {
  const double mb = 1e-6, moments = *option("--fine-tune") ? 2 : 0; /* per weight */
  mp_graph_memory_t m;
  MP_INIT_STRUCT(&m);
  CHECK(mp_graph_get_memory(net.graph, &m));
  const int64_t other = m.states + m.workspace + (int64_t)net.buffer_bytes;
  const int64_t sum = m.parameters + m.copies + m.gradients + m.activations + other;
  printf(
      "memory in MB: weights %.1f, 16-bit copies %.1f, gradients %.1f, moments %.1f, "
      "activations %.1f, other %.1f, sum %.1f\n",
      m.parameters * mb, m.copies * mb, m.gradients * mb, moments * m.parameters * mb,
      m.activations * mb, other * mb, sum * mb + moments * m.parameters * mb);
}

int main(int argc, char **argv) {
  program = (struct program){"encoder", options, LENGTH(options)};
  const int first = read_options(argc, argv, 1, usage), pairs = integer("--batch", 1);
  const int steps = integer("--steps", 0), held_out = integer("--held-out", 1);
  const char *file = option("--fine-tune"), *device = option("--device");
  int count = argc - first;
  check("--model", *option("--model") ? NULL : "missing");
  check("SENTENCE", (count > 0) == !*file ? NULL : "must be an argument, or a file of --fine-tune");
  char **sentences = *file ? read_pairs(file, &count) : argv + first;
  if (*file) check(file, count >= 2 * (held_out + pairs) ? NULL : "too few pairs of sentences");
  check("vocab.txt", wp_tokenize_all(read_text(in_model("vocab.txt")), sentences, count,
                                     integer("--length", 2), &all));
  mp_context_config_t config = mp_context_config_default();
  config.device = !strcmp(device, "host")   ? MP_DEVICE_HOST
                  : !strcmp(device, "auto") ? MP_DEVICE_AUTO
                                            : integer("--device", 0);
  CHECK(mp_context_create(&context, &config));
  if (*file) {
    create_network(2 * pairs, 1);
    fine_tune(steps, held_out);
    if (*option("--save")) save_weights(option("--save"));
  } else {
    create_network(count < 32 ? count : 32, 0);
    compare(sentences);
  }
  print_memory();
  mp_graph_destroy(net.graph), mp_autocast_destroy(net.policy);
  for (int i = 0; i < NUM_BUFFERS; i++) mp_free(context, buffers[i]);
  mp_context_destroy(context);
  return 0;
}
