// mptune: measures every GEMM kernel of a device on a list of problems, fits the constants of the
// predicted times, and writes them as a table for MP_GEMM_TUNING.
//
// It measures through mpcore.h, with the bench's clock and data.  The formula of the prediction and
// the format of the table are those of kernels/gemm/, which selection uses.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "measure.h"
#include "options.h"
#include "report.h"
#include "support/program.h"
#include "support/progress.h"

namespace mptune {
namespace {

/// Cost in operations; a thin matrix costs as much as one with the width of a tile.
double cost_of(const mpbench::Shape &shape) {
  constexpr double kTile = 128;
  return 1e8 + 2 * std::max(kTile, static_cast<double>(shape.m)) *
                   std::max(kTile, static_cast<double>(shape.n)) * static_cast<double>(shape.k);
}

Measurements measure(const Options &options) {
  const mpbench::Machine machine = open_machine(options.device);
  if (machine.is_counted())
    throw std::runtime_error("the software device measures no times, so no table can be fitted");
  const std::vector<mpbench::Shape> shapes = shapes_to_measure(options, machine);
  Measurer measurer(machine);
  double all = 0;
  for (const mpbench::Shape &shape : shapes) all += cost_of(shape);
  mptools::Progress progress(all);
  std::vector<Measured> measured;
  const auto start = std::chrono::steady_clock::now();
  const std::chrono::duration<double, std::ratio<60>> most(options.minutes);
  for (const mpbench::Shape &shape : shapes) {
    if (options.minutes > 0 && !measured.empty() &&
        std::chrono::steady_clock::now() - start >= most) {
      std::fprintf(stderr, "mptune: time limit reached after %zu of %zu shapes\n", measured.size(),
                   shapes.size());
      break;
    }
    progress.start(shape.name());
    measured.push_back(measurer.measure(shape));
    progress.finish(cost_of(shape));
  }
  progress.clear();
  return {origin_of(machine), measured};
}

std::vector<Sample> samples_of(const std::vector<Measured> &measured) {
  std::vector<Sample> samples;
  for (const Measured &problem : measured)
    for (const Run &run : problem.runs) samples.push_back(run.sample);
  return samples;
}

void write_table(const std::filesystem::path &path, const std::string &table) {
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  mptools::write_file(path, table);
}

/// Writes to the file, or to stdout if the path is "-".
void write_json(const std::string &path, const std::string &json) {
  if (path == "-")
    std::fputs(json.c_str(), stdout);
  else if (!path.empty())
    mptools::write_file(path, json);
}

void run_predictions(const Options &options) {
  const mp::Device device = typical_device(options.predict);
  const std::vector<Prediction> predicted = predictions(options, device);
  if (options.json != "-") std::fputs(predictions_text(predicted, device).c_str(), stdout);
  write_json(options.json, predictions_json(predicted, device));
}

void run_fit(const Options &options) {
  const auto [origin, measured] =
      options.from.empty() ? measure(options) : read_measurements(options.from);
  const mp::ClassTuning &before = mp::builtin_gemm_tuning().of(mp::class_of(origin.device));
  mp::ClassTuning after = fit_tuning(samples_of(measured), before);
  after.measured_arch = origin.device.target == MP_TARGET_HOST ? 0 : origin.device.arch;
  const Outcome outcome{options, origin, measured, before, after};

  std::FILE *const report = options.json == "-" ? stderr : stdout;
  std::fprintf(report, "%s\n", text_report(outcome).c_str());
  write_table(options.out, table_text(outcome));
  std::fprintf(report, "table written to %s\n", options.out.c_str());
  write_json(options.json, json_report(outcome));
}

int run(const Options &options) {
  if (options.predict.empty())
    run_fit(options);
  else
    run_predictions(options);
  return 0;
}

}  // namespace
}  // namespace mptune

int main(int argc, char **argv) {
  return mptools::run_program("mptune",
                              [&] { return mptune::run(mptune::parse_options(argc, argv)); });
}
