// mptune: measures every GEMM kernel of a device on a list of problems, fits the constants of the
// predicted times to what it measured, and writes them as a table for MP_GEMM_TUNING.
//
// It measures through mpcore.h, with the bench's clock and data.  The formula of the prediction, and
// the form of the table, are those of kernels/gemm/: what is fitted has to be what selects.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "common/progress.h"
#include "measure.h"
#include "options.h"
#include "report.h"
#include "shapes.h"

namespace mptune {
namespace {

/// In operations; a thin matrix costs as much as one of a tile's width.
double cost_of(const mpbench::Shape &shape) {
  constexpr double kTile = 128;
  return 1e8 + 2 * std::max(kTile, static_cast<double>(shape.m)) *
                   std::max(kTile, static_cast<double>(shape.n)) * static_cast<double>(shape.k);
}

std::vector<Measured> measure_all(const std::vector<mpbench::Shape> &shapes,
                                  const mpbench::Machine &machine) {
  Measurer measurer(machine);
  double all = 0;
  for (const mpbench::Shape &shape : shapes) all += cost_of(shape);
  mptools::Progress progress(all);
  std::vector<Measured> measured;
  for (const mpbench::Shape &shape : shapes) {
    progress.start(shape.name());
    measured.push_back(measurer.measure(shape));
    progress.finish(cost_of(shape));
  }
  progress.clear();
  return measured;
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

void run(const Options &options) {
  const mpbench::Machine machine = open_machine(options.device);
  const std::vector<Measured> measured = measure_all(shapes_to_measure(options, machine), machine);
  const mp::ClassTuning &before = mp::builtin_gemm_tuning().of(mp::class_of(device_of(machine)));
  const mp::ClassTuning after = fit_tuning(samples_of(measured), before);
  const Outcome outcome{options, machine, measured, before, after};

  const bool json_on_stdout = options.json == "-";
  std::fprintf(json_on_stdout ? stderr : stdout, "%s\nwritten to %s\n",
               text_report(outcome).c_str(), options.out.c_str());
  write_table(options.out, table_text(outcome));
  if (json_on_stdout)
    std::fputs(json_report(outcome).c_str(), stdout);
  else if (!options.json.empty())
    mptools::write_file(options.json, json_report(outcome));
}

}  // namespace
}  // namespace mptune

int main(int argc, char **argv) try {
  const mptune::Options options = mptune::parse_options(argc, argv);
  if (options.help)
    std::fputs(mptune::usage(), stdout);
  else
    mptune::run(options);
  return 0;
} catch (const mptune::UsageError &error) {
  std::fprintf(stderr, "mptune: %s\n", error.what());
  return 2;
} catch (const std::exception &error) {
  std::fprintf(stderr, "mptune: %s\n", error.what());
  return 1;
}
