/* mpcore/autocast.h: two products and a cast, in a graph that uses every array. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "harness.h"

enum { kNodes = 3, kTensors = 4, kInputs = 4, kHidden = 2, kClusters = 2, kMembers = 3 };
enum { kCasts = kTensors, kUnwritten = 0x5a };

static mp_autocast_t policy;

/* ---------------------------------------------------------------- a graph and its result */

static struct arrays {
  const char *op[kNodes], *name[kNodes];
  uint8_t node_class[kNodes];
  uint16_t flags[kNodes];
  int64_t depth[kNodes];
  int32_t input_offsets[kNodes + 1], input[kInputs];
  uint8_t input_slot[kInputs];
  int32_t producer[kTensors];
  uint8_t tensor_slot[kTensors], dtype[kTensors], role[kTensors];
  float amax[kTensors];
  int32_t hidden_src[kHidden], hidden_dst[kHidden];
  int32_t member_offsets[kClusters + 1], member[kMembers];
  uint8_t kind[kClusters];
} a;

static struct results {
  uint8_t tensor_dtype[kTensors], node_dtype[kNodes], why[kNodes];
  int32_t input_cast[kInputs], because[kNodes];
  mp_autocast_cast_t casts[kCasts];
} results;

/** x, w -> MatMul -> Exp -> MatMul, w */
static mp_autocast_graph_t good_graph(void) {
  static const struct arrays good = {{"MatMul", "Exp", "MatMul"},
                                     {"first", NULL, "last"},
                                     {0, 0, 1 + MP_OP_CLASS_ALLOW},
                                     {MP_NODE_FLAG_WRITES_EITHER, MP_NODE_FLAG_READS_EITHER, 0},
                                     {64, 0, 64},
                                     {0, 2, 3, 4},
                                     {0, 1, 2, 3},
                                     {0, 0, 0, 1},
                                     {-1, -1, 0, 1},
                                     {0, 0, 0, MP_AUTOCAST_SLOT_FP32},
                                     {MP_FP32, MP_FP16, MP_FP32, MP_FP32},
                                     {MP_TENSOR_ROLE_ACTIVATION, MP_TENSOR_ROLE_PARAMETER,
                                      MP_TENSOR_ROLE_ACTIVATION, MP_TENSOR_ROLE_OUTPUT},
                                     {1.0f, -1.0f, 2.0f, 3.0f},
                                     {0, 1},
                                     {1, 2},
                                     {0, 1, 3},
                                     {0, 1, 2},
                                     {0, 1}};
  a = good;
  mp_autocast_graph_t g = INITIALIZED(mp_autocast_graph_t);
  g.num_nodes = kNodes;
  g.num_tensors = kTensors;
  g.num_hidden_edges = kHidden;
  g.num_clusters = kClusters;
  g.node_op = a.op;
  g.node_class = a.node_class;
  g.node_name = a.name;
  g.node_flags = a.flags;
  g.node_depth = a.depth;
  g.input_offsets = a.input_offsets;
  g.input_tensor = a.input;
  g.input_slot = a.input_slot;
  g.tensor_producer = a.producer;
  g.tensor_slot = a.tensor_slot;
  g.tensor_dtype = a.dtype;
  g.tensor_role = a.role;
  g.tensor_amax = a.amax;
  g.hidden_src = a.hidden_src;
  g.hidden_dst = a.hidden_dst;
  g.member_offsets = a.member_offsets;
  g.member = a.member;
  g.cluster_kind = a.kind;
  return g;
}

static mp_autocast_result_t result_of(struct results *r) {
  mp_autocast_result_t result;
  memset(r, kUnwritten, sizeof *r);
  MP_INIT_STRUCT(&result);
  result.tensor_dtype = r->tensor_dtype;
  result.node_dtype = r->node_dtype;
  result.input_cast = r->input_cast;
  result.casts = r->casts;
  result.node_reason = r->why;
  result.node_cause = r->because;
  return result;
}

/** Checks that calls that read the graph reject it with these words, and write nothing. */
static void check_wrong(const char *label, const mp_autocast_graph_t *g, const char *words) {
  mp_autocast_result_t result = result_of(&results);
  const mp_autocast_result_t before = result;
  struct results unwritten;
  memset(&unwritten, kUnwritten, sizeof unwritten);
  size_t bytes = 7;
  check_failure(label, "mp_autocast_rewrite", mp_autocast_rewrite(policy, NULL, g, &result),
                MP_ERROR_INVALID_ARGUMENT, words);
  check(memcmp(&result, &before, sizeof result) == 0 &&
            memcmp(&results, &unwritten, sizeof results) == 0,
        label);
  check_failure(label, "mp_autocast_explain",
                mp_autocast_explain(policy, g, &result, MP_AUTOCAST_FORMAT_TEXT, NULL, &bytes),
                MP_ERROR_INVALID_ARGUMENT, words);
  check(bytes == 7, label);
}

