#include "stored.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "support/json_reader.h"

namespace mptune {
namespace {

using mptools::Json;

template <typename Int>
Int integer(const Json &value) {
  return static_cast<Int>(value.number());
}

Origin origin_of(const Json &file) {
  Origin origin{.name = file["device"].string(),
                .driver = file["driver"].string(),
                .date = file["date"].string(),
                .device = {}};
  origin.device.target = file["target"].string() == "host" ? MP_TARGET_HOST : MP_TARGET_CUDA;
  origin.device.arch = integer<int32_t>(file["arch"]);
  origin.device.has_wgmma = origin.device.arch == 90;
  origin.device.num_sms = integer<int32_t>(file["num_sms"]);
  origin.device.smem_per_block = integer<int64_t>(file["smem_per_block"]);
  return origin;
}

mpbench::Shape shape_of(const Json &problem) {
  const std::string &layout = problem["layout"].string();
  if (layout.size() != 2) throw std::runtime_error("a layout in it is not two letters");
  return {.set = problem["set"].string(),
          .m = integer<int64_t>(problem["m"]),
          .n = integer<int64_t>(problem["n"]),
          .k = integer<int64_t>(problem["k"]),
          .op_a = mpbench::parse_op(layout[0]),
          .op_b = mpbench::parse_op(layout[1]),
          .is_wgrad = problem["is_wgrad"].boolean(),
          .comment = {}};
}

Measured measured_of(const Json &problem, const mp::Device &device) {
  Measured measured{.shape = shape_of(problem), .runs = {}};
  for (const Json &run : problem["kernels"].items()) {
    const double us = run["us"].number();
    if (!(us > 0)) throw std::runtime_error("a time in it is not above 0");
    measured.runs.push_back(run_of(measured.shape, device, run["kernel"].string(), us));
  }
  if (measured.runs.empty())
    throw std::runtime_error("a problem in it has no kernel that was measured");
  return measured;
}

Measurements measurements_of(const Json &file) {
  Measurements measurements{.origin = origin_of(file), .measured = {}};
  for (const Json &problem : file["problems"].items())
    measurements.measured.push_back(measured_of(problem, measurements.origin.device));
  return measurements;
}

}  // namespace

Measurements read_measurements(const std::filesystem::path &path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  const std::string text(std::istreambuf_iterator<char>(file), {});
  try {
    return measurements_of(Json::parse(text));
  } catch (const std::exception &error) {
    throw std::runtime_error(path.string() + ": " + error.what());
  }
}

}  // namespace mptune
