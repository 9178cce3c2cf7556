/* mpcore/graph.h: invalid descriptions, and calls at an invalid time. */
#include <math.h>
#include <stdio.h>

#include "harness.h"

enum { kBatch = 4, kIn = 8, kOut = 6 };

static mp_graph_t graph; /* x, w, b, indices and table; not compiled */
static int32_t x, w, b, image, filter, indices, table, gamma_, mean, labels, offset;
static int32_t tensor;     /* output of failing calls */
static int32_t outputs[8]; /* likewise */

static int32_t add(mp_status_t (*call)(mp_graph_t, const char *, int32_t, const int64_t *,
                                       int32_t *),
                   const char *name, int32_t rank, const int64_t *extent) {
  int32_t id = -1;
  check_success(name, call(graph, name, rank, extent, &id));
  return id;
}

static int32_t add_input(const char *name, mp_dtype_t dtype, int32_t rank, const int64_t *extent) {
  int32_t id = -1;
  check_success(name, mp_graph_add_input(graph, name, dtype, rank, extent, &id));
  return id;
}

static void describe(void) {
  const int64_t x_extent[] = {kBatch, kIn}, w_extent[] = {kIn, kOut}, b_extent[] = {kOut};
  const int64_t image_extent[] = {kBatch, 5, 5, 4}, filter_extent[] = {6, 3, 3, 4};
  const int64_t table_extent[] = {9, 3}, four[] = {4};
  WORKS(mp_graph_create(&graph, context));
  x = add_input("x", MP_FP32, 2, x_extent);
  image = add_input("image", MP_FP32, 4, image_extent);
  indices = add_input("indices", MP_DTYPE_NONE, 2, x_extent);
  labels = add_input("labels", MP_DTYPE_NONE, 1, x_extent);
  offset = add_input("offset", MP_DTYPE_NONE, 0, NULL);
  w = add(mp_graph_add_parameter, "w", 2, w_extent);
  b = add(mp_graph_add_parameter, "b", 1, b_extent);
  filter = add(mp_graph_add_parameter, "filter", 4, filter_extent);
  table = add(mp_graph_add_parameter, "table", 2, table_extent);
  gamma_ = add(mp_graph_add_parameter, "gamma", 1, four);
  mean = add(mp_graph_add_state, "mean", 1, four);
}

/* ---------------------------------------------------------------- tensors */

static void test_tensors_of_graphs(void) {
  const int64_t extent[MP_GRAPH_MAX_RANK + 1] = {kBatch, 1, 1, 1, 1, 1, 1, 1, 1};
  const int64_t none[] = {0}, negative[] = {kBatch, -3},
                huge[] = {INT64_C(1) << 40, INT64_C(1) << 40};
  const int64_t other_batch[] = {kBatch + 1};
  INVALID(mp_graph_add_input, (graph, "", MP_FP32, 1, extent, &tensor), "name");
  INVALID(mp_graph_add_input, (graph, "t", invalid_dtype(), 1, extent, &tensor), "dtype");
  INVALID(mp_graph_add_input, (graph, "t", (mp_dtype_t)-1, 1, extent, &tensor), "dtype");
  INVALID(mp_graph_add_input, (graph, "t", MP_FP32, -1, extent, &tensor), "rank");
  INVALID(mp_graph_add_input, (graph, "t", MP_FP32, MP_GRAPH_MAX_RANK + 1, extent, &tensor),
          "rank");
  INVALID(mp_graph_add_input, (graph, "t", MP_FP32, 1, other_batch, &tensor), "extent[0]");
  INVALID(mp_graph_add_parameter, (graph, "t", 1, none, &tensor), "extent[0]");
  INVALID(mp_graph_add_parameter, (graph, "t", 2, negative, &tensor), "extent[1]");
  INVALID(mp_graph_add_parameter, (graph, "t", 2, huge, &tensor), "extent[1]");
  INVALID(mp_graph_add_state, (graph, "t", 1, none, &tensor), "extent[0]");
  INVALID(mp_graph_add_output, (graph, 9999), "tensor");
  INVALID(mp_graph_add_output, (graph, -1), "tensor");
  INVALID(mp_graph_add_output, (graph, x), "tensor");
  INVALID(mp_graph_keep_gradient, (graph, w), "tensor");
  INVALID(mp_graph_keep_gradient, (graph, 9999), "tensor");
  INVALID(mp_graph_set_loss, (graph, x), "tensor");
  INVALID(mp_graph_set_loss, (graph, 9999), "tensor");
  INVALID(mp_graph_seed_gradient, (graph, x, &tensor), "tensor");
  INVALID(mp_graph_seed_gradient, (graph, 9999, &tensor), "tensor");
  INVALID(mp_graph_measure_kernels, (graph, -1), "max_kernels");
}

