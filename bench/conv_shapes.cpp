#include "conv_shapes.h"

#include <algorithm>

#include "options.h"

namespace mpbench {
namespace {

// Less than a second on two cores; few channels cost as much as kHostTile.
constexpr double kHostFlop = 1.6e9;
constexpr int32_t kHostTile = 64;
constexpr size_t kHostLayersPerSet = 2;

std::vector<ConvShape> every_pass(const std::vector<ConvShape> &layers) {
  std::vector<ConvShape> shapes;
  for (ConvShape shape : layers) {
    for (const mp_conv_op_t op : {MP_CONV_FPROP, MP_CONV_DGRAD, MP_CONV_WGRAD}) {
      shape.op = op;
      shapes.push_back(shape);
    }
  }
  return shapes;
}

bool is_slow_on_host(const ConvShape &layer) {
  ConvShape padded = layer;
  padded.c = std::max(layer.c, kHostTile);
  padded.k = std::max(layer.k, kHostTile);
  return padded.flop() > kHostFlop;
}

void keep_host_subset(std::vector<ConvShape> &layers) {
  std::erase_if(layers, is_slow_on_host);
  keep_spread(layers, kHostLayersPerSet);
}

}  // namespace

std::vector<ConvShape> read_conv_shapes(const Options &options, bool on_host) {
  struct File {
    const char *set, *name;
  };
  constexpr File kFiles[] = {{"resnet50", "resnet50.csv"},
                             {"deepbench_conv", "deepbench_conv_train.csv"}};
  const bool asked_for = !options.grep.empty() || options.limit > 0;

  std::vector<ConvShape> selected;
  for (const File &file : kFiles) {
    if (options.set != "all" && options.set != file.set) continue;
    std::vector<ConvShape> layers =
        read_shape_lines(options.home + "/shapes/" + file.name, parse_conv);
    for (ConvShape &layer : layers) layer.set = file.set;
    if (on_host && !asked_for) keep_host_subset(layers);
    std::vector<ConvShape> shapes = every_pass(layers);
    keep_matches(shapes, options.grep);
    selected.insert(selected.end(), shapes.begin(), shapes.end());
  }
  const auto limit = static_cast<size_t>(options.limit);
  if (limit > 0 && selected.size() > limit) selected.resize(limit, selected[0]);
  if (selected.empty() && !options.gemm)
    throw std::runtime_error("no convolution matches --set and --grep");
  return selected;
}

}  // namespace mpbench
