// The sets of shapes, and the families that measure them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mpbench {

struct ShapeSet {
  const char *name, *family, *file;
};

constexpr ShapeSet kShapeSets[] = {
    {"llm", "gemm", "llm_gemm_shapes.csv"},
    {"deepbench", "gemm", "deepbench_gemm_train.csv"},
    {"resnet50", "conv", "resnet50.csv"},
    {"deepbench_conv", "conv", "deepbench_conv_train.csv"},
};

/// NULL = there is none of this name.
constexpr const ShapeSet *find_set(std::string_view name) {
  for (const ShapeSet &set : kShapeSets)
    if (name == set.name) return &set;
  return nullptr;
}

/// Those that a family measures when --set is `asked`, which may be "all".
inline std::vector<ShapeSet> sets_of(std::string_view family, const std::string &asked) {
  std::vector<ShapeSet> sets;
  for (const ShapeSet &set : kShapeSets)
    if (family == set.family && (asked == "all" || asked == set.name)) sets.push_back(set);
  return sets;
}

}  // namespace mpbench
