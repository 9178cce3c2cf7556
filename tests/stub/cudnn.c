/* Stub of cuDNN for tests: recurrent layers of fp32 in host memory, with CUDNN_SKIP_INPUT and one
 * layer, and attention of fp32 through the graph API.  Inconsistent sizes are rejected.  Like the
 * real library, backward data consumes the results of forward, and gradients of weights are
 * accumulated. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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
OBJECT(cudnnCreate, cudnnDestroy, 1)
OBJECT(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor, 1)
OBJECT(cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor, 1)
OBJECT(cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor, sizeof(Rnn))
OBJECT(cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor, sizeof(Data))

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

/* ---- sizes, and offsets of weights: biases first, the last gate before the others ---- */

static int gates_of(const Rnn *rnn) {
  return rnn->cell == LSTM ? 4 : rnn->cell == GRU ? 3 : 1;
}
static size_t weight_elems(const Rnn *rnn) {
  const size_t h = (size_t)rnn->hidden;
  return (size_t)gates_of(rnn) * h * (h + 2);
}
/* Saved elements per step and sequence: the gates, or their gradients, and c' or q_n. */
static size_t kept_elems(const Rnn *rnn) {
  return (size_t)((gates_of(rnn) + 1) * rnn->hidden);
}
static size_t reserve_elems(const Rnn *rnn, const Data *data) {
  return (size_t)(data->timesteps * data->batch) * kept_elems(rnn);
}
enum { WORKSPACE = 512 };

static float *bias_of(const Rnn *rnn, float *weights, int matrix) {
  return weights + (2 * gates_of(rnn) - 1 - matrix) * rnn->hidden;
}
static float *matrix_of(const Rnn *rnn, float *weights, int gate) {
  const int g = gates_of(rnn), h = rnn->hidden;
  return weights + 2 * g * h + (g - 1 - gate) * h * h;
}

int cudnnGetRNNTempSpaceSizes(void *handle, Rnn *rnn, int mode, Data *x, size_t *workspace,
                              size_t *reserve) {
  REQUIRE(handle != NULL);
  *workspace = WORKSPACE;
  *reserve = mode == 1 ? reserve_elems(rnn, x) * sizeof(float) : 0;
  return SUCCESS;
}
int cudnnGetRNNWeightSpaceSize(void *handle, Rnn *rnn, size_t *bytes) {
  REQUIRE(handle != NULL);
  *bytes = weight_elems(rnn) * sizeof(float);
  return SUCCESS;
}
int cudnnGetRNNWeightParams(void *handle, Rnn *rnn, int32_t layer, size_t bytes, void *weights,
                            int32_t matrix, void *matrix_desc, void **matrix_at, void *bias_desc,
                            void **bias_at) {
  const int g = gates_of(rnn);
  REQUIRE(handle != NULL && layer == 0 && bytes == weight_elems(rnn) * sizeof(float));
  REQUIRE(matrix >= 0 && matrix < 2 * g && matrix_desc != NULL && bias_desc != NULL);
  *matrix_at = matrix < g ? NULL : matrix_of(rnn, weights, matrix - g);
  *bias_at = bias_of(rnn, weights, matrix);
  return SUCCESS;
}

/* ---- the layer ---- */

static float sigmoid(float a) {
  return 1.0f / (1.0f + expf(-a));
}

static int sizes_fit(const Rnn *rnn, const Data *x, const Data *y, const int32_t *lengths,
                     size_t weight_bytes, size_t workspace_bytes, size_t reserve_bytes) {
  if (rnn->algo == 2 && !rnn->is_built) return 0;
  if (x->elems != rnn->hidden || y->elems != rnn->hidden) return 0;
  if (x->timesteps != y->timesteps || x->batch != y->batch) return 0;
  for (int b = 0; b < x->batch; b++)
    if (lengths[b] != x->timesteps) return 0;
  return weight_bytes == weight_elems(rnn) * sizeof(float) && workspace_bytes == WORKSPACE &&
         (reserve_bytes == 0 || reserve_bytes == reserve_elems(rnn, x) * sizeof(float));
}

