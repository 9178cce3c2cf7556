#include "stored.h"

#include <fstream>
#include <stdexcept>

#include "support/json.h"

namespace mptune {
namespace {

using mptools::Json;

Origin origin_of(const Json &file) {
  Origin origin{.name = file.at("device"),
                .driver = file.at("driver"),
                .date = file.at("date"),
                .device = {}};
  origin.device.target = file.at("target") == "host" ? MP_TARGET_HOST : MP_TARGET_CUDA;
  origin.device.arch = file.at("arch");
  origin.device.has_wgmma = origin.device.arch == 90;
  origin.device.num_sms = file.at("num_sms");
  origin.device.smem_per_block = file.at("smem_per_block");
  return origin;
}

mpbench::Shape shape_of(const Json &problem) {
  const std::string layout = problem.at("layout");
  if (layout.size() != 2) throw std::runtime_error("a layout in it is not two letters");
  return {.set = problem.at("set"),
          .m = problem.at("m"),
          .n = problem.at("n"),
          .k = problem.at("k"),
          .op_a = mpbench::parse_op(layout[0]),
          .op_b = mpbench::parse_op(layout[1]),
          .is_wgrad = problem.at("is_wgrad"),
          .comment = {}};
}

Measured measured_of(const Json &problem, const mp::Device &device) {
  Measured measured{.shape = shape_of(problem), .runs = {}};
  for (const Json &run : problem.at("kernels")) {
    const double us = run.at("us");
    if (!(us > 0)) throw std::runtime_error("a time in it is not above 0");
    measured.runs.push_back(run_of(measured.shape, device, run.at("kernel"), us));
  }
  if (measured.runs.empty())
    throw std::runtime_error("a problem in it has no kernel that was measured");
  return measured;
}

Measurements measurements_of(const Json &file) {
  Measurements measurements{.origin = origin_of(file), .measured = {}};
  for (const Json &problem : file.at("problems"))
    measurements.measured.push_back(measured_of(problem, measurements.origin.device));
  return measurements;
}

}  // namespace

Measurements read_measurements(const std::filesystem::path &path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  try {
    return measurements_of(Json::parse(file));
  } catch (const std::exception &error) {
    throw std::runtime_error(path.string() + ": " + error.what());
  }
}

}  // namespace mptune
