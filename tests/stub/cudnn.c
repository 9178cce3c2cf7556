/* Stub of cuDNN for tests: recurrent layers of fp32 with CUDNN_SKIP_INPUT and one layer, and
 * attention of fp32 through the graph API, which mpcore computes on the host target.  Inconsistent
 * sizes are rejected.  Weights have another order than mpcore's.  Like the real library, backward
 * data consumes the results of forward, and gradients of weights are accumulated. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mpcore.h"

enum { SUCCESS = 0, BAD_PARAM = 3, NOT_SUPPORTED = 9 };
enum { RELU = 0, LSTM = 2, GRU = 3 };

typedef struct {
  int cell, hidden, algo, is_built;
} Rnn;
typedef struct {
  int timesteps, batch, elems;
} Data;

#define REQUIRE(condition) \
  if (!(condition)) return BAD_PARAM

/* ---- handles and descriptors ---- */

static int make(void **object, size_t bytes) {
  *object = calloc(1, bytes);
  return *object != NULL ? SUCCESS : BAD_PARAM;
}
static int destroy(void *object) {
  free(object);
  return SUCCESS;
}

#define OBJECT(create, destroy_it, bytes) \
  int create(void **object) {             \
    return make(object, bytes);           \
  }                                       \
  int destroy_it(void *object) {          \
    return destroy(object);               \
  }
OBJECT(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor, 1)
OBJECT(cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor, 1)
OBJECT(cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor, sizeof(Rnn))
OBJECT(cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor, sizeof(Data))

int cudnnCreate(mp_context_t *handle) {
  mp_context_config_t config = mp_context_config_default();
  config.device = MP_DEVICE_HOST;
  return mp_context_create(handle, &config) == MP_SUCCESS ? SUCCESS : BAD_PARAM;
}
int cudnnDestroy(mp_context_t handle) {
  mp_context_destroy(handle);
  return SUCCESS;
}
size_t cudnnGetVersion(void) {
  return 90000;
}
const char *cudnnGetErrorString(int status) {
  return status == NOT_SUPPORTED ? "NOT_SUPPORTED" : "BAD_PARAM";
}
int cudnnSetStream(void *handle, void *stream) {
  (void)stream;
  return handle != NULL ? SUCCESS : BAD_PARAM;
}
int cudnnSetDropoutDescriptor(void *desc, void *handle, float dropout, void *states, size_t bytes,
                              unsigned long long seed) {
  (void)seed;
  REQUIRE(desc != NULL && handle != NULL && dropout == 0.0f && states == NULL && bytes == 0);
  return SUCCESS;
}
int cudnnSetTensorNdDescriptor(void *desc, int type, int dims, const int *extents,
                               const int *strides) {
  REQUIRE(desc != NULL && type == 0 && dims == 3 && extents[0] == 1);
  REQUIRE(strides[2] == 1 && strides[1] == extents[2] && strides[0] == extents[1] * extents[2]);
  return SUCCESS;
}

int cudnnSetRNNDescriptor_v8(Rnn *rnn, int algo, int cell, int bias, int direction, int input,
                             int type, int compute, int math, int32_t inputs, int32_t hidden,
                             int32_t projected, int32_t layers, void *dropout, uint32_t flags) {
  REQUIRE(bias == 2 && direction == 0 && input == 1 && compute == 0 && (math == 0 || math == 3) &&
          layers == 1);
  REQUIRE(inputs == hidden && projected == hidden && dropout != NULL && flags == 0);
  REQUIRE(cell == RELU || cell == LSTM || cell == GRU);
  if (type != 0 || algo == 1) return NOT_SUPPORTED;
  rnn->cell = cell;
  rnn->hidden = hidden;
  rnn->algo = algo;
  return SUCCESS;
}
int cudnnBuildRNNDynamic(void *handle, Rnn *rnn, int batch) {
  REQUIRE(handle != NULL && rnn->algo == 2 && batch > 0);
  rnn->is_built = 1;
  return SUCCESS;
}
int cudnnSetRNNDataDescriptor(Data *data, int type, int layout, int timesteps, int batch, int elems,
                              const int *lengths, void *padding) {
  REQUIRE(type == 0 && layout == 1 && padding == NULL);
  for (int b = 0; b < batch; b++) REQUIRE(lengths[b] == timesteps);
  data->timesteps = timesteps;
  data->batch = batch;
  data->elems = elems;
  return SUCCESS;
}

/* ---- weights: biases first, the last gate before the others ---- */

