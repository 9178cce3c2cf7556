// The sets of shapes, and the suites that measure them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mpbench {

/// Inference runs the forward pass only.
enum class Use { kTraining, kInference };

struct ShapeSet {
  const char *name, *suite, *file;
  Use use;
};

constexpr ShapeSet kShapeSets[] = {
    {"llm", "gemm", "llm_gemm_shapes.csv", Use::kTraining},
    {"deepbench", "gemm", "deepbench_gemm_train.csv", Use::kTraining},
    {"deepbench_infer", "gemm", "deepbench_gemm_infer.csv", Use::kInference},
    {"deepbench_infer_device", "gemm", "deepbench_gemm_infer_device.csv", Use::kInference},
    {"transformer", "epilogue", "transformer_gemm_shapes.csv", Use::kTraining},
    {"batched", "batched", "batched_shapes.csv", Use::kTraining},
    {"resnet50", "conv", "resnet50.csv", Use::kTraining},
    {"deepbench_conv", "conv", "deepbench_conv_train.csv", Use::kTraining},
    {"deepbench_conv_infer", "conv", "deepbench_conv_infer.csv", Use::kInference},
    {"deepbench_conv_infer_device", "conv", "deepbench_conv_infer_device.csv", Use::kInference},
    {"layers", "layers", "layer_shapes.csv", Use::kTraining},
    {"attention", "attention", "attention_shapes.csv", Use::kTraining},
    {"norm", "norm", "norm_shapes.csv", Use::kTraining},
    {"linear_xent", "linear_xent", "linear_xent_shapes.csv", Use::kTraining},
    {"gated", "gated", "gated_shapes.csv", Use::kTraining},
    {"deepbench_rnn_train", "rnn", "deepbench_rnn_train.csv", Use::kTraining},
    {"deepbench_rnn_infer", "rnn", "deepbench_rnn_infer.csv", Use::kInference},
    {"deepbench_rnn_infer_device", "rnn", "deepbench_rnn_infer_device.csv", Use::kInference},
};

/// NULL = no set has this name.
constexpr const ShapeSet *find_set(std::string_view name) {
  for (const ShapeSet &set : kShapeSets)
    if (name == set.name) return &set;
  return nullptr;
}

/// Returns the sets that a suite measures for --set `asked`, which may be "all".
inline std::vector<ShapeSet> sets_of(std::string_view suite, const std::string &asked) {
  std::vector<ShapeSet> sets;
  for (const ShapeSet &set : kShapeSets)
    if (suite == set.suite && (asked == "all" || asked == set.name)) sets.push_back(set);
  return sets;
}

}  // namespace mpbench