/* h of the previous step, for one sequence. */
static const float *h_before(const Data *d, int step, int b, const float *hx, const float *y) {
  return step == 0 ? hx + b * d->elems : y + ((step - 1) * d->batch + b) * d->elems;
}

int cudnnRNNForward(void *handle, Rnn *rnn, int mode, const int32_t *lengths, Data *x_desc,
                    const float *x, Data *y_desc, float *y, void *h_desc, const float *hx,
                    float *hy, void *c_desc, const float *cx, float *cy, size_t weight_bytes,
                    float *weights, size_t workspace_bytes, void *workspace, size_t reserve_bytes,
                    float *reserve) {
  REQUIRE(handle != NULL && h_desc != NULL && c_desc != NULL && workspace != NULL);
  REQUIRE(cx == NULL && cy == NULL && (mode == 1) == (reserve_bytes > 0));
  REQUIRE(sizes_fit(rnn, x_desc, y_desc, lengths, weight_bytes, workspace_bytes, reserve_bytes));
  const int g = gates_of(rnn), h = rnn->hidden, batch = x_desc->batch;
  float *const c = calloc((size_t)(batch * h), sizeof(float));
  for (int t = 0; t < x_desc->timesteps; t++)
    for (int b = 0; b < batch; b++)
      for (int r = 0; r < h; r++) {
        const int row = t * batch + b;
        const float *const before = h_before(x_desc, t, b, hx, y);
        float p[4], q[4], gate[4], other = 0.0f, out;
        for (int j = 0; j < g; j++) {
          p[j] = x[row * h + r] + bias_of(rnn, weights, j)[r];
          q[j] = bias_of(rnn, weights, g + j)[r];
          for (int k = 0; k < h; k++) q[j] += matrix_of(rnn, weights, j)[r * h + k] * before[k];
        }
        if (rnn->cell == LSTM) {
          for (int j = 0; j < 4; j++) gate[j] = j == 2 ? tanhf(p[j] + q[j]) : sigmoid(p[j] + q[j]);
          other = c[b * h + r] = gate[1] * c[b * h + r] + gate[0] * gate[2];
          out = gate[3] * tanhf(other);
        } else if (rnn->cell == GRU) {
          gate[0] = sigmoid(p[0] + q[0]);
          gate[1] = sigmoid(p[1] + q[1]);
          gate[2] = tanhf(p[2] + gate[0] * q[2]);
          other = q[2];
          out = (1.0f - gate[1]) * gate[2] + gate[1] * before[r];
        } else {
          out = gate[0] = fmaxf(p[0] + q[0], 0.0f);
        }
        y[row * h + r] = out;
        if (t == x_desc->timesteps - 1) hy[b * h + r] = out;
        if (mode == 0) continue;
        float *const kept = reserve + (size_t)row * kept_elems(rnn);
        for (int j = 0; j < g; j++) kept[j * h + r] = gate[j];
        kept[g * h + r] = other;
      }
  free(c);
  return SUCCESS;
}

