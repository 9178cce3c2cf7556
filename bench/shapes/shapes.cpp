#include "shapes.h"

#include "selection.h"
#include "sets.h"

namespace mpbench {

std::vector<Shape> read_shape_file(const std::string &path) {
  std::vector<Shape> shapes = read_shape_lines(path, parse_llm);
  for (Shape &shape : shapes) shape.set = path;
  return shapes;
}

std::vector<Shape> read_shapes(const Options &options, bool on_host) {
  std::vector<Shape> shapes;
  for (const ShapeSet &set : sets_of("gemm", options.set)) {
    const auto parse = std::string_view(set.name) == "llm" ? parse_llm : parse_deepbench;
    for (Shape &shape : read_shape_lines(options.home + "/shapes/" + set.file, parse)) {
      shape.set = set.name;
      shapes.push_back(std::move(shape));
    }
  }
  return selected(std::move(shapes), options, on_host);
}

}  // namespace mpbench
