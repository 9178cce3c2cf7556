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
  FAILS(mp_graph_add_input, (graph, "", MP_FP32, 1, extent, &tensor), MP_ERROR_INVALID_ARGUMENT,
        "name");
  FAILS(mp_graph_add_input, (graph, "t", (mp_dtype_t)4, 1, extent, &tensor),
        MP_ERROR_INVALID_ARGUMENT, "dtype");
  FAILS(mp_graph_add_input, (graph, "t", (mp_dtype_t)-1, 1, extent, &tensor),
        MP_ERROR_INVALID_ARGUMENT, "dtype");
  FAILS(mp_graph_add_input, (graph, "t", MP_FP32, -1, extent, &tensor), MP_ERROR_INVALID_ARGUMENT,
        "rank");
  FAILS(mp_graph_add_input, (graph, "t", MP_FP32, MP_GRAPH_MAX_RANK + 1, extent, &tensor),
        MP_ERROR_INVALID_ARGUMENT, "rank");
  FAILS(mp_graph_add_input, (graph, "t", MP_FP32, 1, other_batch, &tensor),
        MP_ERROR_INVALID_ARGUMENT, "extent[0]");
  FAILS(mp_graph_add_parameter, (graph, "t", 1, none, &tensor), MP_ERROR_INVALID_ARGUMENT,
        "extent[0]");
  FAILS(mp_graph_add_parameter, (graph, "t", 2, negative, &tensor), MP_ERROR_INVALID_ARGUMENT,
        "extent[1]");
  FAILS(mp_graph_add_parameter, (graph, "t", 2, huge, &tensor), MP_ERROR_INVALID_ARGUMENT,
        "extent[1]");
  FAILS(mp_graph_add_state, (graph, "t", 1, none, &tensor), MP_ERROR_INVALID_ARGUMENT, "extent[0]");
  FAILS(mp_graph_add_output, (graph, 9999), MP_ERROR_INVALID_ARGUMENT, "tensor");
  FAILS(mp_graph_add_output, (graph, -1), MP_ERROR_INVALID_ARGUMENT, "tensor");
  FAILS(mp_graph_add_output, (graph, x), MP_ERROR_INVALID_ARGUMENT, "tensor");
  FAILS(mp_graph_keep_gradient, (graph, w), MP_ERROR_INVALID_ARGUMENT, "tensor");
  FAILS(mp_graph_keep_gradient, (graph, 9999), MP_ERROR_INVALID_ARGUMENT, "tensor");
  FAILS(mp_graph_set_loss, (graph, x), MP_ERROR_INVALID_ARGUMENT, "tensor");
  FAILS(mp_graph_set_loss, (graph, 9999), MP_ERROR_INVALID_ARGUMENT, "tensor");
  FAILS(mp_graph_seed_gradient, (graph, x, &tensor), MP_ERROR_INVALID_ARGUMENT, "tensor");
  FAILS(mp_graph_seed_gradient, (graph, 9999, &tensor), MP_ERROR_INVALID_ARGUMENT, "tensor");
  FAILS(mp_graph_measure_kernels, (graph, -1), MP_ERROR_INVALID_ARGUMENT, "max_kernels");
}

/* ---------------------------------------------------------------- nodes */

