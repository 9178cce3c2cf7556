#include "measure.h"

#include <fstream>
#include <stdexcept>

#include "support/json.h"
#include "support/text.h"

namespace mptune {
namespace {

using mptools::Json;

constexpr double kMaxUs = 1e9;  // limit of the table format

/// Reads an integer of a file; JSON's own conversion accepts fractions and wraps.
int64_t integer_at(const Json &json, const char *name, int64_t least, int64_t most) {
  const Json &value = json.at(name);
  if (!value.is_number_integer() || value.get<double>() < static_cast<double>(least) ||
      value.get<double>() > static_cast<double>(most))
    throw std::runtime_error(std::string(name) + " = " + value.dump() +
                             " must be an integer from " + std::to_string(least) + " to " +
                             std::to_string(most));
  return value;
}

/// Reads a line for the heading of a table.
std::string line_at(const Json &json, const char *name) {
  const std::string line = json.at(name);
  if (mptools::one_line(line) != line)
    throw std::runtime_error(std::string(name) + " = " + json.at(name).dump() +
                             " must not contain control characters");
  return line;
}

Origin origin_of(const Json &file) {
  return {.name = line_at(file, "device"),
          .driver = line_at(file, "driver"),
          .date = line_at(file, "date"),
          .device = make_device(file.at("target") == "host" ? MP_TARGET_HOST : MP_TARGET_CUDA,
                                static_cast<int32_t>(integer_at(file, "arch", 1, 9999)),
                                static_cast<int32_t>(integer_at(file, "num_sms", 1, 1 << 20)),
                                integer_at(file, "smem_per_block", 1, 1 << 30))};
}

mpbench::Shape shape_of(const Json &problem) {
  const std::string layout = problem.at("layout");
  if (layout.size() != 2) throw std::runtime_error("layout must be two letters");
  return {.set = problem.at("set"),
          .m = integer_at(problem, "m", 1, mpbench::kMaxExtent),
          .n = integer_at(problem, "n", 1, mpbench::kMaxExtent),
          .k = integer_at(problem, "k", 1, mpbench::kMaxExtent),
          .op_a = mpbench::parse_op(layout[0]),
          .op_b = mpbench::parse_op(layout[1]),
          .is_wgrad = problem.at("is_wgrad")};
}

Measured measured_of(const Json &problem, const mp::Device &device) {
  Measured measured{.shape = shape_of(problem)};
  for (const Json &run : problem.at("kernels")) {
    const double us = run.at("us");
    if (!(us > 0)) throw std::runtime_error("us must be positive");
    if (us > kMaxUs) throw std::runtime_error("us must be at most 1e9");
    measured.runs.push_back(run_of(measured.shape, device, run.at("kernel"), us));
  }
  if (measured.runs.empty()) throw std::runtime_error("a problem has no measured kernels");
  return measured;
}

Measurements measurements_of(const Json &file) {
  Measurements measurements{.origin = origin_of(file)};
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
