// Sizes of the parameter tensors of models.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpbench {

struct Layout {
  std::string name;
  std::vector<int64_t> numel;

  int64_t parameters() const;
  /// Returns the layout for command lines: "one=1000000", "x100=10000x100", "...=9408,64x2,...".
  std::string command_line_text() const;
};

Layout one_tensor(int64_t parameters);
/// Layout named after the number of its tensors: "x100".
Layout equal_tensors(int64_t tensors, int64_t parameters_each);

/// 161 tensors, 25,557,032 parameters: convolutions without bias, scale and shift of each batch
/// normalization, one fully connected layer.
/// Source: He et al., Deep Residual Learning for Image Recognition, 2016, table 1, 50 layers.
Layout resnet50();

/// Layouts on which an operation of the step is measured.
enum class LayoutChoice {
  kAll,    ///< 10^5 to 10^9 parameters in 1, 100 and 10,000 tensors, and ResNet-50
  kFew,    ///< 10^8 in 1 and 10,000 tensors, and ResNet-50
  kSingle  ///< 10^5 to 10^9 in one array
};

/// Returns the layouts; fewer and smaller ones on the host target.
std::vector<Layout> step_layouts(LayoutChoice choice, bool on_host);

}  // namespace mpbench
