// Implementation of mpcore/autocast.h: policies, rewrites and reports.
#include "graph/autocast_object.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "base/lifetime.h"
#include "capi/defaults.h"
#include "capi/nvtx_payload.h"

using namespace mp;

namespace {

using autocast::Policy;
using autocast::PrecisionAssignment;

// ---------------------------------------------------------------------------- policies

mp_autocast_config_t default_config(const mp_dtype_t &dtype_low) {
  auto c = zero_struct<mp_autocast_config_t>();
  store(dtype_low, c.dtype_low);
  c.preset = MP_AUTOCAST_PRESET_DEFAULT;
  c.level = MP_AUTOCAST_LEVEL_NORMAL;
  return c;
}

void check_config(const mp_autocast_config_t &c) {
  require_enum(c.preset, "config->preset");
  MP_REQUIRE(is_float(enum_value(c.dtype_low)) && is_half(c.dtype_low), MP_ERROR_INVALID_ARGUMENT,
             "config->dtype_low = ", c.dtype_low, " must be a 16-bit floating-point type");
  require_enum(c.level, "config->level");
  require_flags(c.flags,
                MP_AUTOCAST_FLAG_NO_ENVIRONMENT | MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE |
                    MP_AUTOCAST_FLAG_KEEP_IO | MP_AUTOCAST_FLAG_EMULATE,
                "config->flags");
  MP_REQUIRE(c.amax_limit >= 0.0f, MP_ERROR_INVALID_ARGUMENT, "config->amax_limit = ", c.amax_limit,
             " is negative or NaN");
  require_not_negative(c.depth_limit, "config->depth_limit");
}

Policy &require_unused(mp_autocast_t policy) {
  Policy &p = require_pointer(policy, "policy").policy;
  MP_REQUIRE(!p.is_used, MP_ERROR_INVALID_ARGUMENT,
             "policy is in use and cannot be modified; create a new one");
  return p;
}

const Policy &use(mp_autocast_t policy) {
  const Policy &p = require_pointer(policy, "policy").policy;
  p.is_used = true;
  return p;
}

mp_scaler_config_t scaler_for(mp_dtype_t dtype_low) {
  require_dtype(dtype_low, "dtype_low");
  if (has_fp32_range(dtype_low)) return default_scaler_config(MP_SCALER_POLICY_STATIC);
  auto c = zero_struct<mp_scaler_config_t>();
  (void)mp_scaler_config_init_preset(&c, sizeof c, MP_SCALER_PRESET_KERAS);
  return c;
}

// ---------------------------------------------------------------------------- rewriting

std::mutex texts_mutex;
const ForkGuard<texts_mutex> texts_of_a_child;

/// Returns a copy of a text in static storage.  It is never freed, because callers may read it
/// until the process has ended.
const char *in_static_storage(const Message &text) {
  const std::lock_guard lock(texts_mutex);
  static auto &texts = *new std::set<std::string>;
  return texts.emplace(text.c_str()).first->c_str();
}

void write_unchanged(const mp_autocast_graph_t &g, const mp_autocast_result_t &r) {
  const auto fill = [](auto *array, size_t count, auto value) {
    if (array != nullptr) std::fill_n(array, count, value);
  };
  if (r.tensor_dtype != nullptr) std::copy_n(g.tensor_dtype, g.num_tensors, r.tensor_dtype);
  fill(r.node_dtype, g.num_nodes, uint8_t{MP_FP32});
  fill(r.node_reason, g.num_nodes, uint8_t{MP_AUTOCAST_REASON_DISABLED});
  fill(r.node_cause, g.num_nodes, int32_t{-1});
  fill(r.input_cast, static_cast<size_t>(autocast::num_inputs(g)), int32_t{-1});
}

/// Writes the results per node; returns the number of low nodes.
int32_t write_nodes(const PrecisionAssignment &assignment, mp_dtype_t low, uint32_t num_nodes,
                    const mp_autocast_result_t &r) {
  int32_t num_low = 0;
  for (uint32_t i = 0; i < num_nodes; i++) {
    const auto node = static_cast<int32_t>(i);
    const bool is_low = assignment.is_low_node(node);
    num_low += is_low ? 1 : 0;
    if (r.node_dtype != nullptr) r.node_dtype[i] = static_cast<uint8_t>(is_low ? low : MP_FP32);
    if (r.node_reason != nullptr) r.node_reason[i] = static_cast<uint8_t>(assignment.reason(node));
    if (r.node_cause != nullptr) r.node_cause[i] = assignment.cause(node);
  }
  return num_low;
}

void require_level(const Policy &policy) {
  const mp_dtype_t low = policy.config.dtype_low;
  MP_REQUIRE(
      policy.config.level != MP_AUTOCAST_LEVEL_FORCE_ALL || low == MP_FP16,
      MP_ERROR_INVALID_ARGUMENT,
      "level = MP_AUTOCAST_LEVEL_FORCE_ALL requires dtype_low = MP_FP16, but dtype_low = ", low);
}

// ---------------------------------------------------------------------------- one operation

/// Returns the common floating-point type of all inputs, MP_FP32 if they differ, MP_DTYPE_NONE if
/// there is none.
mp_dtype_t widest(const uint8_t *dtypes, uint32_t count) {
  mp_dtype_t found = MP_DTYPE_NONE;
  for (uint32_t i = 0; i < count; i++) {
    const auto dtype = static_cast<mp_dtype_t>(dtypes[i]);
    if (!is_float(dtypes[i]) || dtype == found) continue;
    found = found == MP_DTYPE_NONE ? dtype : MP_FP32;
  }
  return found;
}

/// Returns the type of an operation by the rules of torch.amp, which consider only its own inputs.
mp_dtype_t dtype_of_op(const Policy &policy, const char *op, const uint8_t *dtypes,
                       uint32_t count) {
  const mp_dtype_t given = widest(dtypes, count);
  if (given == MP_DTYPE_NONE) return MP_DTYPE_NONE;
  switch (policy.class_of(op)) {
    case MP_OP_CLASS_ALLOW:
      return policy.config.dtype_low;
    case MP_OP_CLASS_DENY:
      return MP_FP32;
    default:
      return given;
  }
}

/// Returns the reason why a policy is inactive on a device, in static storage, or nullptr.
/// @param context  nullptr for any device
const char *find_disabled_reason(const Policy &policy, const Context *context) {
  if (policy.is_off) return "MP_AUTOCAST = off";
  if (context == nullptr || (policy.config.flags & MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE) != 0)
    return nullptr;
  const Device &device = context->device;
  if (device.target == MP_TARGET_HOST) return "16-bit arithmetic is not faster on the CPU";
  const FloatType &low = float_type(policy.config.dtype_low);
  if (device.arch >= low.tensor_core_arch) return nullptr;
  return in_static_storage(Message(low.name, " products are not faster on sm_", device.arch,
                                   ": no Tensor Cores for ", low.name));
}

// ---------------------------------------------------------------------------- graphs of callers

constexpr int64_t kMax = std::numeric_limits<int32_t>::max();

/// Fails with a message that names an element of an array of the graph.
template <class... Rest>
[[noreturn]] void fail_at(const char *array, int64_t index, int64_t value, const Rest &...rest) {
  fail(MP_ERROR_INVALID_ARGUMENT, "graph->", array, "[", index, "] = ", value, rest...);
}

template <class T>
void require_array(const T *array, const char *name, int64_t count) {
  MP_REQUIRE(array != nullptr || count == 0, MP_ERROR_INVALID_ARGUMENT, "graph->", name,
             " = NULL, but ", count, " elements are required");
}

/// @param least  0, or -1 if -1 means none
void require_indices(const int32_t *array, const char *name, int64_t count, int64_t least,
                     int64_t end, const char *of_what) {
  require_array(array, name, count);
  for (int64_t i = 0; i < count; i++)
    if (array[i] < least || array[i] >= end)
      fail_at(name, i, array[i], " is outside [", least, ", ", of_what, " = ", end, ")");
}

/// Checks the elements of an optional array.
template <class T>
void require_at_most(const T *array, const char *name, int64_t count, int64_t most,
                     const char *otherwise) {
  if (array == nullptr) return;
  for (int64_t i = 0; i < count; i++)
    if (array[i] > most) fail_at(name, i, array[i], otherwise);
}

/// Checks count + 1 offsets, which begin with 0 and do not decrease.  Returns the last one.
int64_t require_ranges(const int32_t *first, const char *name, int64_t count) {
  if (count == 0) return 0;
  require_array(first, name, count + 1);
  if (first[0] != 0) fail_at(name, 0, first[0], " must be 0");
  for (int64_t i = 1; i <= count; i++)
    if (first[i] < first[i - 1])
      fail_at(name, i, first[i], " is smaller than the previous element, ", first[i - 1]);
  return first[count];
}

void require_counts(const mp_autocast_graph_t &g) {
  const auto require_count = [](uint32_t count, const char *name) {
    MP_REQUIRE(count <= kMax, MP_ERROR_INVALID_ARGUMENT, "graph->", name, " = ", count, " exceeds ",
               kMax);
  };
  MP_CHECK_FIELDS(require_count, g, num_nodes, num_tensors, num_hidden_edges, num_clusters);
  require_zero(g.reserved0, "graph->reserved0");
}

void require_classes(const mp_autocast_graph_t &g) {
  if (g.num_nodes > 0 && g.node_class == nullptr) require_array(g.node_op, "node_op", g.num_nodes);
  require_at_most(g.node_class, "node_class", g.num_nodes, 1 + MP_OP_CLASS_PROMOTE,
                  " must be 0 or 1 + mp_op_class_t");
  for (int64_t i = 0; i < g.num_nodes; i++) {
    const bool has_class = g.node_class != nullptr && g.node_class[i] != 0;
    const bool has_op = g.node_op != nullptr && g.node_op[i] != nullptr;
    MP_REQUIRE(has_class || has_op, MP_ERROR_INVALID_ARGUMENT, "graph->node_op[", i,
               "] = NULL, but graph->node_class does not set the class of the node");
  }
}

void require_nodes(const mp_autocast_graph_t &g) {
  constexpr uint32_t kFlags = 2 * MP_NODE_FLAG_WRITES_EITHER - 1;
  require_classes(g);
  require_at_most(g.node_flags, "node_flags", g.num_nodes, kFlags, " has unknown bits");
  if (g.node_depth == nullptr) return;
  for (int64_t i = 0; i < g.num_nodes; i++)
    if (g.node_depth[i] < 0) fail_at("node_depth", i, g.node_depth[i], " is negative");
}

void require_tensors(const mp_autocast_graph_t &g) {
  require_indices(g.tensor_producer, "tensor_producer", g.num_tensors, -1, g.num_nodes,
                  "num_nodes");
  require_array(g.tensor_dtype, "tensor_dtype", g.num_tensors);
  for (int64_t i = 0; i < g.num_tensors; i++)
    if (!autocast::is_element_dtype(g.tensor_dtype[i]))
      fail_at("tensor_dtype", i, g.tensor_dtype[i], " must be the mp_dtype_t of an element");
  require_at_most(g.tensor_role, "tensor_role", g.num_tensors, MP_TENSOR_ROLE_OUTPUT,
                  " must be an mp_tensor_role_t");
}

/// Checks that MP_AUTOCAST_SLOT_FP32 is not used for 16-bit tensors.
void require_slots(const mp_autocast_graph_t &g, int64_t num_inputs) {
  const auto require_wide = [&](const char *name, int64_t i, uint8_t slot, int64_t tensor) {
    const auto dtype = static_cast<mp_dtype_t>(g.tensor_dtype[tensor]);
    if (slot == MP_AUTOCAST_SLOT_FP32 && is_half(dtype))
      fail_at(name, i, slot, " (MP_AUTOCAST_SLOT_FP32) requires an fp32 tensor, but tensor ",
              tensor, " is ", mp_dtype_name(dtype));
  };
  for (int64_t t = 0; g.tensor_slot != nullptr && t < g.num_tensors; t++)
    require_wide("tensor_slot", t, g.tensor_slot[t], t);
  for (int64_t j = 0; g.input_slot != nullptr && j < num_inputs; j++) {
    const int32_t t = g.input_tensor[j];
    if (t >= 0) require_wide("input_slot", j, g.input_slot[j], t);
  }
}

/// Reads and validates the caller's graph.
mp_autocast_graph_t read_autocast_graph(const mp_autocast_graph_t *user) {
  const mp_autocast_graph_t g = read_struct(user, "graph");
  require_counts(g);
  require_nodes(g);
  const int64_t num_inputs = require_ranges(g.input_offsets, "input_offsets", g.num_nodes);
  require_indices(g.input_tensor, "input_tensor", num_inputs, -1, g.num_tensors, "num_tensors");
  require_tensors(g);
  require_slots(g, num_inputs);
  require_indices(g.hidden_src, "hidden_src", g.num_hidden_edges, 0, g.num_nodes, "num_nodes");
  require_indices(g.hidden_dst, "hidden_dst", g.num_hidden_edges, 0, g.num_nodes, "num_nodes");
  const int64_t members = require_ranges(g.member_offsets, "member_offsets", g.num_clusters);
  require_indices(g.member, "member", members, 0, g.num_nodes, "num_nodes");
  require_at_most(g.cluster_kind, "cluster_kind", g.num_clusters, 1, " must be 0 or 1");

  // Totals must fit in 32 bits: edges, then vertices.
  MP_REQUIRE(num_inputs + g.num_hidden_edges <= kMax, MP_ERROR_INVALID_ARGUMENT,
             "graph->num_hidden_edges = ", g.num_hidden_edges, " plus ", num_inputs,
             " inputs exceeds ", kMax);
  MP_REQUIRE(num_inputs + g.num_nodes + g.num_tensors <= kMax, MP_ERROR_INVALID_ARGUMENT,
             "graph->num_nodes = ", g.num_nodes, " plus graph->num_tensors = ", g.num_tensors,
             " plus ", num_inputs, " inputs exceeds ", kMax);
  return g;
}

}  // namespace