static int gates_of(const Rnn *rnn) {
  return rnn->cell == LSTM ? 4 : rnn->cell == GRU ? 3 : 1;
}
static size_t weight_bytes_of(const Rnn *rnn) {
  return sizeof(float) * (size_t)(gates_of(rnn) * rnn->hidden * (rnn->hidden + 2));
}
static float *bias_of(const Rnn *rnn, float *weights, int matrix) {
  return weights + (2 * gates_of(rnn) - 1 - matrix) * rnn->hidden;
}
static float *matrix_of(const Rnn *rnn, float *weights, int gate) {
  const int g = gates_of(rnn), h = rnn->hidden;
  return weights + 2 * g * h + (g - 1 - gate) * h * h;
}
/* Copies between cuDNN's layout and the consecutive gates of w_hh, b_ih and b_hh, in this order. */
static void convert(const Rnn *rnn, float *weights, float *gates, int is_to_gates) {
  const int g = gates_of(rnn), h = rnn->hidden;
  for (int i = 0; i < 3 * g; i++) {
    const int is_bias = i >= g, count = is_bias ? h : h * h;
    float *const theirs = is_bias ? bias_of(rnn, weights, i - g) : matrix_of(rnn, weights, i);
    float *const ours = gates + (is_bias ? g * h * h + (i - g) * h : i * h * h);
    memcpy(is_to_gates ? ours : theirs, is_to_gates ? theirs : ours, sizeof(float) * (size_t)count);
  }
}

static mp_rnn_desc_t desc_of(const Rnn *rnn, const Data *x) {
  const mp_rnn_cell_t cell = rnn->cell == LSTM  ? MP_RNN_LSTM
                             : rnn->cell == GRU ? MP_RNN_GRU
                                                : MP_RNN_RELU;
  mp_rnn_desc_t desc =
      mp_rnn_desc_default(cell, x->batch, x->timesteps, rnn->hidden, rnn->hidden, MP_FP32);
  desc.flags = MP_RNN_FLAG_SKIP_INPUT | MP_RNN_FLAG_ACCUMULATE;
  return desc;
}
/* Arrays of forward that the backward passes must receive; at the end of the reserve. */
typedef struct {
  const void *h0, *y;
} Kept;
static mp_rnn_sizes_t sizes_of(mp_context_t handle, const Rnn *rnn, const Data *x) {
  const mp_rnn_desc_t desc = desc_of(rnn, x);
  mp_rnn_sizes_t sizes;
  MP_INIT_STRUCT(&sizes);
  mp_rnn_get_sizes(handle, &desc, &sizes);
  sizes.workspace_bytes += 512;
  sizes.reserve_bytes += sizeof(Kept);
  return sizes;
}

int cudnnGetRNNTempSpaceSizes(mp_context_t handle, Rnn *rnn, int mode, Data *x, size_t *workspace,
                              size_t *reserve) {
  const mp_rnn_sizes_t sizes = sizes_of(handle, rnn, x);
  *workspace = sizes.workspace_bytes;
  *reserve = mode == 1 ? sizes.reserve_bytes : 0;
  return SUCCESS;
}
int cudnnGetRNNWeightSpaceSize(void *handle, Rnn *rnn, size_t *bytes) {
  REQUIRE(handle != NULL);
  *bytes = weight_bytes_of(rnn);
  return SUCCESS;
}
int cudnnGetRNNWeightParams(void *handle, Rnn *rnn, int32_t layer, size_t bytes, void *weights,
                            int32_t matrix, void *matrix_desc, void **matrix_at, void *bias_desc,
                            void **bias_at) {
  const int g = gates_of(rnn);
  REQUIRE(handle != NULL && layer == 0 && bytes == weight_bytes_of(rnn));
  REQUIRE(matrix >= 0 && matrix < 2 * g && matrix_desc != NULL && bias_desc != NULL);
  *matrix_at = matrix < g ? NULL : matrix_of(rnn, weights, matrix - g);
  *bias_at = bias_of(rnn, weights, matrix);
  return SUCCESS;
}

/* ---- the layer ---- */

typedef mp_status_t Pass(mp_context_t, const mp_rnn_desc_t *, const mp_rnn_tensors_t *, void *,
                         size_t, mp_stream_t);

