#include "conv_shapes.h"

#include "selection.h"
#include "sets.h"

namespace mpbench {

std::vector<ConvShape> read_conv_shapes(const Options &options, bool on_host) {
  std::vector<ConvShape> shapes;
  for (const ShapeSet &set : sets_of("conv", options.set)) {
    for (ConvShape &shape : read_shape_lines(options.home + "/shapes/" + set.file, parse_conv)) {
      shape.set = set.name;
      shapes.push_back(shape);
      if (set.use == Use::kInference) continue;
      for (const mp_conv_op_t gradient : {MP_CONV_DGRAD, MP_CONV_WGRAD}) {
        shapes.push_back(shape);
        shapes.back().op = gradient;
      }
    }
  }
  return selected(std::move(shapes), options, on_host);
}

}  // namespace mpbench