/* ---------------------------------------------------------------- nodes */

/* Attributes of a node. */
#define INT(name, value) mp_graph_int(name, value)
#define REAL(name, value) mp_graph_float(name, value)
#define LIST(name, ...) \
  mp_graph_ints(name, (const int64_t[]){__VA_ARGS__}, COUNT(((const int64_t[]){__VA_ARGS__})))

/* Inputs or attributes of a node and their number: two arguments of check_node. */
#define IN(...) (const int32_t[]){__VA_ARGS__}, COUNT(((const int32_t[]){__VA_ARGS__}))
#define WITH(...) \
  (const mp_graph_attribute_t[]){__VA_ARGS__}, COUNT(((const mp_graph_attribute_t[]){__VA_ARGS__}))
#define NONE NULL, 0

static mp_graph_attribute_t of_kind(int kind) {
  mp_graph_attribute_t attribute = mp_graph_int("window", 2);
  attribute.kind = (mp_attribute_kind_t)kind;
  return attribute;
}

/** Checks a node that mp_graph_add_node rejects. */
static void check_node(mp_status_t status, const char *what, const char *op, const int32_t *inputs,
                       uint32_t num_inputs, const mp_graph_attribute_t *attributes,
                       uint32_t num_attributes, const char *words) {
  char label[160];
  snprintf(label, sizeof label, "mp_graph_add_node: %s: %s", op, what);
  check_failure(
      label, "mp_graph_add_node",
      mp_graph_add_node(graph, op, "n", inputs, num_inputs, attributes, num_attributes, outputs, 1),
      status, words);
}
#define NODE(...) check_node(MP_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

/** Counts errors, and modifies the graph while mp_graph_add_node calls another function. */
static void modify_graph(mp_log_level_t level, const char *message, void *errors) {
  if (level == MP_LOG_ERROR) ++*(int *)errors;
  if (strcmp(message, "mp_pool2d_get_output_size") == 0) mp_graph_measure_kernels(graph, 0);
}