int cudnnRNNBackwardData_v8(void *handle, Rnn *rnn, const int32_t *lengths, Data *y_desc,
                            const float *y, const float *dy, Data *x_desc, float *dx, void *h_desc,
                            const float *hx, const float *dhy, float *dhx, void *c_desc,
                            const float *cx, const float *dcy, float *dcx, size_t weight_bytes,
                            float *weights, size_t workspace_bytes, void *workspace,
                            size_t reserve_bytes, float *reserve) {
  REQUIRE(handle != NULL && h_desc != NULL && c_desc != NULL && workspace != NULL);
  REQUIRE(dhy == NULL && cx == NULL && dcy == NULL && dcx == NULL && reserve_bytes > 0);
  REQUIRE(sizes_fit(rnn, x_desc, y_desc, lengths, weight_bytes, workspace_bytes, reserve_bytes));
  const int g = gates_of(rnn), h = rnn->hidden, batch = x_desc->batch;
  float *const dh = calloc((size_t)h, sizeof(float)), *const dc = calloc((size_t)h, sizeof(float));
  for (int b = 0; b < batch; b++) {
    memset(dh, 0, (size_t)h * sizeof(float));
    memset(dc, 0, (size_t)h * sizeof(float));
    for (int t = x_desc->timesteps - 1; t >= 0; t--) {
      const int row = t * batch + b;
      float *const kept = reserve + (size_t)row * kept_elems(rnn);
      const float *const before = h_before(x_desc, t, b, hx, y);
      for (int r = 0; r < h; r++) {
        float gate[4], dp = 0.0f, stays = 0.0f;
        const float d = dh[r] + dy[row * h + r], other = kept[g * h + r];
        for (int j = 0; j < g; j++) gate[j] = kept[j * h + r];
        if (rnn->cell == LSTM) {
          const float was = t == 0 ? 0.0f : (kept - (size_t)batch * kept_elems(rnn))[g * h + r];
          const float tanh_c = tanhf(other);
          const float d_c = dc[r] + d * gate[3] * (1.0f - tanh_c * tanh_c);
          kept[r] = d_c * gate[2] * gate[0] * (1.0f - gate[0]);
          kept[h + r] = d_c * was * gate[1] * (1.0f - gate[1]);
          kept[2 * h + r] = d_c * gate[0] * (1.0f - gate[2] * gate[2]);
          kept[3 * h + r] = d * tanh_c * gate[3] * (1.0f - gate[3]);
          dc[r] = d_c * gate[1];
          for (int j = 0; j < 4; j++) dp += kept[j * h + r];
        } else if (rnn->cell == GRU) {
          const float dn = d * (1.0f - gate[1]) * (1.0f - gate[2] * gate[2]);
          kept[r] = dn * other * gate[0] * (1.0f - gate[0]);
          kept[h + r] = d * (before[r] - gate[2]) * gate[1] * (1.0f - gate[1]);
          kept[2 * h + r] = dn * gate[0];
          dp = kept[r] + kept[h + r] + dn;
          stays = d * gate[1];
        } else {
          dp = kept[r] = gate[0] > 0.0f ? d : 0.0f;
        }
        dx[row * h + r] = dp;
        dh[r] = stays;
      }
      for (int j = 0; j < g; j++)
        for (int r = 0; r < h; r++)
          for (int k = 0; k < h; k++)
            dh[k] += matrix_of(rnn, weights, j)[r * h + k] * kept[j * h + r];
    }
    memcpy(dhx + b * h, dh, (size_t)h * sizeof(float));
  }
  free(dh);
  free(dc);
  return SUCCESS;
}

