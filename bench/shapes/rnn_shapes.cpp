#include "rnn_shapes.h"

#include "selection.h"
#include "sets.h"

namespace mpbench {

std::vector<RnnShape> read_rnn_shapes(const Options &options, bool on_host) {
  std::vector<RnnShape> shapes;
  for (const ShapeSet &set : sets_of("rnn", options.set)) {
    for (RnnShape &shape : read_shape_lines(options.home + "/shapes/" + set.file, parse_rnn)) {
      shape.set = set.name;
      shapes.push_back(shape);
      if (set.use == Use::kInference) continue;
      for (const char *gradient : {"dgrad", "wgrad"}) {
        shapes.push_back(shape);
        shapes.back().pass = gradient;
      }
    }
  }
  return selected(std::move(shapes), options, on_host);
}

}  // namespace mpbench
