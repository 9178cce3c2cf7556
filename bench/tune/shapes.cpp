// Grid of problems that separates the constants: few and many tiles (launch, waves), short and long
// k (tile_us, k_us), thin matrices (DRAM), many small tiles (L2), few tiles with a long k (splits),
// odd rows (unaligned), and each order of the operands.
#include "measure.h"

#include "bench/options.h"

namespace mptune {
namespace {

using mpbench::Shape;

struct GridShape {
  int64_t m, n, k;
  const char *layout;
};

constexpr GridShape kDeviceGrid[] = {
    {128, 128, 128, "NT"},    {128, 256, 4096, "NT"},   {512, 512, 512, "NN"},
    {1024, 1024, 512, "NT"},  {1024, 1024, 4096, "TN"}, {2048, 2048, 256, "NN"},
    {2048, 2048, 2048, "NT"}, {2304, 1536, 1024, "TN"}, {4096, 4096, 256, "NT"},
    {4096, 4096, 1024, "NN"}, {4096, 4096, 4096, "NT"}, {8192, 4096, 768, "NT"},
    {8192, 8192, 2048, "NN"}, {8192, 8192, 8192, "NT"}, {32768, 2304, 768, "NT"},
    {3072, 768, 32768, "TN"}, {576, 4096, 7168, "TN"},  {768, 768, 65536, "TN"},
    {512, 256, 100000, "TN"}, {1, 8192, 8192, "NT"},    {4, 16384, 4096, "NT"},
    {16, 8192, 8192, "NN"},   {16, 14336, 4096, "NT"},  {64, 8192, 8192, "NT"},
    {128, 28672, 8192, "NT"}, {256, 4096, 4096, "NN"},  {777, 1023, 1001, "NN"},
    {2047, 2049, 1003, "NT"}, {4095, 1027, 2051, "TN"}, {5124, 700, 2048, "NT"},
    {100352, 64, 1024, "NN"}, {50176, 192, 1024, "NT"},
};

/// Limited to a tenth of a second for the slowest kernel.
constexpr GridShape kHostGrid[] = {
    {16, 16, 32, "NT"},     {64, 64, 64, "NN"},    {64, 64, 1024, "NT"},  {128, 128, 128, "TN"},
    {128, 128, 1024, "NN"}, {256, 256, 128, "NT"}, {256, 256, 512, "TN"}, {256, 128, 2048, "NT"},
    {512, 256, 512, "NN"},  {512, 512, 256, "NT"}, {384, 640, 320, "NN"}, {200, 264, 136, "TN"},
    {64, 64, 4096, "TN"},   {1, 1024, 1024, "NT"}, {4, 2048, 512, "NN"},  {16, 1024, 1024, "NT"},
    {16, 512, 2048, "NN"},  {128, 784, 256, "NT"}, {255, 129, 257, "NN"}, {129, 255, 515, "TN"},
    {131, 130, 129, "NT"},  {8, 512, 512, "TN"},   {1, 256, 256, "NN"},   {512, 1, 512, "NN"},
};

Shape shape_of(const GridShape &grid) {
  const std::string layout = grid.layout;
  return {.set = "grid",
          .m = grid.m,
          .n = grid.n,
          .k = grid.k,
          .op_a = mpbench::parse_op(layout[0]),
          .op_b = mpbench::parse_op(layout[1]),
          .is_wgrad = layout == "TN"};
}

std::vector<Shape> grid_of(const mpbench::Machine &machine) {
  std::vector<Shape> shapes;
  if (machine.on_host())
    for (const GridShape &grid : kHostGrid) shapes.push_back(shape_of(grid));
  else
    for (const GridShape &grid : kDeviceGrid) shapes.push_back(shape_of(grid));
  return shapes;
}

std::vector<Shape> all_shapes(const Options &options, const mpbench::Machine &machine) {
  if (options.set == "grid") return grid_of(machine);
  if (options.set != "llm" && options.set != "deepbench")
    return mpbench::read_shape_file(options.set);
  mpbench::Options of_bench;
  of_bench.set = options.set;
  of_bench.home = options.home;
  of_bench.quick = machine.on_host();
  return mpbench::read_shapes(of_bench, machine.on_host());
}

}  // namespace

std::vector<Shape> shapes_to_measure(const Options &options, const mpbench::Machine &machine) {
  std::vector<Shape> shapes = all_shapes(options, machine);
  if (!options.quick) return shapes;
  constexpr size_t kEvery = 3;
  std::vector<Shape> some;
  for (size_t i = 0; i < shapes.size(); i += kEvery) some.push_back(shapes[i]);
  return some;
}

}  // namespace mptune