/* Calls a pass of mpcore; `weights` are gradients if the pass is that of the weights. */
static int run(Pass *pass, mp_context_t handle, const Rnn *rnn, const int32_t *lengths,
               const Data *x, const Data *y, mp_rnn_tensors_t t, size_t weight_bytes,
               float *weights, size_t workspace_bytes, void *workspace) {
  const mp_rnn_desc_t desc = desc_of(rnn, x);
  const mp_rnn_sizes_t sizes = sizes_of(handle, rnn, x);
  REQUIRE(workspace != NULL && (rnn->algo != 2 || rnn->is_built));
  REQUIRE(x->elems == rnn->hidden && y->elems == rnn->hidden);
  REQUIRE(x->timesteps == y->timesteps && x->batch == y->batch);
  for (int b = 0; b < x->batch; b++) REQUIRE(lengths[b] == x->timesteps);
  REQUIRE(weight_bytes == weight_bytes_of(rnn) && workspace_bytes == sizes.workspace_bytes);
  REQUIRE(t.reserve_bytes == (pass == mp_rnn_forward_inference ? 0 : sizes.reserve_bytes));
  if (t.reserve_bytes > 0) {
    const Kept now = {t.h0, t.y};
    void *const kept = (char *)t.reserve + sizes.reserve_bytes - sizeof now;
    if (pass == mp_rnn_forward_training) memcpy(kept, &now, sizeof now);
    REQUIRE(memcmp(kept, &now, sizeof now) == 0);
  }

  float *const w_hh = malloc(weight_bytes);
  float *const b_ih = w_hh + (size_t)(gates_of(rnn) * rnn->hidden * rnn->hidden);
  float *const b_hh = b_ih + gates_of(rnn) * rnn->hidden;
  convert(rnn, weights, w_hh, 1);
  const mp_rnn_weights_t all = {sizeof all, 0, NULL, w_hh, b_ih, b_hh};
  const mp_rnn_weight_grads_t grads = {sizeof grads, 0, NULL, w_hh, b_ih, b_hh};
  t.num_weights = 1;
  t.weights = &all;
  if (pass == mp_rnn_backward_weights) t.weight_grads = &grads;
  const mp_status_t status = pass(handle, &desc, &t, workspace, workspace_bytes, NULL);
  convert(rnn, weights, w_hh, 0);
  free(w_hh);
  return status == MP_SUCCESS ? SUCCESS : BAD_PARAM;
}

static mp_rnn_tensors_t tensors_of(const void *x, const void *hx, const void *y, void *reserve,
                                   size_t reserve_bytes) {
  mp_rnn_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = x;
  t.h0 = hx;
  t.y = (void *)y;
  t.reserve = reserve;
  t.reserve_bytes = reserve_bytes;
  return t;
}

int cudnnRNNForward(mp_context_t handle, Rnn *rnn, int mode, const int32_t *lengths, Data *x_desc,
                    const float *x, Data *y_desc, float *y, void *h_desc, const float *hx,
                    float *hy, void *c_desc, const float *cx, float *cy, size_t weight_bytes,
                    float *weights, size_t workspace_bytes, void *workspace, size_t reserve_bytes,
                    void *reserve) {
  REQUIRE(h_desc != NULL && c_desc != NULL && cx == NULL && cy == NULL);
  mp_rnn_tensors_t t = tensors_of(x, hx, y, reserve, reserve_bytes);
  t.hn = hy;
  return run(mode == 1 ? mp_rnn_forward_training : mp_rnn_forward_inference, handle, rnn, lengths,
             x_desc, y_desc, t, weight_bytes, weights, workspace_bytes, workspace);
}

int cudnnRNNBackwardData_v8(mp_context_t handle, Rnn *rnn, const int32_t *lengths, Data *y_desc,
                            const float *y, const float *dy, Data *x_desc, float *dx, void *h_desc,
                            const float *hx, const float *dhy, float *dhx, void *c_desc,
                            const float *cx, const float *dcy, float *dcx, size_t weight_bytes,
                            float *weights, size_t workspace_bytes, void *workspace,
                            size_t reserve_bytes, void *reserve) {
  REQUIRE(h_desc != NULL && c_desc != NULL && dhy == NULL);
  REQUIRE(dhx != NULL && cx == NULL && dcy == NULL && dcx == NULL);
  mp_rnn_tensors_t t = tensors_of(NULL, hx, y, reserve, reserve_bytes);
  t.dy = dy;
  t.dx = dx;
  t.dh0 = dhx;
  return run(mp_rnn_backward_data, handle, rnn, lengths, x_desc, y_desc, t, weight_bytes, weights,
             workspace_bytes, workspace);
}

