#include "graph/rewrite/casts.h"

namespace mp::autocast {

Casts::Casts(const Policy &policy, const mp_autocast_graph_t &graph,
             const PrecisionAssignment &assignment)
    : graph_(graph),
      assignment_(assignment),
      low_(policy.config.dtype_low),
      keeps_io_((policy.config.flags & MP_AUTOCAST_FLAG_KEEP_IO) != 0),
      emulates_((policy.config.flags & MP_AUTOCAST_FLAG_EMULATE) != 0) {
  count_readers();
  number_casts();
}

// ---------------------------------------------------------------------------- readers

bool Casts::has_low_producer(int32_t tensor) const {
  const int32_t producer = graph_.tensor_producer[tensor];
  if (producer < 0 || !is_fp32(graph_, tensor)) return false;
  const Vertices &v = assignment_.vertices();
  return assignment_.is_low(v.find(producer, v.slots.of_tensor(tensor)));
}

bool Casts::is_low_reader(int32_t node, int32_t input) const {
  const Vertices &v = assignment_.vertices();
  return assignment_.is_low(v.find(node, v.slots.of_input(input)));
}

bool Casts::reads_either(int32_t node, int32_t input) const {
  const bool is_flagged = (flags_of(graph_, node) & MP_NODE_FLAG_READS_EITHER) != 0;
  return is_flagged && !emulates_ &&
         assignment_.vertices().slots.of_input(input) != MP_AUTOCAST_SLOT_FP32;
}

void Casts::count_readers() {
  readers_.assign(graph_.num_tensors, 0);
  others_.assign(graph_.num_tensors, 0);
  const auto count = [&](int32_t tensor, bool wants_other) {
    readers_[static_cast<size_t>(tensor)]++;
    if (wants_other) others_[static_cast<size_t>(tensor)]++;
  };
  for_each_input(graph_, [&](int32_t node, int32_t input, int32_t tensor) {
    if (!is_fp32(graph_, tensor)) return;
    count(tensor,
          !reads_either(node, input) && is_low_reader(node, input) != has_low_producer(tensor));
  });
  if (!keeps_io_) return;
  for (int32_t t = 0; t < static_cast<int32_t>(graph_.num_tensors); t++)
    if (role_of(graph_, t) == MP_TENSOR_ROLE_OUTPUT && is_fp32(graph_, t))
      count(t, has_low_producer(t));
}

// ---------------------------------------------------------------------------- type of a tensor

bool Casts::is_model_copy(int32_t tensor) const {
  return role_of(graph_, tensor) == MP_TENSOR_ROLE_PARAMETER && !has_low_producer(tensor);
}

bool Casts::producer_writes_other(int32_t tensor) const {
  const int32_t producer = graph_.tensor_producer[tensor];
  const bool can = producer >= 0 && !emulates_ && !is_model_copy(tensor) &&
                   (flags_of(graph_, producer) & MP_NODE_FLAG_WRITES_EITHER) != 0 &&
                   assignment_.vertices().slots.of_tensor(tensor) != MP_AUTOCAST_SLOT_FP32;
  const bool is_open_output = role_of(graph_, tensor) == MP_TENSOR_ROLE_OUTPUT && !keeps_io_;
  const auto t = static_cast<size_t>(tensor);
  return can && !is_open_output && others_[t] > 0 && others_[t] == readers_[t];
}

Casts::Needed Casts::needed(int32_t tensor) const {
  const auto t = static_cast<size_t>(tensor);
  const bool is_low = has_low_producer(tensor);
  if (emulates_) return {is_low ? readers_[t] > 0 : others_[t] > 0, is_low && others_[t] > 0};
  const bool has_cast = others_[t] > 0 && !producer_writes_other(tensor);
  return {has_cast && !is_low, has_cast && is_low};
}

mp_dtype_t Casts::dtype(int32_t tensor) const {
  if (!is_fp32(graph_, tensor) || emulates_)
    return static_cast<mp_dtype_t>(graph_.tensor_dtype[tensor]);
  return has_low_producer(tensor) != producer_writes_other(tensor) ? low_ : MP_FP32;
}

// ---------------------------------------------------------------------------- casts

void Casts::number_casts() {
  first_cast_.resize(graph_.num_tensors);
  for (int32_t t = 0; t < static_cast<int32_t>(graph_.num_tensors); t++) {
    const Needed casts = needed(t);
    first_cast_[static_cast<size_t>(t)] = count_;
    count_ += int32_t{casts.to_low} + int32_t{casts.to_fp32};
    if (casts.to_low && is_model_copy(t)) num_model_copies_++;
  }
  if (!emulates_) return;
  cast_back_.assign(static_cast<size_t>(num_inputs(graph_)), -1);
  for_each_input(graph_, [&](int32_t node, int32_t input, int32_t tensor) {
    if (is_fp32(graph_, tensor) && is_low_reader(node, input))
      cast_back_[static_cast<size_t>(input)] = count_++;
  });
}

int32_t Casts::cast_of_input(int32_t node, int32_t input) const {
  const int32_t tensor = graph_.input_tensor[input];
  if (tensor < 0 || !is_fp32(graph_, tensor)) return -1;
  const bool is_low = is_low_reader(node, input);
  if (emulates_ && is_low) return cast_back_[static_cast<size_t>(input)];
  if (reads_either(node, input) || is_low == has_low_producer(tensor)) return -1;
  const Needed casts = needed(tensor);
  const int32_t first = first_cast_[static_cast<size_t>(tensor)];
  if (!casts.to_low && !casts.to_fp32) return -1;
  return casts.to_low && casts.to_fp32 ? first + 1 : first;
}

void Casts::write(uint8_t *tensor_dtype, int32_t *input_cast, mp_autocast_cast_t *casts) const {
  const auto num_tensors = static_cast<int32_t>(graph_.num_tensors);
  if (tensor_dtype != nullptr)
    for (int32_t t = 0; t < num_tensors; t++) tensor_dtype[t] = static_cast<uint8_t>(dtype(t));
  if (input_cast != nullptr)
    for (int32_t i = 0; i < static_cast<int32_t>(graph_.num_nodes); i++)
      for (int32_t j = graph_.input_offsets[i]; j < graph_.input_offsets[i + 1]; j++)
        input_cast[j] = cast_of_input(i, j);
  if (casts == nullptr) return;

  mp_autocast_cast_t *next = casts;
  for (int32_t t = 0; t < num_tensors; t++) {
    const Needed wanted = needed(t);
    const int32_t others = others_[static_cast<size_t>(t)];
    const int32_t rounded = has_low_producer(t) ? readers_[static_cast<size_t>(t)] : others;
    const mp_cast_kind_t kind = is_model_copy(t) ? MP_CAST_KIND_MODEL_COPY : MP_CAST_KIND_KERNEL;
    if (wanted.to_low) *next++ = {t, MP_FP32, low_, kind, rounded};
    if (wanted.to_fp32) *next++ = {t, low_, MP_FP32, MP_CAST_KIND_KERNEL, others};
  }
  for (size_t j = 0; j < cast_back_.size(); j++)
    if (cast_back_[j] >= 0)
      *next++ = {graph_.input_tensor[j], low_, MP_FP32, MP_CAST_KIND_KERNEL, 1};
}

Rewritten::Rewritten(const Policy &policy, const mp_autocast_graph_t &graph,
                     const char *disabled_reason)
    : graph(graph), low(policy.config.dtype_low), disabled_reason(disabled_reason) {
  if (disabled_reason != nullptr) return;
  assignment.emplace(policy, graph);
  casts.emplace(policy, graph, *assignment);
}

}  // namespace mp::autocast