static void test_nodes(void) {
  const int32_t good[] = {x, w, b};
  const mp_graph_attribute_t nameless = mp_graph_int(NULL, 0);
  FAILS(mp_graph_add_node, (graph, "linear", "n", good, 3, NULL, 0, outputs, 1), MP_ERROR_NOT_FOUND,
        "op_type");
  FAILS(mp_graph_add_node, (graph, "LinearBackpropInput", "n", good, 2, NULL, 0, outputs, 1),
        MP_ERROR_NOT_FOUND, "op_type");
  INVALID(mp_graph_add_node, (graph, "Linear", "n", good, 1, NULL, 0, outputs, 1), "num_inputs");
  INVALID(mp_graph_add_node, (graph, "Linear", "n", good, 4, NULL, 0, outputs, 1), "num_inputs");
  INVALID(mp_graph_add_node, (graph, "Linear", "n", good, 3, NULL, 0, outputs, 0), "num_outputs");
  INVALID(mp_graph_add_node, (graph, "Linear", "n", good, 3, NULL, 0, outputs, 2), "num_outputs");
  INVALID(mp_graph_add_node, (graph, "Linear", "n", good, 3, &nameless, 1, outputs, 1),
          "attributes[0].name");

  INVALID(mp_graph_add_node, (graph, "Split", "n", good, 1, NULL, 0, outputs, 3),
          "the number of outputs, 3, must divide");

  const int64_t huge_extent[] = {(INT64_C(1) << 32) + 9, 3};
  const int32_t huge_table = add(mp_graph_add_state, "huge_table", 2, huge_extent);
  const int64_t wide_extent[] = {kBatch, 65537}, sequence_extent[] = {kBatch, 5, 9};
  const int64_t wide3_extent[] = {kBatch, 5, 257};
  const int32_t wide = add(mp_graph_add_state, "wide", 2, wide_extent);
  const int64_t crowd_extent[] = {65536, 1, 3 * 32768};
  const int32_t crowd = add(mp_graph_add_state, "crowd", 3, crowd_extent);
  const int32_t wide3 = add(mp_graph_add_state, "wide3", 3, wide3_extent);
  const int32_t sequence = add_input("sequence", MP_FP32, 3, sequence_extent);
  NODE("an input index out of range", "Linear", IN(x, 9999), NONE, "inputs[1]");
  NODE("an input that may not be absent", "Linear", IN(-1, w), NONE, "inputs[0]");
  NODE("integers", "Linear", IN(indices, w), NONE, "x = indices");
  NODE("w of another size", "Linear", IN(x, table), NONE, "w = table");
  NODE("w of another rank", "Linear", IN(x, b), NONE, "w = b");
  NODE("b of another size", "Linear", IN(x, w, gamma_), NONE, "b = gamma");
  check_node(MP_ERROR_NOT_FOUND, "an unknown attribute", "Linear", IN(x, w), WITH(INT("stride", 1)),
             "stride");
  NODE("out of range", "Linear", IN(x, w), WITH(INT("transposed", 2)), "transposed");
  NODE("a 2D image", "Conv2D", IN(x, filter), NONE, "x = x");
  NODE("channels", "Conv2D", IN(image, filter), WITH(INT("groups", 2)), "channels");
  NODE("a stride of 0", "Conv2D", IN(image, filter), WITH(INT("stride", 0)), "stride");
  NODE("a fractional stride", "Conv2D", IN(image, filter), WITH(REAL("stride", 1.5)), "stride");
  NODE("a fractional stride", "MaxPool", IN(image), WITH(REAL("stride", 1.5)), "stride");
  NODE("a wide filter", "Conv2D", IN(image, filter), WITH(INT("dilation", 4)), "w = filter");
  NODE("padding beyond 32 bits", "Conv2D", IN(image, filter), WITH(INT("pad", 2147483647)),
       "Conv2D");
  NODE("different shapes", "Add", IN(x, w), NONE, "b = w");
  NODE("different shapes", "Mul", IN(x, image), NONE, "b = image");
  NODE("trailing dimensions that differ", "Add", IN(image, b), NONE, "b = b");
  NODE("groups", "LayerNorm", IN(x, gamma_), WITH(INT("groups", 3)), "groups = 3");
  NODE("gamma of another size", "LayerNorm", IN(x, gamma_), NONE, "gamma = gamma");
  NODE("beta", "RMSNorm", IN(x, b, b), NONE, "num_inputs");
  NODE("columns beyond the kernel", "RMSNorm", IN(wide), NONE, "65537");
  NODE("an odd number of columns", "Swiglu", IN(table), NONE, "x = table");
  NODE("lengths of all dimensions", "Softmax", IN(x, indices), NONE, "lengths = indices");
  NODE("floats as lengths", "LogSoftmax", IN(x, x), NONE, "lengths = x");
  NODE("a 2D input", "Attention", IN(x), NONE, "q = x");
  NODE("k without v", "Attention", IN(sequence, sequence), NONE, "k and v");
  NODE("kv_heads", "Attention", IN(sequence), WITH(INT("heads", 2), INT("kv_heads", 3)),
       "kv_heads = 3");
  NODE("heads", "Attention", IN(sequence), WITH(INT("heads", 2)), "q = sequence");
  NODE("heads of all sequences beyond 32 bits", "Attention", IN(crowd), WITH(INT("heads", 32768)),
       "heads = 32768");
  NODE("head dimension", "Attention", IN(wide3, wide3, wide3), NONE, "q = wide3");
  NODE("k of another size", "Attention", IN(sequence, wide3, sequence), NONE, "k = wide3");
  NODE("sinks of another size", "Attention", IN(sequence, sequence, sequence, -1, b), NONE,
       "sinks = b");
  NODE("lengths of another shape", "Attention", IN(sequence, sequence, sequence, indices), NONE,
       "lengths = indices");
  NODE("q_lengths of a packed matrix", "Attention", IN(sequence, -1, -1, -1, -1, -1, labels), NONE,
       "q_lengths = labels");
  NODE("p = 1", "Attention", IN(sequence), WITH(REAL("p", 1)), "p = 1");
  NODE("heads", "RotaryEmbedding", IN(x), WITH(INT("heads", 3)), "heads = 3");
  NODE("rotated heads", "RotaryEmbedding", IN(x), WITH(INT("rotated_heads", 2)),
       "rotated_heads = 2");
  NODE("an odd rotary_dim", "RotaryEmbedding", IN(x), WITH(INT("rotary_dim", 3)), "rotary_dim = 3");
  NODE("rotary_dim beyond the head", "RotaryEmbedding", IN(x), WITH(INT("rotary_dim", 10)),
       "rotary_dim = 10");
  NODE("positions of another shape", "RotaryEmbedding", IN(x, indices), NONE,
       "positions = indices");
  NODE("an axis beyond the rank", "Concat", IN(x, x), WITH(INT("axis", 2)), "axis = 2");
  NODE("another rank", "Concat", IN(x, image), NONE, "x1 = image");
  NODE("another extent", "Concat", IN(sequence, sequence, wide3), WITH(INT("axis", 1)),
       "x2 = wide3");
  NODE("an absent part", "Concat", IN(x, -1, x), NONE, "x1");
  NODE("more extents than outputs", "Split", IN(x), WITH(LIST("extents", 3, 5)), "1 outputs");
  NODE("another sum", "Split", IN(x), WITH(LIST("extents", 7)), "sum 7");
  NODE("an empty range", "Slice", IN(x), WITH(INT("begin", 3), INT("end", 3)), "begin = 3");
  NODE("a range beyond the extent", "Slice", IN(x), WITH(INT("end", 9)), "end = 9");
  NODE("a negative number of zeros", "Pad", IN(x), WITH(INT("before", -1)), "before");
  NODE("a dimension twice", "Transpose", IN(x), WITH(LIST("permutation", 1, 1)),
       "permutation = [1 1]");
  NODE("a missing dimension", "Transpose", IN(image), WITH(LIST("permutation", 1, 0)),
       "permutation = [1 0]");
  NODE("no axes", "Mean", IN(x), NONE, "axes = []");
  NODE("axes that are not adjacent", "Sum", IN(image), WITH(LIST("axes", 1, 3)), "axes = [1 3]");
  NODE("axes beyond the rank", "Sum", IN(x), WITH(LIST("axes", 2)), "axes = [2]");
  NODE("different shapes", "Sub", IN(x, w), NONE, "b = w");
  NODE("different shapes", "Div", IN(x, image), NONE, "b = image");
  NODE("a limit that is not a number", "Clip", IN(x), WITH(REAL("max", NAN)), "max = nan");
  NODE("an infinite slope", "LeakyRelu", IN(x), WITH(REAL("slope", 1e300)), "slope");
  NODE("an empty range", "Clip", IN(x), WITH(REAL("min", 2), REAL("max", 1)), "min = 2");
  NODE("b of another size", "BiasAdd", IN(x, b), NONE, "b = b");
  NODE("a window beyond the image", "MaxPool", IN(image), WITH(INT("window", 6)), "window");
  NODE("padding as large as the window", "AvgPool", IN(image), WITH(INT("pad", 2)), "pad_top");
  int errors = 0;
  mp_set_log_callback(modify_graph, &errors, MP_LOG_DEBUG);
  mp_graph_add_node(graph, "AvgPool", "n", IN(image), WITH(INT("pad", 2)), outputs, 1);
  check(errors == 1, "a failed part of a call is logged once if a log callback calls mpcore");
  reset();
  check_node(MP_ERROR_NOT_FOUND, "an attribute of AvgPool", "MaxPool", IN(image),
             WITH(INT("include_pad", 1)), "include_pad");
  NODE("a parameter as a state", "BatchNorm", IN(image, gamma_, gamma_, gamma_, mean), NONE,
       "mean = gamma");
  NODE("gamma of another size", "BatchNorm", IN(image, b, gamma_, mean, mean), NONE, "gamma = b");
  NODE("a vocabulary beyond 32 bits", "Embedding", IN(huge_table, indices), NONE, "huge_table");
  NODE("floats as indices", "Embedding", IN(table, x), NONE, "indices = x");
  NODE("p = 1", "Dropout", IN(x), WITH(REAL("p", 1)), "p = 1");
  NODE("several offsets", "Dropout", IN(x, labels), NONE, "offset = labels");
  NODE("two open extents", "Reshape", IN(x), WITH(LIST("extent", -1, -1)), "extents 0 and 1");
  NODE("extent 0 beyond the input's rank", "Reshape", IN(x), WITH(LIST("extent", 0, 0, 0)),
       "extent 2");
  NODE("7 elements", "Reshape", IN(x), WITH(LIST("extent", 7)), "elements");
  check_node(MP_ERROR_NOT_FOUND, "unknown attribute", "Reshape", IN(x), WITH(INT("shape", 7)),
             "shape");
  NODE("a size below -1", "Reshape", IN(x), WITH(LIST("extent", 1, -2)), "extent[1] = -2");
  NODE("nine dimensions", "Reshape", IN(x), WITH(LIST("extent", 1, 1, 1, 1, 1, 1, 1, 1, -1)),
       "extent has 9 elements");
  NODE("a list without elements", "Reshape", IN(x), WITH(mp_graph_ints("extent", NULL, 1)),
       "ints of extent = NULL");
  NODE("an integer for a list", "Reshape", IN(x), WITH(INT("extent", 4)),
       "kind of extent = MP_ATTRIBUTE_KIND_INT: must be MP_ATTRIBUTE_KIND_INTS");
  NODE("a list for an integer", "MaxPool", IN(image), WITH(LIST("window", 2, 2)),
       "kind of window = MP_ATTRIBUTE_KIND_INTS: must be MP_ATTRIBUTE_KIND_INT");
  NODE("real numbers for an integer", "MaxPool", IN(image),
       WITH(mp_graph_floats("window", NULL, 0)), "kind of window = MP_ATTRIBUTE_KIND_FLOATS");
  NODE("a list for a real number", "Dropout", IN(x), WITH(LIST("p", 0)),
       "kind of p = MP_ATTRIBUTE_KIND_INTS: must be MP_ATTRIBUTE_KIND_FLOAT");
  NODE("no kind", "MaxPool", IN(image), WITH(of_kind(0)), "attributes[0].kind = 0");
  NODE("an unknown kind", "MaxPool", IN(image), WITH(of_kind(5)), "attributes[0].kind = 5");
  check_node(MP_ERROR_STRUCT_SIZE, "no struct_size", "MaxPool", IN(image), WITH({0}),
             "attributes[0].struct_size = 0");
  NODE("an attribute twice", "MaxPool", IN(image), WITH(INT("window", 2), INT("window", 3)),
       "attribute window must be given only once");
  NODE("extents whose product overflows", "Reshape", IN(x),
       WITH(LIST("extent", 281474976710656, 281474976710656, -1)), "extents");
  NODE("a 2D input", "LSTM", IN(x, w, w), NONE, "x = x");
  NODE("labels of another shape", "SoftmaxXent", IN(x, indices), NONE, "labels = indices");
  NODE("labels that are computed", "SoftmaxXent", IN(x, x), NONE, "labels = x");
  NODE("lengths and two axes", "Mean", IN(sequence, labels), WITH(LIST("axes", 0, 1)),
       "axes = [0 1]");
  NODE("lengths of another shape", "Mean", IN(sequence, indices), WITH(LIST("axes", 1)),
       "lengths = indices");
  NODE("lengths", "Sum", IN(sequence, labels), WITH(LIST("axes", 1)), "num_inputs = 2");
  NODE("a vector", "MatMul", IN(b, b), NONE, "a = b");
  NODE("different ranks", "MatMul", IN(sequence, x), NONE, "b = x");
  NODE("inner dimensions", "MatMul", IN(sequence, sequence), NONE, "inner dimension");
  NODE("features of another size", "LinearXent", IN(x, w, -1, labels), NONE, "x = x");
  NODE("a count with elements", "LinearXent", IN(x, x, -1, labels, b), NONE, "count = b");
  NODE("smoothing = 1", "SoftmaxXent", IN(x, labels), WITH(REAL("label_smoothing", 1)),
       "label_smoothing");
}

