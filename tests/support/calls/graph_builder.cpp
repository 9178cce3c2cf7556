#include "graph_builder.h"

namespace mptest {

int64_t numel_of(const mp_graph_tensor_t &info) {
  int64_t numel = 1;
  for (int32_t i = 0; i < info.rank; ++i) numel *= info.extent[i];
  return numel;
}

GraphBuilder::GraphBuilder(Caller &caller) : caller_(caller) {
  CREATE(caller, mp_graph_create, graph_, caller.context());
}

int32_t GraphBuilder::input(const char *name, mp_dtype_t dtype,
                            const std::vector<int64_t> &extent) const {
  int32_t tensor = -1;
  CALL(caller_, mp_graph_add_input, graph_, name, dtype, static_cast<int32_t>(extent.size()),
       extent.data(), &tensor);
  return tensor;
}

int32_t GraphBuilder::parameter(const char *name, const std::vector<int64_t> &extent) {
  int32_t tensor = -1;
  CALL(caller_, mp_graph_add_parameter, graph_, name, static_cast<int32_t>(extent.size()),
       extent.data(), &tensor);
  parameters.push_back(tensor);
  return tensor;
}

int32_t GraphBuilder::state(const char *name, const std::vector<int64_t> &extent) const {
  int32_t tensor = -1;
  CALL(caller_, mp_graph_add_state, graph_, name, static_cast<int32_t>(extent.size()),
       extent.data(), &tensor);
  return tensor;
}

std::vector<int32_t> GraphBuilder::outputs_of(const char *op, const char *name,
                                              const std::vector<int32_t> &inputs,
                                              const GraphAttributes &attributes,
                                              uint32_t num_outputs) const {
  std::vector<int32_t> outputs(num_outputs, -1);
  CALL(caller_, mp_graph_add_node, graph_, op, name, inputs.data(),
       static_cast<uint32_t>(inputs.size()), attributes.data(),
       static_cast<uint32_t>(attributes.size()), outputs.data(), num_outputs);
  return outputs;
}

void GraphBuilder::compile(mp_autocast_t policy) const {
  if (policy != nullptr) CALL(caller_, mp_graph_set_autocast, graph_, policy);
  CALL(caller_, mp_graph_compile, graph_);
}

mp_graph_tensor_t GraphBuilder::info(int32_t tensor) const {
  auto info = initialized<mp_graph_tensor_t>();
  CALL(caller_, mp_graph_get_tensor, graph_, tensor, &info);
  return info;
}

mp_autocast_t make_autocast(Caller &caller, mp_dtype_t low) {
  mp_autocast_config_t config = mp_autocast_config_default(low);
  config.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT | MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE;
  mp_autocast_t policy = nullptr;
  CREATE(caller, mp_autocast_create, policy, &config);
  return policy;
}

}  // namespace mptest
