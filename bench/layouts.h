// How the parameters of a model are cut into tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpbench {

struct Layout {
  std::string name;
  std::vector<int64_t> numel;

  int64_t parameters() const;
  /// For other programs: "one=1000000", "small=2500x4000", "...=9408,64x2,...".
  std::string command_line_text() const;
};

Layout one_tensor(int64_t parameters);
Layout equal_tensors(int64_t tensors, int64_t parameters_each);

/// 161 tensors, 25,557,032 parameters: convolutions without bias, scale and shift of each
/// batch normalisation, one fully connected layer.
/// Source: He et al., Deep Residual Learning for Image Recognition, 2016, table 1, 50 layers.
Layout resnet50();

}  // namespace mpbench