/* ---------------------------------------------------------------- reports */

static void test_reports(int32_t y) {
  mp_graph_tensor_t info = INITIALIZED(mp_graph_tensor_t);
  mp_graph_memory_t memory = INITIALIZED(mp_graph_memory_t);
  INVALID(mp_graph_get_tensor, (graph, -1, &info), "tensor");
  INVALID(mp_graph_get_tensor, (graph, 9999, &info), "tensor");
  WORKS(mp_graph_get_tensor(graph, y, &info));
  check(info.rank == 2 && info.extent[0] == kBatch && info.extent[1] == kOut, "the shape of y");
  check(info.data != NULL && info.grad == NULL && info.copy == NULL,
        "an output has memory, and no gradient");
  check(strcmp(info.name, "fc") == 0, "the name of its node");
  WORKS(mp_graph_get_memory(graph, &memory));
  check(memory.parameters > 0 && memory.copies == 0 && memory.gradients == 0,
        "memory in fp32, without loss");
  info.struct_size = 8;
  FAILS(mp_graph_get_tensor, (graph, y, &info), MP_ERROR_STRUCT_SIZE, "info");
  memory.struct_size = 0;
  FAILS(mp_graph_get_memory, (graph, &memory), MP_ERROR_STRUCT_SIZE, "memory");
}