static void test_good(void) {
  const mp_autocast_graph_t g = good_graph();
  mp_autocast_result_t result = result_of(&results);
  WORKS(mp_autocast_rewrite(policy, NULL, &g, &result));
  check(result.disabled_reason == NULL && results.node_dtype[1] == MP_FP32,
        "the good graph is rewritten");
  mp_autocast_result_t counts; /* every array is optional */
  MP_INIT_STRUCT(&counts);
  WORKS(mp_autocast_rewrite(policy, context, &g, &counts));
  WORKS(mp_autocast_rewrite(policy, NULL, &g, &counts));
  check(counts.num_casts == result.num_casts && counts.num_low_nodes == result.num_low_nodes,
        "counts without arrays");

  a.dtype[1] = MP_INT64;
  WORKS(mp_autocast_rewrite(policy, NULL, &g, &result));
  check(results.tensor_dtype[1] == MP_INT64, "integers stay unchanged");

  mp_autocast_graph_t empty = INITIALIZED(mp_autocast_graph_t);
  WORKS(mp_autocast_rewrite(policy, NULL, &empty, &result));
  check(result.num_casts == 0 && result.num_low_nodes == 0, "an empty graph has no casts");
  mp_autocast_graph_t tensors = good_graph(); /* without nodes: all tensors are inputs */
  tensors.num_nodes = tensors.num_hidden_edges = tensors.num_clusters = 0;
  memset(a.producer, 0xff, sizeof a.producer);
  tensors.node_op = NULL;
  tensors.input_offsets = NULL;
  WORKS(mp_autocast_rewrite(policy, NULL, &tensors, &result));
}

/* ---------------------------------------------------------------- invalid arrays */

