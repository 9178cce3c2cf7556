#include "scenarios.h"

#include <stdexcept>
#include <string>

namespace mptest::faults {

std::vector<Scenario> all_scenarios() {
  return {{"context", make_context},
          {"tensors", describe_tensors},
          {"scaler", scale_losses},
          {"steps", take_steps},
          {"sgd", take_steps_of<MP_OPT_SGD>},
          {"lamb", take_steps_of<MP_OPT_LAMB>},
          {"novograd", take_steps_of<MP_OPT_NOVOGRAD>},
          {"adagrad", take_steps_of<MP_OPT_ADAGRAD>},
          {"rmsprop", take_steps_of<MP_OPT_RMSPROP>},
          {"step that is given up", give_up_a_step},
          {"another optimizer", use_another_optimizer},
          {"all-reduce", reduce_over_ranks},
          {"steps of ranks", step_over_ranks<0>},
          {"sharded steps", step_over_ranks<MP_STEP_FLAG_SHARDED>},
          {"checked steps", step_over_ranks<MP_STEP_FLAG_CHECKED>},
          {"products", multiply_matrices},
          {"groups of products", multiply_groups},
          {"convolutions", convolve},
          {"product in a pipeline", multiply_in_a_pipeline},
          {"kernels", ask_for_kernels},
          {"layers", run_layers},
          {"recurrent layers", run_recurrent_layers},
          {"autocast", decide_types},
          {"first input of a graph", begin_graph},
          {"graph", compile_graph},
          {"training of a graph", train_graph},
          {"recurrent graph", compile_recurrent_graph},
          {"training of a recurrent graph", train_recurrent_graph}};
}

Scenario scenario(std::string_view name) {
  for (const Scenario &known : all_scenarios())
    if (name == known.name) return known;
  throw std::invalid_argument("no scenario " + std::string(name));
}

}  // namespace mptest::faults
