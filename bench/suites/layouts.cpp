#include "layouts.h"

#include <numeric>

namespace mpbench {

int64_t Layout::parameters() const {
  return std::accumulate(numel.begin(), numel.end(), int64_t{0});
}

std::string Layout::command_line_text() const {
  std::string result = name;
  for (size_t i = 0; i < numel.size();) {
    size_t end = i;
    while (end < numel.size() && numel[end] == numel[i]) ++end;
    result += (i == 0 ? '=' : ',') + std::to_string(numel[i]);
    if (end - i > 1) result += 'x' + std::to_string(end - i);
    i = end;
  }
  return result;
}

Layout one_tensor(int64_t parameters) {
  return {"one", {parameters}};
}

Layout equal_tensors(int64_t tensors, int64_t parameters_each) {
  return {'x' + std::to_string(tensors),
          std::vector<int64_t>(static_cast<size_t>(tensors), parameters_each)};
}

Layout resnet50() {
  Layout layout{"resnet50", {}};
  const auto add_convolution = [&](int64_t in, int64_t out, int64_t edge) {
    layout.numel.push_back(in * out * edge * edge);
    layout.numel.push_back(out);  // batch normalization: scale
    layout.numel.push_back(out);  // shift
  };
  add_convolution(3, 64, 7);
  constexpr int64_t kExpansion = 4;
  constexpr int64_t kBlocks[] = {3, 4, 6, 3};
  int64_t in = 64, width = 64;
  for (const int64_t blocks : kBlocks) {
    const int64_t out = kExpansion * width;
    for (int64_t block = 0; block < blocks; ++block) {
      add_convolution(in, width, 1);
      add_convolution(width, width, 3);
      add_convolution(width, out, 1);
      if (block == 0) add_convolution(in, out, 1);  // the shortcut changes its width
      in = out;
    }
    width *= 2;
  }
  constexpr int64_t kClasses = 1000;
  layout.numel.push_back(in * kClasses);
  layout.numel.push_back(kClasses);
  return layout;
}

std::vector<Layout> step_layouts(LayoutChoice choice, bool on_host) {
  if (on_host && choice == LayoutChoice::kFew)
    return {one_tensor(100'000), equal_tensors(100, 1000)};
  if (choice == LayoutChoice::kFew)
    return {one_tensor(100'000'000), equal_tensors(10'000, 10'000), resnet50()};

  std::vector<Layout> layouts;
  const int64_t most = on_host ? 1'000'000 : 1'000'000'000;
  const int64_t most_tensors = on_host ? 100 : 10'000;
  for (int64_t parameters = 100'000; parameters <= most; parameters *= 10) {
    layouts.push_back(one_tensor(parameters));
    if (choice == LayoutChoice::kSingle) continue;
    for (int64_t tensors = 100; tensors <= most_tensors; tensors *= 100)
      layouts.push_back(equal_tensors(tensors, parameters / tensors));
  }
  if (choice == LayoutChoice::kAll && !on_host) layouts.push_back(resnet50());
  return layouts;
}

}  // namespace mpbench