// ---------------------------------------------------------------------------- calls

mp_status_t mp_autocast_config_init(mp_autocast_config_t *config, size_t struct_size,
                                    mp_dtype_t dtype_low) {
  return init(__func__, config, "config", struct_size, [&] { return default_config(dtype_low); });
}

mp_status_t mp_autocast_scaler_init(mp_scaler_config_t *config, size_t struct_size,
                                    mp_dtype_t dtype_low) {
  return init(__func__, config, "config", struct_size, [&] { return scaler_for(dtype_low); });
}

mp_status_t mp_autocast_create(mp_autocast_t *policy, const mp_autocast_config_t *config) {
  return call(__func__, [&] {
    require_pointer(policy, "policy");
    const mp_autocast_config_t c =
        config != nullptr ? read_struct(config, "config") : default_config(MP_FP16);
    check_config(c);
    auto created = std::make_unique<mp_autocast>(c);
    if ((c.flags & MP_AUTOCAST_FLAG_NO_ENVIRONMENT) == 0)
      read_autocast_environment(created->policy);
    *policy = created.release();
  });
}

void mp_autocast_destroy(mp_autocast_t policy) {
  call_void(__func__, [&] { delete policy; });
}

mp_status_t mp_autocast_set_class(mp_autocast_t policy, const char *const *op_types, uint32_t count,
                                  mp_op_class_t op_class) {
  return call(__func__, [&] {
    Policy &p = require_unused(policy);
    require_enum(op_class, "op_class");
    if (count > 0) require_pointer(op_types, "op_types");
    for (uint32_t i = 0; i < count; i++)
      MP_REQUIRE(op_types[i] != nullptr, MP_ERROR_INVALID_ARGUMENT, "op_types[", i, "] = NULL");
    for (uint32_t i = 0; i < count; i++) p.set_class(op_types[i], op_class);
  });
}