int cudnnRNNBackwardWeights_v8(mp_context_t handle, Rnn *rnn, int add, const int32_t *lengths,
                               Data *x_desc, const float *x, void *h_desc, const float *hx,
                               Data *y_desc, const float *y, size_t weight_bytes, float *dweights,
                               size_t workspace_bytes, void *workspace, size_t reserve_bytes,
                               void *reserve) {
  REQUIRE(h_desc != NULL && x != NULL && add == 0);
  return run(mp_rnn_backward_weights, handle, rnn, lengths, x_desc, y_desc,
             tensors_of(x, hx, y, reserve, reserve_bytes), weight_bytes, dweights, workspace_bytes,
             workspace);
}

/* ---- graph API: one attention ---- */

enum { SDPA_FORWARD = 41, SDPA_BACKWARD = 43 }; /* cudnnBackendDescriptorType_t */
enum { TYPE_BOOLEAN = 2, TYPE_INT64 = 3, TYPE_POINTER = 6, TYPE_DESCRIPTOR = 15, TYPE_HANDLE = 0 };
enum { HEUR_GRAPH = 201, HEUR_RESULTS = 202, CONFIG_ENGINE = 300, PLAN_CONFIG = 401, PLAN_BYTES };
enum { GRAPH_OPS = 801, TENSOR_DIMS = 902, TENSOR_STRIDES = 903, TENSOR_ID = 906 };
enum { PACK_IDS = 1000, PACK_POINTERS = 1001, ENGINE_NOTES = 1303, NONDETERMINISTIC = 4 };
enum { FORWARD_Q = 2800, BACKWARD_Q = 2851 }; /* q, k, v, o, stats and scale are adjacent */
enum { BACKWARD_DQ = 2859, BACKWARD_DK, BACKWARD_DV, BACKWARD_DO };

typedef struct Graph {
  int type, attributes, is_final, engine;
  struct {
    int name;
    int64_t count;
    char values[128];
  } attribute[16];
} Graph;

int cudnnBackendCreateDescriptor(int type, Graph **graph) {
  const int status = make((void **)graph, sizeof **graph);
  if (status == SUCCESS) (*graph)->type = type;
  return status;
}
int cudnnBackendDestroyDescriptor(Graph *graph) {
  return destroy(graph);
}
int cudnnBackendFinalize(Graph *graph) {
  graph->is_final = 1;
  return SUCCESS;
}
int cudnnBackendSetAttribute(Graph *graph, int name, int type, int64_t count, const void *values) {
  const size_t bytes =
      type == TYPE_BOOLEAN ? 1
      : type == TYPE_INT64 || type == TYPE_POINTER || type == TYPE_DESCRIPTOR || type == TYPE_HANDLE
          ? 8
          : 4;
  REQUIRE(!graph->is_final && graph->attributes < 16 && (size_t)count * bytes <= 128);
  graph->attribute[graph->attributes].name = name;
  graph->attribute[graph->attributes].count = count;
  memcpy(graph->attribute[graph->attributes++].values, values, (size_t)count * bytes);
  return SUCCESS;
}
static const void *attribute_of(const Graph *graph, int name) {
  for (int i = 0; graph != NULL && graph->is_final && i < graph->attributes; i++)
    if (graph->attribute[i].name == name) return graph->attribute[i].values;
  return NULL;
}
static Graph *part_of(const Graph *graph, int name) {
  Graph *const *const part = attribute_of(graph, name);
  return part != NULL ? *part : NULL;
}

/* Two engines: the first one is not deterministic. */
int cudnnBackendGetAttribute(Graph *graph, int name, int type, int64_t room, int64_t *count,
                             void *values) {
  (void)type;
  *count = 1;
  if (name == HEUR_RESULTS) {
    Graph *const operations = part_of(graph, HEUR_GRAPH);
    REQUIRE(room >= 2 && operations != NULL);
    for (int i = 0; i < 2; i++) {
      Graph *const config = ((Graph **)values)[i];
      cudnnBackendSetAttribute(config, HEUR_GRAPH, TYPE_DESCRIPTOR, 1, &operations);
      config->is_final = 1;
      config->engine = i;
    }
    *count = 2;
  } else if (name == CONFIG_ENGINE) {
    (*(Graph **)values)->engine = graph->engine;
  } else if (name == ENGINE_NOTES) {
    *count = graph->engine == 0;
    if (graph->engine == 0) *(int *)values = NONDETERMINISTIC;
  } else {
    REQUIRE(name == PLAN_BYTES);
    *(int64_t *)values = 256;
  }
  return SUCCESS;
}