/** Attribute of kind INTS with these elements. */
#define INTS(name, ...)                               \
  mp_graph_ints(name, (const int64_t[]){__VA_ARGS__}, \
                sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/** A node that mp_graph_add_node rejects. */
struct node_case {
  const char *label, *op;
  int32_t inputs[9];
  uint32_t num_inputs;
  mp_graph_attribute_t attributes[3];
  uint32_t num_attributes;
  mp_status_t status;
  const char *argument; /**< word in the error message */
};

static mp_graph_attribute_t of_kind(int kind) {
  mp_graph_attribute_t attribute = mp_graph_int("window", 2);
  attribute.kind = (mp_attribute_kind_t)kind;
  return attribute;
}

static void check_node(const struct node_case *c) {
  char label[160];
  snprintf(label, sizeof label, "mp_graph_add_node: %s: %s", c->op, c->label);
  check_failure(label, "mp_graph_add_node",
                mp_graph_add_node(graph, c->op, "n", c->inputs, c->num_inputs, c->attributes,
                                  c->num_attributes, outputs, 1),
                c->status, c->argument);
}

static void test_nodes(void) {
  const int32_t good[] = {x, w, b};
  const mp_graph_attribute_t nameless = mp_graph_int(NULL, 0);
  FAILS(mp_graph_add_node, (graph, "linear", "n", good, 3, NULL, 0, outputs, 1), MP_ERROR_NOT_FOUND,
        "op_type");
  FAILS(mp_graph_add_node, (graph, "LinearBackpropInput", "n", good, 2, NULL, 0, outputs, 1),
        MP_ERROR_NOT_FOUND, "op_type");
  FAILS(mp_graph_add_node, (graph, "Linear", "n", good, 1, NULL, 0, outputs, 1),
        MP_ERROR_INVALID_ARGUMENT, "num_inputs");
  FAILS(mp_graph_add_node, (graph, "Linear", "n", good, 4, NULL, 0, outputs, 1),
        MP_ERROR_INVALID_ARGUMENT, "num_inputs");
  FAILS(mp_graph_add_node, (graph, "Linear", "n", good, 3, NULL, 0, outputs, 0),
        MP_ERROR_INVALID_ARGUMENT, "num_outputs");
  FAILS(mp_graph_add_node, (graph, "Linear", "n", good, 3, NULL, 0, outputs, 2),
        MP_ERROR_INVALID_ARGUMENT, "num_outputs");
  FAILS(mp_graph_add_node, (graph, "Linear", "n", good, 3, &nameless, 1, outputs, 1),
        MP_ERROR_INVALID_ARGUMENT, "attributes[0].name");

  FAILS(mp_graph_add_node, (graph, "Split", "n", good, 1, NULL, 0, outputs, 3),
        MP_ERROR_INVALID_ARGUMENT, "the number of outputs, 3, must divide");

  const int64_t huge_extent[] = {(INT64_C(1) << 32) + 9, 3};
  const int32_t huge_table = add(mp_graph_add_state, "huge_table", 2, huge_extent);
  const int64_t wide_extent[] = {kBatch, 65537}, sequence_extent[] = {kBatch, 5, 9};
  const int64_t wide3_extent[] = {kBatch, 5, 257};
  const int32_t wide = add(mp_graph_add_state, "wide", 2, wide_extent);
  const int64_t crowd_extent[] = {65536, 1, 3 * 32768};
  const int32_t crowd = add(mp_graph_add_state, "crowd", 3, crowd_extent);
  const int32_t wide3 = add(mp_graph_add_state, "wide3", 3, wide3_extent);
  const int32_t sequence = add_input("sequence", MP_FP32, 3, sequence_extent);
  /* clang-format off */
  const struct node_case cases[] = {
      {"an input index out of range", "Linear", {x, 9999}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT,
       "inputs[1]"},
      {"an input that may not be absent", "Linear", {-1, w}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT,
       "inputs[0]"},
      {"integers", "Linear", {indices, w}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "x = indices"},
      {"w of another size", "Linear", {x, table}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT,
       "w = table"},
      {"w of another rank", "Linear", {x, b}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "w = b"},
      {"b of another size", "Linear", {x, w, gamma_}, 3, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT,
       "b = gamma"},
      {"an unknown attribute", "Linear", {x, w}, 2, {mp_graph_int("stride", 1)}, 1,
       MP_ERROR_NOT_FOUND, "stride"},
      {"out of range", "Linear", {x, w}, 2, {mp_graph_int("transposed", 2)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "transposed"},
      {"a 2D image", "Conv2D", {x, filter}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "x = x"},
      {"channels", "Conv2D", {image, filter}, 2, {mp_graph_int("groups", 2)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "channels"},
      {"a stride of 0", "Conv2D", {image, filter}, 2, {mp_graph_int("stride", 0)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "stride"},
      {"a fractional stride", "Conv2D", {image, filter}, 2, {mp_graph_float("stride", 1.5)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "stride"},
      {"a fractional stride", "MaxPool", {image}, 1, {mp_graph_float("stride", 1.5)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "stride"},
      {"a wide filter", "Conv2D", {image, filter}, 2, {mp_graph_int("dilation", 4)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "w = filter"},
      {"padding beyond 32 bits", "Conv2D", {image, filter}, 2, {mp_graph_int("pad", 2147483647)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "Conv2D"},
      {"different shapes", "Add", {x, w}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "b = w"},
      {"different shapes", "Mul", {x, image}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "b = image"},
      {"trailing dimensions that differ", "Add", {image, b}, 2, {{0}}, 0,
       MP_ERROR_INVALID_ARGUMENT, "b = b"},
      {"groups", "LayerNorm", {x, gamma_}, 2, {mp_graph_int("groups", 3)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "groups = 3"},
      {"gamma of another size", "LayerNorm", {x, gamma_}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT,
       "gamma = gamma"},
      {"beta", "RMSNorm", {x, b, b}, 3, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "num_inputs"},
      {"columns beyond the kernel", "RMSNorm", {wide}, 1, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT,
       "65537"},
      {"an odd number of columns", "Swiglu", {table}, 1, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT,
       "x = table"},
      {"lengths of all dimensions", "Softmax", {x, indices}, 2, {{0}}, 0,
       MP_ERROR_INVALID_ARGUMENT, "lengths = indices"},
      {"floats as lengths", "LogSoftmax", {x, x}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT,
       "lengths = x"},
      {"a 2D input", "Attention", {x}, 1, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "q = x"},
      {"k without v", "Attention", {sequence, sequence}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT,
       "k and v"},
      {"kv_heads", "Attention", {sequence}, 1, {mp_graph_int("heads", 2),
       mp_graph_int("kv_heads", 3)}, 2, MP_ERROR_INVALID_ARGUMENT, "kv_heads = 3"},
      {"heads", "Attention", {sequence}, 1, {mp_graph_int("heads", 2)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "q = sequence"},
      {"heads of all sequences beyond 32 bits", "Attention", {crowd}, 1,
       {mp_graph_int("heads", 32768)}, 1, MP_ERROR_INVALID_ARGUMENT, "heads = 32768"},
      {"head dimension", "Attention", {wide3, wide3, wide3}, 3, {{0}}, 0,
       MP_ERROR_INVALID_ARGUMENT, "q = wide3"},
      {"k of another size", "Attention", {sequence, wide3, sequence}, 3, {{0}}, 0,
       MP_ERROR_INVALID_ARGUMENT, "k = wide3"},
      {"sinks of another size", "Attention", {sequence, sequence, sequence, -1, b}, 5, {{0}}, 0,
       MP_ERROR_INVALID_ARGUMENT, "sinks = b"},
      {"lengths of another shape", "Attention", {sequence, sequence, sequence, indices}, 4, {{0}},
       0, MP_ERROR_INVALID_ARGUMENT, "lengths = indices"},
      {"q_lengths of a packed matrix", "Attention", {sequence, -1, -1, -1, -1, -1, labels}, 7,
       {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "q_lengths = labels"},
      {"p = 1", "Attention", {sequence}, 1, {mp_graph_float("p", 1)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "p = 1"},
      {"heads", "RotaryEmbedding", {x}, 1, {mp_graph_int("heads", 3)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "heads = 3"},
      {"rotated heads", "RotaryEmbedding", {x}, 1, {mp_graph_int("rotated_heads", 2)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "rotated_heads = 2"},
      {"an odd rotary_dim", "RotaryEmbedding", {x}, 1, {mp_graph_int("rotary_dim", 3)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "rotary_dim = 3"},
      {"rotary_dim beyond the head", "RotaryEmbedding", {x}, 1, {mp_graph_int("rotary_dim", 10)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "rotary_dim = 10"},
      {"positions of another shape", "RotaryEmbedding", {x, indices}, 2, {{0}}, 0,
       MP_ERROR_INVALID_ARGUMENT, "positions = indices"},
      {"an axis beyond the rank", "Concat", {x, x}, 2, {mp_graph_int("axis", 2)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "axis = 2"},
      {"another rank", "Concat", {x, image}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "x1 = image"},
      {"another extent", "Concat", {sequence, sequence, wide3}, 3, {mp_graph_int("axis", 1)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "x2 = wide3"},
      {"an absent part", "Concat", {x, -1, x}, 3, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "x1"},
      {"more extents than outputs", "Split", {x}, 1, {INTS("extents", 3, 5)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "1 outputs"},
      {"another sum", "Split", {x}, 1, {INTS("extents", 7)}, 1, MP_ERROR_INVALID_ARGUMENT,
       "sum 7"},
      {"an empty range", "Slice", {x}, 1, {mp_graph_int("begin", 3), mp_graph_int("end", 3)}, 2,
       MP_ERROR_INVALID_ARGUMENT, "begin = 3"},
      {"a range beyond the extent", "Slice", {x}, 1, {mp_graph_int("end", 9)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "end = 9"},
      {"a negative number of zeros", "Pad", {x}, 1, {mp_graph_int("before", -1)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "before"},
      {"a dimension twice", "Transpose", {x}, 1, {INTS("permutation", 1, 1)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "permutation = [1 1]"},
      {"a missing dimension", "Transpose", {image}, 1, {INTS("permutation", 1, 0)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "permutation = [1 0]"},
      {"no axes", "Mean", {x}, 1, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "axes = []"},
      {"axes that are not adjacent", "Sum", {image}, 1, {INTS("axes", 1, 3)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "axes = [1 3]"},
      {"axes beyond the rank", "Sum", {x}, 1, {INTS("axes", 2)}, 1, MP_ERROR_INVALID_ARGUMENT,
       "axes = [2]"},
      {"different shapes", "Sub", {x, w}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "b = w"},
      {"different shapes", "Div", {x, image}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "b = image"},
      {"a limit that is not a number", "Clip", {x}, 1, {mp_graph_float("max", NAN)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "max = nan"},
      {"an infinite slope", "LeakyRelu", {x}, 1, {mp_graph_float("slope", 1e300)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "slope"},
      {"an empty range", "Clip", {x}, 1, {mp_graph_float("min", 2), mp_graph_float("max", 1)}, 2,
       MP_ERROR_INVALID_ARGUMENT, "min = 2"},
      {"b of another size", "BiasAdd", {x, b}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "b = b"},
      {"a window beyond the image", "MaxPool", {image}, 1, {mp_graph_int("window", 6)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "window"},
      {"padding as large as the window", "AvgPool", {image}, 1, {mp_graph_int("pad", 2)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "pad_top"},
      {"an attribute of AvgPool", "MaxPool", {image}, 1, {mp_graph_int("include_pad", 1)}, 1,
       MP_ERROR_NOT_FOUND, "include_pad"},
      {"a parameter as a state", "BatchNorm", {image, gamma_, gamma_, gamma_, mean}, 5, {{0}}, 0,
       MP_ERROR_INVALID_ARGUMENT, "mean = gamma"},
      {"gamma of another size", "BatchNorm", {image, b, gamma_, mean, mean}, 5, {{0}}, 0,
       MP_ERROR_INVALID_ARGUMENT, "gamma = b"},
      {"a vocabulary beyond 32 bits", "Embedding", {huge_table, indices}, 2, {{0}}, 0,
       MP_ERROR_INVALID_ARGUMENT, "huge_table"},
      {"floats as indices", "Embedding", {table, x}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT,
       "indices = x"},
      {"p = 1", "Dropout", {x}, 1, {mp_graph_float("p", 1)}, 1, MP_ERROR_INVALID_ARGUMENT,
       "p = 1"},
      {"several offsets", "Dropout", {x, labels}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT,
       "offset = labels"},
      {"two open extents", "Reshape", {x}, 1, {INTS("extent", -1, -1)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "extents 0 and 1"},
      {"extent 0 beyond the input's rank", "Reshape", {x}, 1, {INTS("extent", 0, 0, 0)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "extent 2"},
      {"7 elements", "Reshape", {x}, 1, {INTS("extent", 7)}, 1, MP_ERROR_INVALID_ARGUMENT,
       "elements"},
      {"unknown attribute", "Reshape", {x}, 1, {mp_graph_int("shape", 7)}, 1, MP_ERROR_NOT_FOUND,
       "shape"},
      {"a size below -1", "Reshape", {x}, 1, {INTS("extent", 1, -2)}, 1, MP_ERROR_INVALID_ARGUMENT,
       "extent[1] = -2"},
      {"nine dimensions", "Reshape", {x}, 1, {INTS("extent", 1, 1, 1, 1, 1, 1, 1, 1, -1)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "extent has 9 elements"},
      {"a list without elements", "Reshape", {x}, 1, {mp_graph_ints("extent", NULL, 1)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "ints of extent = NULL"},
      {"an integer for a list", "Reshape", {x}, 1, {mp_graph_int("extent", 4)}, 1,
       MP_ERROR_INVALID_ARGUMENT,
       "kind of extent = MP_ATTRIBUTE_KIND_INT: must be MP_ATTRIBUTE_KIND_INTS"},
      {"a list for an integer", "MaxPool", {image}, 1, {INTS("window", 2, 2)}, 1,
       MP_ERROR_INVALID_ARGUMENT,
       "kind of window = MP_ATTRIBUTE_KIND_INTS: must be MP_ATTRIBUTE_KIND_INT"},
      {"real numbers for an integer", "MaxPool", {image}, 1, {mp_graph_floats("window", NULL, 0)},
       1, MP_ERROR_INVALID_ARGUMENT, "kind of window = MP_ATTRIBUTE_KIND_FLOATS"},
      {"a list for a real number", "Dropout", {x}, 1, {INTS("p", 0)}, 1, MP_ERROR_INVALID_ARGUMENT,
       "kind of p = MP_ATTRIBUTE_KIND_INTS: must be MP_ATTRIBUTE_KIND_FLOAT"},
      {"no kind", "MaxPool", {image}, 1, {of_kind(0)}, 1, MP_ERROR_INVALID_ARGUMENT,
       "attributes[0].kind = 0"},
      {"an unknown kind", "MaxPool", {image}, 1, {of_kind(5)}, 1, MP_ERROR_INVALID_ARGUMENT,
       "attributes[0].kind = 5"},
      {"no struct_size", "MaxPool", {image}, 1, {{0}}, 1, MP_ERROR_STRUCT_SIZE,
       "attributes[0].struct_size = 0"},
      {"an attribute twice", "MaxPool", {image}, 1, {mp_graph_int("window", 2),
       mp_graph_int("window", 3)}, 2, MP_ERROR_INVALID_ARGUMENT,
       "attribute window must be given only once"},
      {"extents whose product overflows", "Reshape", {x}, 1, {INTS("extent", 281474976710656,
       281474976710656, -1)}, 1, MP_ERROR_INVALID_ARGUMENT, "extents"},
      {"a 2D input", "LSTM", {x, w, w}, 3, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "x = x"},
      {"labels of another shape", "SoftmaxXent", {x, indices}, 2, {{0}}, 0,
       MP_ERROR_INVALID_ARGUMENT, "labels = indices"},
      {"labels that are computed", "SoftmaxXent", {x, x}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT,
       "labels = x"},
      {"lengths and two axes", "Mean", {sequence, labels}, 2, {INTS("axes", 0, 1)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "axes = [0 1]"},
      {"lengths of another shape", "Mean", {sequence, indices}, 2, {INTS("axes", 1)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "lengths = indices"},
      {"lengths", "Sum", {sequence, labels}, 2, {INTS("axes", 1)}, 1, MP_ERROR_INVALID_ARGUMENT,
       "num_inputs = 2"},
      {"a vector", "MatMul", {b, b}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "a = b"},
      {"different ranks", "MatMul", {sequence, x}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT, "b = x"},
      {"inner dimensions", "MatMul", {sequence, sequence}, 2, {{0}}, 0, MP_ERROR_INVALID_ARGUMENT,
       "inner dimension"},
      {"features of another size", "LinearXent", {x, w, -1, labels}, 4, {{0}}, 0,
       MP_ERROR_INVALID_ARGUMENT, "x = x"},
      {"a count with elements", "LinearXent", {x, x, -1, labels, b}, 5, {{0}}, 0,
       MP_ERROR_INVALID_ARGUMENT, "count = b"},
      {"smoothing = 1", "SoftmaxXent", {x, labels}, 2, {mp_graph_float("label_smoothing", 1)}, 1,
       MP_ERROR_INVALID_ARGUMENT, "label_smoothing"},
  };
  /* clang-format on */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_node(&cases[i]);
}

/* ---------------------------------------------------------------- reports */

static void test_reports(int32_t y) {
  mp_graph_tensor_t info;
  mp_graph_memory_t memory;
  MP_INIT_STRUCT(&info);
  MP_INIT_STRUCT(&memory);
  FAILS(mp_graph_get_tensor, (graph, -1, &info), MP_ERROR_INVALID_ARGUMENT, "tensor");
  FAILS(mp_graph_get_tensor, (graph, 9999, &info), MP_ERROR_INVALID_ARGUMENT, "tensor");
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
  FAILS(mp_graph_forward, (graph, MP_GRAPH_MODE_INFERENCE, NULL), MP_ERROR_INVALID_ARGUMENT,
        "graph");
  FAILS(mp_graph_backward, (graph, NULL, NULL), MP_ERROR_INVALID_ARGUMENT, "graph");
  FAILS(mp_graph_bind, (graph, x, NULL), MP_ERROR_INVALID_ARGUMENT, "graph");
  FAILS(mp_graph_set_batch, (graph, 1), MP_ERROR_INVALID_ARGUMENT, "graph");
  FAILS(mp_graph_write, (graph, w, at(0), NULL), MP_ERROR_INVALID_ARGUMENT, "graph");
  FAILS(mp_graph_get_step_sync, (graph, &step, NULL), MP_ERROR_INVALID_ARGUMENT, "graph");
  FAILS(mp_graph_set_step_sync, (graph, 1, NULL), MP_ERROR_INVALID_ARGUMENT, "graph");
  FAILS(mp_graph_get_lists, (graph, &list, NULL, NULL), MP_ERROR_INVALID_ARGUMENT, "graph");
  FAILS(mp_graph_get_memory, (graph, &memory), MP_ERROR_INVALID_ARGUMENT, "graph");
  FAILS(mp_graph_describe, (graph, NULL, &bytes), MP_ERROR_INVALID_ARGUMENT, "graph");
  FAILS(mp_graph_explain, (graph, MP_AUTOCAST_FORMAT_TEXT, NULL, &bytes), MP_ERROR_INVALID_ARGUMENT,
        "graph");

  WORKS(mp_graph_add_node(graph, "Linear", "fc", inputs, 3, NULL, 0, &y, 1));
  WORKS(mp_graph_add_output(graph, y));
  WORKS(mp_graph_compile(graph));
  FAILS(mp_graph_compile, (graph), MP_ERROR_INVALID_ARGUMENT, "graph");
  FAILS(mp_graph_measure_kernels, (graph, 1), MP_ERROR_INVALID_ARGUMENT, "graph");
  FAILS(mp_graph_add_input, (graph, "late", MP_FP32, 1, extent, &tensor), MP_ERROR_INVALID_ARGUMENT,
        "graph");
  FAILS(mp_graph_add_node, (graph, "Linear", "late", inputs, 3, NULL, 0, outputs, 1),
        MP_ERROR_INVALID_ARGUMENT, "graph");
  FAILS(mp_graph_forward, (graph, (mp_graph_mode_t)0, NULL), MP_ERROR_INVALID_ARGUMENT, "mode");
  FAILS(mp_graph_forward, (graph, (mp_graph_mode_t)3, NULL), MP_ERROR_INVALID_ARGUMENT, "mode");
  FAILS(mp_graph_forward, (graph, MP_GRAPH_MODE_TRAINING, NULL), MP_ERROR_INVALID_ARGUMENT, "mode");
  FAILS(mp_graph_forward, (graph, MP_GRAPH_MODE_INFERENCE, NULL), MP_ERROR_INVALID_ARGUMENT,
        "x is not bound");
  FAILS(mp_graph_backward, (graph, NULL, NULL), MP_ERROR_INVALID_ARGUMENT, "loss");
  FAILS(mp_graph_bind, (graph, w, at(0)), MP_ERROR_INVALID_ARGUMENT, "tensor");
  FAILS(mp_graph_bind, (graph, 9999, at(0)), MP_ERROR_INVALID_ARGUMENT, "tensor");
  FAILS(mp_graph_set_batch, (graph, 0), MP_ERROR_INVALID_ARGUMENT, "batch");
  FAILS(mp_graph_set_batch, (graph, kBatch + 1), MP_ERROR_INVALID_ARGUMENT, "batch");
  FAILS(mp_graph_set_step_sync, (graph, -1, NULL), MP_ERROR_INVALID_ARGUMENT, "t = -1");
  FAILS(mp_graph_set_step_sync, (graph, (INT64_C(1) << 52) + 1, NULL), MP_ERROR_INVALID_ARGUMENT,
        "t = 4503599627370497");
  WORKS(mp_graph_set_step_sync(graph, 5, NULL));
  WORKS(mp_graph_get_step_sync(graph, &step, NULL));
  check(step == 0, "a graph without Dropout counts no steps");
  FAILS(mp_graph_write, (graph, x, at(0), NULL), MP_ERROR_INVALID_ARGUMENT, "tensor");
  FAILS(mp_graph_get_lists, (graph, &list, NULL, NULL), MP_ERROR_INVALID_ARGUMENT, "grads");
  FAILS(mp_graph_explain, (graph, MP_AUTOCAST_FORMAT_TEXT, NULL, &bytes), MP_ERROR_INVALID_ARGUMENT,
        "graph");
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
  FAILS(mp_graph_compile, (graph), MP_ERROR_INVALID_ARGUMENT, "parameter w");
}

void test_graph(void) {
  mp_graph_destroy(NULL);
  void (*const parts[])(void) = {test_tensors_of_graphs, test_nodes, test_order, test_compile};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    describe();
    parts[i]();
    mp_graph_destroy(graph);
    graph = NULL;
  }
}
