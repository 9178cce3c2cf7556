// Scenarios for fault tests: every object is created and destroyed, every family of calls is used
// once.
#pragma once

#include <string_view>
#include <vector>

#include "run.h"

namespace mptest::faults {

struct Scenario {
  const char *name;
  void (*run)(Run &);
};

/// Returns all scenarios, or the one with a name, which must exist.
std::vector<Scenario> all_scenarios();
Scenario scenario(std::string_view name);

// One file per group.
void make_context(Run &run);
void describe_tensors(Run &run);
void scale_losses(Run &run);
void take_steps(Run &run);
template <mp_optimizer_kind_t kKind>
void take_steps_of(Run &run);
void give_up_a_step(Run &run);
void use_another_optimizer(Run &run);
void reduce_over_ranks(Run &run);
template <uint32_t kFlags>
void step_over_ranks(Run &run);

void multiply_matrices(Run &run);
void multiply_groups(Run &run);
void convolve(Run &run);
void multiply_in_a_pipeline(Run &run);
void ask_for_kernels(Run &run);
void run_layers(Run &run);
void run_recurrent_layers(Run &run);

void decide_types(Run &run);
void begin_graph(Run &run);
void compile_graph(Run &run);
void train_graph(Run &run);
void compile_recurrent_graph(Run &run);
void train_recurrent_graph(Run &run);

}  // namespace mptest::faults