/* Finds a tensor, whose rows and heads are stored like mpcore's. */
static int find(const Graph *pack, const Graph *operation, int name, void **data, int64_t *dims) {
  const Graph *const tensor = part_of(operation, name);
  const int64_t *const id = attribute_of(tensor, TENSOR_ID), *const ids =
                                                                 attribute_of(pack, PACK_IDS);
  const int64_t *const strides = attribute_of(tensor, TENSOR_STRIDES);
  void *const *const pointers = attribute_of(pack, PACK_POINTERS);
  REQUIRE(id != NULL && ids != NULL && pointers != NULL && strides != NULL);
  memcpy(dims, attribute_of(tensor, TENSOR_DIMS), 4 * sizeof *dims);
  const int64_t heads = dims[1], rows = dims[2], elems = dims[3];
  REQUIRE(strides[0] == heads * rows * elems && strides[3] == 1);
  REQUIRE(elems == 1 || (strides[1] == elems && strides[2] == heads * elems));
  REQUIRE(elems != 1 || (strides[1] == rows && strides[2] == 1));
  for (int i = 0; i < 10; i++) {
    if (ids[i] != *id || (i > 0 && ids[i] == 0)) continue;
    *data = pointers[i];
    return SUCCESS;
  }
  return BAD_PARAM;
}

int cudnnBackendExecute(mp_context_t handle, Graph *plan, Graph *pack) {
  const Graph *const operation =
      part_of(part_of(part_of(plan, PLAN_CONFIG), HEUR_GRAPH), GRAPH_OPS);
  REQUIRE(handle != NULL && operation != NULL && pack->is_final);
  const int is_forward = operation->type == SDPA_FORWARD;
  if (!is_forward && operation->type != SDPA_BACKWARD) return NOT_SUPPORTED;
  void *data[10]; /* q, k, v, o, lse, scale; dq, dk, dv, do */
  int64_t dims[10][4];
  for (int i = 0; i < (is_forward ? 6 : 10); i++) {
    const int name = i < 6 ? (is_forward ? FORWARD_Q : BACKWARD_Q) + i : BACKWARD_DQ + i - 6;
    if (find(pack, operation, name, &data[i], dims[i]) != SUCCESS) return BAD_PARAM;
  }
  const int64_t batch = dims[0][0], heads = dims[0][1], rows = dims[0][2], d = dims[0][3];
  const int64_t kv_heads = dims[1][1], kv_rows = dims[1][2], dv = dims[2][3];
  const int64_t expected[10][4] = {{batch, heads, rows, d},        {batch, kv_heads, kv_rows, d},
                                   {batch, kv_heads, kv_rows, dv}, {batch, heads, rows, dv},
                                   {batch, heads, rows, 1},        {1, 1, 1, 1},
                                   {batch, heads, rows, d},        {batch, kv_heads, kv_rows, d},
                                   {batch, kv_heads, kv_rows, dv}, {batch, heads, rows, dv}};
  REQUIRE(memcmp(dims, expected, (is_forward ? 6 : 10) * sizeof dims[0]) == 0);
  mp_attention_desc_t desc =
      mp_attention_desc_default((int32_t)batch, (int32_t)heads, rows, kv_rows, (int32_t)d, MP_FP32);
  desc.kv_heads = (int32_t)kv_heads;
  desc.head_dim_v = (int32_t)dv;
  desc.scale = *(float *)data[5];
  mp_attention_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.q = data[0];
  t.k = data[1];
  t.v = data[2];
  t.o = data[3];
  t.lse = data[4];
  if (is_forward)
    return mp_attention_forward(handle, &desc, &t, NULL) == MP_SUCCESS ? SUCCESS : BAD_PARAM;
  t.dq = data[6];
  t.dk = data[7];
  t.dv = data[8];
  t.d_o = data[9];
  size_t bytes = 0;
  REQUIRE(mp_attention_backward_workspace_size(handle, &desc, &bytes) == MP_SUCCESS);
  void *workspace;
  REQUIRE(mp_malloc(handle, &workspace, bytes) == MP_SUCCESS);
  const mp_status_t status = mp_attention_backward(handle, &desc, &t, workspace, bytes, NULL);
  mp_free(handle, workspace);
  return status == MP_SUCCESS ? SUCCESS : BAD_PARAM;
}