mp_status_t mp_autocast_set_nodes(mp_autocast_t policy, const char *pattern,
                                  mp_op_class_t node_class) {
  return call(__func__, [&] {
    Policy &p = require_unused(policy);
    require_pointer(pattern, "pattern");
    require_enum(node_class, "node_class");
    MP_REQUIRE(autocast::is_glob(pattern), MP_ERROR_INVALID_ARGUMENT, "pattern = ", pattern,
               " has an unmatched [");
    p.set_nodes(pattern, node_class);
  });
}

mp_op_class_t mp_autocast_get_class(mp_autocast_t policy, const char *op_type) {
  if (policy == nullptr || op_type == nullptr) return MP_OP_CLASS_UNLISTED;
  return policy->policy.class_of(op_type);
}

mp_status_t mp_autocast_get_disabled_reason(mp_autocast_t policy, mp_context_t context,
                                            const char **disabled_reason) {
  return call(__func__, [&] {
    const Policy &p = require_pointer(policy, "policy").policy;
    require_pointer(disabled_reason, "disabled_reason") =
        find_disabled_reason(p, context != nullptr ? context->shared.get() : nullptr);
  });
}

mp_status_t mp_autocast_rewrite(mp_autocast_t policy, mp_context_t context,
                                const mp_autocast_graph_t *graph, mp_autocast_result_t *result) {
  return call(__func__, [&] {
    const Policy &p = use(policy);
    const mp_autocast_graph_t g = read_autocast_graph(graph);
    mp_autocast_result_t r = read_struct(result, "result");
    require_level(p);

    const Context *const device = context != nullptr ? context->shared.get() : nullptr;
    r.disabled_reason = find_disabled_reason(p, device);
    if (r.disabled_reason != nullptr && device != nullptr &&
        !device->logged.autocast_gate.test_and_set())
      log(MP_LOG_WARN, "mp_autocast_rewrite: the graph stays fp32: ", r.disabled_reason);
    const autocast::Rewritten done(p, g, r.disabled_reason);
    log_rewrite(p, done);
    r.num_casts = r.num_low_nodes = r.num_parameters_low = 0;
    if (done.casts) {
      r.num_low_nodes = write_nodes(*done.assignment, done.low, g.num_nodes, r);
      r.num_casts = done.casts->count();
      r.num_parameters_low = done.casts->num_model_copies();
      done.casts->write(r.tensor_dtype, r.input_cast, r.casts);
    } else {
      write_unchanged(g, r);
    }
    write_struct(result, "result", r);
  });
}

