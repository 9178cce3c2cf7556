#include "shapes.h"

#include <algorithm>

#include "options.h"

namespace mpbench {
namespace {

// Less than 0.1 s on two cores; a thin matrix costs as much as one of kHostTile rows or columns.
constexpr double kHostFlop = 1.6e9;
constexpr int64_t kHostTile = 64;
constexpr size_t kHostShapesPerSet = 5;

using ParseLine = Shape (*)(std::string_view);

bool is_slow_on_host(const Shape &shape) {
  Shape padded = shape;
  padded.m = std::max(shape.m, kHostTile);
  padded.n = std::max(shape.n, kHostTile);
  return padded.flop() > kHostFlop;
}

void keep_host_subset(std::vector<Shape> &shapes) {
  std::erase_if(shapes, is_slow_on_host);
  keep_spread(shapes, kHostShapesPerSet);
}

}  // namespace

std::vector<Shape> read_shape_file(const std::string &path) {
  std::vector<Shape> shapes = read_shape_lines(path, parse_llm);
  for (Shape &shape : shapes) shape.set = path;
  return shapes;
}

std::vector<Shape> read_shapes(const Options &options, bool on_host) {
  struct File {
    const char *set, *name;
    ParseLine parse;
  };
  constexpr File kFiles[] = {{"llm", "llm_gemm_shapes.csv", parse_llm},
                             {"deepbench", "deepbench_gemm_train.csv", parse_deepbench}};
  const bool asked_for = !options.grep.empty() || options.limit > 0;

  std::vector<Shape> selected;
  for (const File &file : kFiles) {
    if (options.set != "all" && options.set != file.set) continue;
    std::vector<Shape> shapes = read_shape_lines(options.home + "/shapes/" + file.name, file.parse);
    keep_matches(shapes, options.grep);
    if (on_host && !asked_for) keep_host_subset(shapes);
    selected.insert(selected.end(), shapes.begin(), shapes.end());
  }
  const auto limit = static_cast<size_t>(options.limit);
  if (limit > 0 && selected.size() > limit) selected.resize(limit);
  if (selected.empty() && !options.conv)
    throw std::runtime_error("no shape matches --set and --grep");
  return selected;
}

}  // namespace mpbench