int cudnnRNNBackwardWeights_v8(void *handle, Rnn *rnn, int add, const int32_t *lengths,
                               Data *x_desc, const float *x, void *h_desc, const float *hx,
                               Data *y_desc, const float *y, size_t weight_bytes, float *dweights,
                               size_t workspace_bytes, void *workspace, size_t reserve_bytes,
                               float *reserve) {
  REQUIRE(handle != NULL && h_desc != NULL && workspace != NULL && x != NULL && add == 0);
  REQUIRE(reserve_bytes > 0 &&
          sizes_fit(rnn, x_desc, y_desc, lengths, weight_bytes, workspace_bytes, reserve_bytes));
  const int g = gates_of(rnn), h = rnn->hidden;
  for (int t = 0; t < x_desc->timesteps; t++)
    for (int b = 0; b < x_desc->batch; b++) {
      const float *const kept = reserve + (size_t)(t * x_desc->batch + b) * kept_elems(rnn);
      const float *const before = h_before(x_desc, t, b, hx, y);
      for (int j = 0; j < g; j++)
        for (int r = 0; r < h; r++)
          for (int k = 0; k < h; k++)
            matrix_of(rnn, dweights, j)[r * h + k] += kept[j * h + r] * before[k];
    }
  return SUCCESS;
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

typedef struct {
  float *data;
  int64_t dims[4], strides[4];
} View;

static int find_view(const Graph *pack, const Graph *operation, int name, View *view) {
  const Graph *const tensor = part_of(operation, name);
  const int64_t *const id = attribute_of(tensor, TENSOR_ID), *const ids =
                                                                 attribute_of(pack, PACK_IDS);
  float *const *const pointers = attribute_of(pack, PACK_POINTERS);
  REQUIRE(id != NULL && ids != NULL && pointers != NULL);
  for (int i = 0; i < 10; i++) {
    if (ids[i] != *id || (i > 0 && ids[i] == 0)) continue;
    view->data = pointers[i];
    memcpy(view->dims, attribute_of(tensor, TENSOR_DIMS), sizeof view->dims);
    memcpy(view->strides, attribute_of(tensor, TENSOR_STRIDES), sizeof view->strides);
    return SUCCESS;
  }
  return BAD_PARAM;
}
static float *row(const View *x, int64_t b, int64_t h, int64_t i) {
  return x->data + b * x->strides[0] + h * x->strides[1] + i * x->strides[2];
}
static float dot(const float *x, const float *y, int64_t count) {
  float sum = 0;
  for (int64_t e = 0; e < count; e++) sum += x[e] * y[e];
  return sum;
}
static void add(float *to, float factor, const float *x, int64_t count) {
  for (int64_t e = 0; e < count; e++) to[e] += factor * x[e];
}
static void clear(const View *x) {
  for (int64_t b = 0; b < x->dims[0]; b++)
    for (int64_t h = 0; h < x->dims[1]; h++)
      for (int64_t i = 0; i < x->dims[2]; i++)
        memset(row(x, b, h, i), 0, (size_t)x->dims[3] * sizeof(float));
}

int cudnnBackendExecute(void *handle, Graph *plan, Graph *pack) {
  const Graph *const operation =
      part_of(part_of(part_of(plan, PLAN_CONFIG), HEUR_GRAPH), GRAPH_OPS);
  REQUIRE(handle != NULL && operation != NULL && pack->is_final);
  const int is_forward = operation->type == SDPA_FORWARD;
  if (!is_forward && operation->type != SDPA_BACKWARD) return NOT_SUPPORTED;
  View view[10];
  for (int i = 0; i < (is_forward ? 6 : 10); i++) {
    const int name = i < 6 ? (is_forward ? FORWARD_Q : BACKWARD_Q) + i : BACKWARD_DQ + i - 6;
    if (find_view(pack, operation, name, &view[i]) != SUCCESS) return BAD_PARAM;
  }
  const View *const q = view, *const k = view + 1, *const v = view + 2, *const o = view + 3,
                    *const stats = view + 4;
  const float scale = *view[5].data;
  const int64_t keys = k->dims[2], d = q->dims[3], dv = v->dims[3], group = q->dims[1] / k->dims[1];
  for (int i = is_forward ? 3 : 6; i < (is_forward ? 4 : 9); i++) clear(view + i);
  for (int64_t b = 0; b < q->dims[0]; b++)
    for (int64_t h = 0; h < q->dims[1]; h++)
      for (int64_t i = 0; i < q->dims[2]; i++) {
        const int64_t of = h / group;
        float *const lse = row(stats, b, h, i);
        if (is_forward) {
          *lse = 0;
          for (int64_t j = 0; j < keys; j++)
            *lse += expf(scale * dot(row(q, b, h, i), row(k, b, of, j), d));
          *lse = logf(*lse);
        }
        const float *const d_o = is_forward ? NULL : row(view + 9, b, h, i);
        for (int64_t j = 0; j < keys; j++) {
          const float p = expf(scale * dot(row(q, b, h, i), row(k, b, of, j), d) - *lse);
          if (is_forward) {
            add(row(o, b, h, i), p, row(v, b, of, j), dv);
            continue;
          }
          const float ds =
              p * scale * (dot(d_o, row(v, b, of, j), dv) - dot(d_o, row(o, b, h, i), dv));
          add(row(view + 6, b, h, i), ds, row(k, b, of, j), d);
          add(row(view + 7, b, of, j), ds, row(q, b, h, i), d);
          add(row(view + 8, b, of, j), p, d_o, dv);
        }
      }
  return SUCCESS;
}