mp_status_t mp_autocast_explain(mp_autocast_t policy, const mp_autocast_graph_t *graph,
                                const mp_autocast_result_t *result, mp_autocast_format_t format,
                                char *text, size_t *bytes) {
  return call(__func__, [&] {
    const Policy &p = use(policy);
    const mp_autocast_graph_t g = read_autocast_graph(graph);
    const mp_autocast_result_t r = read_struct(result, "result");
    require_enum(format, "format");
    require_pointer(bytes, "bytes");
    require_level(p);

    const autocast::Rewritten done(p, g, r.disabled_reason);
    write_text(autocast::report(done, format), text, bytes);
  });
}

mp_status_t mp_autocast_op(mp_autocast_t policy, const char *op_type, const uint8_t *input_dtype,
                           uint32_t count, uint8_t *cast_to, mp_dtype_t *output) {
  return call(__func__, [&] {
    const Policy &p = use(policy);
    const char *const op = &require_pointer(op_type, "op_type");
    if (count > 0) {
      require_pointer(input_dtype, "input_dtype");
      require_pointer(cast_to, "cast_to");
    }
    require_pointer(output, "output");
    for (uint32_t i = 0; i < count; i++)
      MP_REQUIRE(autocast::is_element_dtype(input_dtype[i]), MP_ERROR_INVALID_ARGUMENT,
                 "input_dtype[", i, "] = ", input_dtype[i],
                 " must be the mp_dtype_t of an element");
    // Losses on probabilities are banned: 16 bits round probabilities to 0 and 1.
    const auto listed = p.listed(op);
    MP_REQUIRE(p.is_off || !listed || !listed->is_banned, MP_ERROR_UNSUPPORTED, "op_type = ", op,
               " is not supported: its inputs are not safe in 16 bits; use ", op, "_with_logits");

    const mp_dtype_t wanted =
        p.is_off ? widest(input_dtype, count) : dtype_of_op(p, op, input_dtype, count);
    for (uint32_t i = 0; i < count; i++) {
      const bool is_cast = !p.is_off && is_float(input_dtype[i]) && input_dtype[i] != wanted;
      cast_to[i] = static_cast<uint8_t>(is_cast ? wanted : MP_DTYPE_NONE);
    }
    *output = wanted;
  });
}