/* ---------------------------------------------------------------- calls at an invalid time */

static void test_order(void) {
  const int32_t inputs[] = {x, w, b};
  const int64_t extent[] = {kBatch};
  mp_tensor_list_t list = NULL;
  mp_graph_memory_t memory;
  size_t bytes = 0;
  int64_t step = -1;
  int32_t y = -1;
  MP_INIT_STRUCT(&memory);
  INVALID(mp_graph_forward, (graph, MP_GRAPH_MODE_INFERENCE, NULL), "graph");
  INVALID(mp_graph_backward, (graph, NULL, NULL), "graph");
  INVALID(mp_graph_bind, (graph, x, NULL), "graph");
  INVALID(mp_graph_set_batch, (graph, 1), "graph");
  INVALID(mp_graph_write, (graph, w, at(0), NULL), "graph");
  INVALID(mp_graph_get_step_sync, (graph, &step, NULL), "graph");
  INVALID(mp_graph_set_step_sync, (graph, 1, NULL), "graph");
  INVALID(mp_graph_get_lists, (graph, &list, NULL, NULL), "graph");
  INVALID(mp_graph_get_memory, (graph, &memory), "graph");
  INVALID(mp_graph_describe, (graph, NULL, &bytes), "graph");
  INVALID(mp_graph_explain, (graph, MP_AUTOCAST_FORMAT_TEXT, NULL, &bytes), "graph");

  WORKS(mp_graph_add_node(graph, "Linear", "fc", inputs, 3, NULL, 0, &y, 1));
  WORKS(mp_graph_add_output(graph, y));
  WORKS(mp_graph_compile(graph));
  INVALID(mp_graph_compile, (graph), "graph");
  INVALID(mp_graph_measure_kernels, (graph, 1), "graph");
  INVALID(mp_graph_add_input, (graph, "late", MP_FP32, 1, extent, &tensor), "graph");
  INVALID(mp_graph_add_node, (graph, "Linear", "late", inputs, 3, NULL, 0, outputs, 1), "graph");
  INVALID(mp_graph_forward, (graph, (mp_graph_mode_t)0, NULL), "mode");
  INVALID(mp_graph_forward, (graph, (mp_graph_mode_t)3, NULL), "mode");
  INVALID(mp_graph_forward, (graph, MP_GRAPH_MODE_TRAINING, NULL), "mode");
  INVALID(mp_graph_forward, (graph, MP_GRAPH_MODE_INFERENCE, NULL), "x is not bound");
  INVALID(mp_graph_backward, (graph, NULL, NULL), "loss");
  INVALID(mp_graph_bind, (graph, w, at(0)), "tensor");
  INVALID(mp_graph_bind, (graph, 9999, at(0)), "tensor");
  INVALID(mp_graph_set_batch, (graph, 0), "batch");
  INVALID(mp_graph_set_batch, (graph, kBatch + 1), "batch");
  INVALID(mp_graph_set_step_sync, (graph, -1, NULL), "t = -1");
  INVALID(mp_graph_set_step_sync, (graph, (INT64_C(1) << 52) + 1, NULL), "t = 4503599627370497");
  WORKS(mp_graph_set_step_sync(graph, 5, NULL));
  WORKS(mp_graph_get_step_sync(graph, &step, NULL));
  check(step == 0, "a graph without Dropout counts no steps");
  INVALID(mp_graph_write, (graph, x, at(0), NULL), "tensor");
  INVALID(mp_graph_get_lists, (graph, &list, NULL, NULL), "grads");
  INVALID(mp_graph_explain, (graph, MP_AUTOCAST_FORMAT_TEXT, NULL, &bytes), "graph");
  WORKS(mp_graph_describe(graph, NULL, &bytes));
  check(bytes > 40, "a description is not empty");
  char text[512] = {0};
  bytes -= 1;
  FAILS(mp_graph_describe, (graph, text, &bytes), MP_ERROR_WORKSPACE_TOO_SMALL, "*bytes");
  check(text[0] == 0, "a description that does not fit is not written");
  test_reports(y);
  WORKS(mp_graph_get_lists(graph, NULL, &list, NULL));
  check(list != NULL, "the masters of a graph without loss");
  WORKS(mp_graph_bind(graph, x, at(0)));
  WORKS(mp_graph_forward(graph, MP_GRAPH_MODE_INFERENCE, NULL));
}