#define WRONG(change, words)              \
  do {                                    \
    mp_autocast_graph_t g = good_graph(); \
    change;                               \
    check_wrong(#change, &g, words);      \
  } while (0)

static void test_indices(void) {
  WRONG(a.input_offsets[0] = 1, "graph->input_offsets[0] = 1");
  WRONG(a.input_offsets[0] = -1, "graph->input_offsets[0] = -1");
  WRONG(a.input_offsets[1] = 4, "graph->input_offsets[2] = 3");
  WRONG(a.input_offsets[3] = 2, "graph->input_offsets[3] = 2");
  WRONG(a.input_offsets[3] = INT32_MIN, "graph->input_offsets[3] = -2147483648");
  WRONG(a.input[0] = -2, "graph->input_tensor[0] = -2");
  WRONG(a.input[3] = kTensors, "graph->input_tensor[3] = 4");
  WRONG(a.input[2] = INT32_MAX, "graph->input_tensor[2] = 2147483647");
  WRONG(a.producer[0] = -2, "graph->tensor_producer[0] = -2");
  WRONG(a.producer[3] = kNodes, "graph->tensor_producer[3] = 3");
  WRONG(a.hidden_src[1] = -1, "graph->hidden_src[1] = -1");
  WRONG(a.hidden_src[0] = kNodes, "graph->hidden_src[0] = 3");
  WRONG(a.hidden_dst[1] = -1, "graph->hidden_dst[1] = -1");
  WRONG(a.hidden_dst[0] = kNodes, "graph->hidden_dst[0] = 3");
  WRONG(a.member_offsets[0] = 1, "graph->member_offsets[0] = 1");
  WRONG(a.member_offsets[1] = 4, "graph->member_offsets[2] = 3");
  WRONG(a.member[0] = -1, "graph->member[0] = -1");
  WRONG(a.member[2] = kNodes, "graph->member[2] = 3");
}

static void test_values(void) {
  WRONG(a.node_class[0] = 7, "graph->node_class[0] = 7");
  WRONG(a.node_class[2] = 200, "graph->node_class[2] = 200");
  WRONG(a.op[1] = NULL, "graph->node_op[1] = NULL");
  WRONG(a.flags[2] = 256, "graph->node_flags[2] = 256");
  WRONG(a.flags[0] = UINT16_MAX, "graph->node_flags[0] = 65535");
  WRONG(a.depth[1] = -1, "graph->node_depth[1] = -1");
  WRONG(a.dtype[0] = (uint8_t)invalid_dtype(), "graph->tensor_dtype[0]");
  WRONG(a.dtype[1] = MP_STATE_M8, "graph->tensor_dtype[1] = 32");
  WRONG(a.dtype[3] = 255, "graph->tensor_dtype[3] = 255");
  WRONG(a.role[1] = 3, "graph->tensor_role[1] = 3");
  WRONG(a.kind[1] = 2, "graph->cluster_kind[1] = 2");
  WRONG(a.dtype[3] = MP_FP16, "graph->tensor_slot[3] = 255");
  WRONG(a.input_slot[1] = MP_AUTOCAST_SLOT_FP32, "graph->input_slot[1] = 255");
}

static void test_counts_and_arrays(void) {
  WRONG(g.num_nodes = 1u << 31, "graph->num_nodes = 2147483648");
  WRONG(g.num_tensors = UINT32_MAX, "graph->num_tensors = 4294967295");
  WRONG(g.num_hidden_edges = UINT32_MAX, "graph->num_hidden_edges = 4294967295");
  WRONG(g.num_clusters = 1u << 31, "graph->num_clusters = 2147483648");
  WRONG(g.num_tensors = 0, "graph->input_tensor[0] = 0");
  WRONG(g.reserved0 = 1, "graph->reserved0 = 1");
  WRONG(g.node_op = NULL, "graph->node_op[0] = NULL");
  WRONG((g.node_op = NULL, g.node_class = NULL), "graph->node_op = NULL");
  WRONG(g.input_offsets = NULL, "graph->input_offsets = NULL");
  WRONG(g.input_tensor = NULL, "graph->input_tensor = NULL");
  WRONG(g.tensor_producer = NULL, "graph->tensor_producer = NULL");
  WRONG(g.tensor_dtype = NULL, "graph->tensor_dtype = NULL");
  WRONG(g.hidden_src = NULL, "graph->hidden_src = NULL");
  WRONG(g.hidden_dst = NULL, "graph->hidden_dst = NULL");
  WRONG(g.member_offsets = NULL, "graph->member_offsets = NULL");
  WRONG(g.member = NULL, "graph->member = NULL");

  mp_autocast_graph_t g = good_graph();
  g.node_name = NULL;
  g.node_class = NULL;
  g.node_flags = NULL;
  g.node_depth = NULL;
  g.input_slot = g.tensor_slot = g.tensor_role = g.cluster_kind = NULL;
  g.tensor_amax = NULL;
  mp_autocast_result_t result = result_of(&results);
  WORKS(mp_autocast_rewrite(policy, NULL, &g, &result));
}

/* ---------------------------------------------------------------- structs */

static mp_status_t call_rewrite(void *s) {
  mp_autocast_result_t result = result_of(&results);
  return mp_autocast_rewrite(policy, NULL, s, &result);
}

CALL_OF(call_with_result,
        mp_autocast_rewrite(policy, NULL, REF(mp_autocast_graph_t, good_graph()), s))

static mp_autocast_config_t good_config(void) {
  mp_autocast_config_t c = mp_autocast_config_default(MP_FP16);
  c.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT;
  return c;
}
static mp_status_t call_create(void *s) {
  mp_autocast_t created = policy;
  const mp_status_t status = mp_autocast_create(&created, s);
  check((created == policy) == (status != MP_SUCCESS), "a failing call does not write the handle");
  if (status == MP_SUCCESS) mp_autocast_destroy(created);
  return status;
}

static void test_structs(void) {
  const mp_autocast_graph_t initial = good_graph();
  const mp_autocast_result_t initial_result = result_of(&results);
  const mp_autocast_config_t initial_config = good_config();
  const struct field_case fields[] = {
      INTS(mp_autocast_config_t, preset, -1, 0, 6),
      INTS(mp_autocast_config_t, dtype_low, MP_DTYPE_NONE, MP_FP32, invalid_dtype()),
      INTS(mp_autocast_config_t, level, 0, 5, -1),
      INTS(mp_autocast_config_t, flags, 16, 1u << 31),
      REALS(mp_autocast_config_t, amax_limit, -1, NAN, -FLT_MIN),
      INTS(mp_autocast_config_t, depth_limit, -1, INT64_MIN),
  };
  check_struct_size(SUBJECT("mp_autocast_rewrite", "graph", initial, call_rewrite));
  check_struct_size(SUBJECT("mp_autocast_rewrite", "result", initial_result, call_with_result));
  check_struct_size(SUBJECT("mp_autocast_create", "config", initial_config, call_create));
  CHECK_FIELDS("mp_autocast_create", "config", initial_config, call_create, fields);
}

/* ---------------------------------------------------------------- other calls */

static void test_policies(void) {
  mp_autocast_t p;
  WORKS(mp_autocast_create(&p, NULL));
  const char *ops[] = {"A", NULL, "C"};
  INVALID(mp_autocast_set_class, (p, ops, 3, MP_OP_CLASS_ALLOW), "op_types[1]");
  check(mp_autocast_get_class(p, "A") == MP_OP_CLASS_UNLISTED, "a rejected list sets no class");
  INVALID(mp_autocast_set_class, (p, ops, 1, (mp_op_class_t)6), "op_class");
  INVALID(mp_autocast_set_class, (p, ops, 1, (mp_op_class_t)-1), "op_class");
  INVALID(mp_autocast_set_nodes, (p, "*", (mp_op_class_t)6), "node_class");
  static const char *const open[] = {"[", "a[bc", "[]", "[!]", "*[a-", "[a][b"};
  for (size_t i = 0; i < COUNT(open); i++)
    INVALID(mp_autocast_set_nodes, (p, open[i], MP_OP_CLASS_ALLOW), open[i]);
  WORKS(mp_autocast_set_class(p, NULL, 0, MP_OP_CLASS_ALLOW));
  WORKS(mp_autocast_set_nodes(p, "", MP_OP_CLASS_ALLOW));
  check(mp_autocast_get_class(NULL, "MatMul") == MP_OP_CLASS_UNLISTED,
        "without a policy, every operation is unlisted");
  check(mp_autocast_get_class(p, NULL) == MP_OP_CLASS_UNLISTED, "NULL is unlisted");
  mp_autocast_destroy(p);
  mp_autocast_destroy(NULL);

  const char *why = "before";
  check(strcmp(why, "before") == 0, "a failing query does not write the reason");

  mp_autocast_config_t c = mp_autocast_config_default(MP_BF16);
  c.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT;
  c.level = MP_AUTOCAST_LEVEL_FORCE_ALL;
  WORKS(mp_autocast_create(&p, &c));
  const mp_autocast_graph_t g = good_graph();
  mp_autocast_result_t result = result_of(&results);
  INVALID(mp_autocast_rewrite, (p, NULL, &g, &result), "MP_BF16");
  mp_autocast_destroy(p);
  c.dtype_low = MP_DTYPE_NONE;
  INVALID(mp_autocast_create, (&p, &c), "config->dtype_low = MP_DTYPE_NONE must be a 16-bit");
}

static void test_calls(void) {
  const mp_autocast_graph_t g = good_graph();
  mp_autocast_result_t r = result_of(&results);
  size_t bytes = 0;
  INVALID(mp_autocast_explain, (policy, &g, &r, (mp_autocast_format_t)0, NULL, &bytes), "format");
  INVALID(mp_autocast_explain, (policy, &g, &r, (mp_autocast_format_t)4, NULL, &bytes), "format");
  char text[4];
  bytes = sizeof text;
  FAILS(mp_autocast_explain, (policy, &g, &r, MP_AUTOCAST_FORMAT_TEXT, text, &bytes),
        MP_ERROR_WORKSPACE_TOO_SMALL, "*bytes = 4");
  check(bytes > sizeof text, "the required size is returned");

  const uint8_t inputs[] = {MP_FP32, MP_FP16, 255};
  uint8_t to[3] = {9, 9, 9};
  mp_dtype_t output = MP_DTYPE_NONE;
  INVALID(mp_autocast_op, (policy, "MatMul", inputs, 3, to, &output), "input_dtype[2] = 255");
  check(to[0] == 9 && output == MP_DTYPE_NONE, "a rejected operation writes nothing");
  WORKS(mp_autocast_op(policy, "MatMul", NULL, 0, NULL, &output));
  const uint8_t integers[] = {MP_INT32, MP_FP32, MP_INT64};
  WORKS(mp_autocast_op(policy, "MatMul", integers, 3, to, &output));
  check(to[0] == MP_DTYPE_NONE && to[1] == MP_FP16 && to[2] == MP_DTYPE_NONE && output == MP_FP16,
        "integers stay unchanged");
  WORKS(mp_autocast_op(policy, "MatMul", integers, 1, to, &output));
  check(output == MP_DTYPE_NONE, "integer inputs give no type");
}

void test_autocast(void) {
  mp_autocast_config_t c = mp_autocast_config_default(MP_FP16);
  c.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT;
  WORKS(mp_autocast_create(&policy, &c));
  test_good();
  test_indices();
  test_values();
  test_counts_and_arrays();
  test_structs();
  test_policies();
  test_calls();
  mp_autocast_destroy(policy);
}