/** A loss that does not depend on a parameter; a policy that graphs do not support. */
static void test_compile(void) {
  const int32_t inputs[] = {x, labels}, products[] = {x, w};
  mp_autocast_config_t config = mp_autocast_config_default(MP_FP16);
  mp_autocast_t policy = NULL;
  int32_t loss = -1, y = -1;
  WORKS(mp_graph_add_node(graph, "SoftmaxXent", "loss", inputs, 2, NULL, 0, &loss, 1));
  config.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT | MP_AUTOCAST_FLAG_EMULATE;
  WORKS(mp_autocast_create(&policy, &config));
  FAILS(mp_graph_set_autocast, (graph, policy), MP_ERROR_UNSUPPORTED, "policy");
  mp_autocast_destroy(policy);
  WORKS(mp_graph_add_node(graph, "Linear", "fc", products, 2, NULL, 0, &y, 1));
  WORKS(mp_graph_set_loss(graph, loss));
  INVALID(mp_graph_compile, (graph), "parameter w");
}

void test_graph(void) {
  mp_graph_destroy(NULL);
  void (*const parts[])(void) = {test_tensors_of_graphs, test_nodes, test_order, test_compile};
  for (size_t i = 0; i < COUNT(parts); i++) {
    describe();
    parts[i]();
    mp_graph_destroy(graph);
    graph = NULL;
  }
}
