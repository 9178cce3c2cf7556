// Writes data files and one gnuplot script for all pictures, and runs gnuplot.
//
// The script is kScriptStart, followed by the variables and pictures of each outcome.  It is kept
// next to the pictures, so that they can be restyled without training again.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "other_programs.h"
#include "plot_script.h"
#include "report.h"

namespace mpdemo {
namespace {

namespace fs = std::filesystem;

constexpr const char *kScriptName = "plots.gp";
constexpr size_t kSmoothedSteps = 20;

/// One row per bin: left edge, percentage of weight gradients, of activation gradients.
std::string gradient_data(const Outcome &outcome) {
  const Gradients &gradients = fp32_gradients(outcome);
  const Histogram weights = histogram(gradients.weights);
  const Histogram activations = histogram(gradients.activations);
  std::string rows =
      "# left edge of the bin (log2|g|); percentage of nonzero dW; percentage of nonzero dz\n";
  for (size_t bin = 0; bin < weights.share.size(); ++bin)
    rows += text("%g %g %g\n", Histogram::left_edge(bin), 100 * weights.share[bin],
                 100 * activations.share[bin]);
  return rows;
}

/// One block per run, numbered like gnuplot's `index`.
std::string training_data(const Outcome &outcome) {
  std::string rows;
  for (const RunResult &result : outcome.results) {
    rows += text("# %s: step; mean loss of the last %zu steps; log2 of S\n",
                 result.plan.name.c_str(), kSmoothedSteps);
    for (size_t step = 0; step < result.losses.size(); ++step) {
      const size_t first = step < kSmoothedSteps ? 0 : step + 1 - kSmoothedSteps;
      const std::span window = std::span(result.losses).subspan(first, step + 1 - first);
      const double sum = std::accumulate(window.begin(), window.end(), 0.0);
      const double scale = result.scales.empty() ? 1.0 : static_cast<double>(result.scales[step]);
      rows += text("%zu %.9g %g\n", step + 1, sum / static_cast<double>(window.size()),
                   std::log2(scale));
    }
    rows += "\n\n";
  }
  return rows;
}

/// gnuplot variables for the pictures of one outcome.  Runs count from 1; the first is FP32, of
/// which only the name is used, and those in fp16 follow.
std::string variables(const std::string &id, const Architecture &architecture,
                      const Outcome &outcome) {
  const Gradients &gradients = fp32_gradients(outcome);
  const std::string num_runs = std::to_string(outcome.results.size());
  const auto num_fp16 = std::count_if(outcome.results.begin(), outcome.results.end(), is_fp16);
  std::string script = "id = '" + id + "'\nheading = '" + architecture.name + ", " +
                       outcome.setting.title + "'\nnum_runs = " + num_runs +
                       "\nlast_flushed = " + std::to_string(1 + num_fp16) + "\n";
  for (const char *array : {"name", "log2_scale", "flushed_dw", "flushed_dz"})
    script += text("array %s[%s]\n", array, num_runs.c_str());
  for (size_t i = 0; i < outcome.results.size(); ++i) {
    const RunResult &result = outcome.results[i];
    const double scale = final_scale(result);
    script += text("name[%zu] = '%s'; log2_scale[%zu] = %g\n", i + 1, result.plan.name.c_str(),
                   i + 1, std::log2(scale));
    script += text("flushed_dw[%zu] = %.1f; flushed_dz[%zu] = %.1f\n", i + 1,
                   100 * flushed_share(gradients.weights, scale), i + 1,
                   100 * flushed_share(gradients.activations, scale));
  }
  return script;
}

}  // namespace

std::string write_plots(const fs::path &directory, const std::vector<Experiment> &experiments) {
  std::string script = kScriptStart;
  for (const Experiment &experiment : experiments) {
    for (const Outcome &outcome : experiment.outcomes) {
      const std::string id = experiment.architecture.id + "_" + outcome.setting.id;
      write_file(directory / (id + "_gradients.dat"), gradient_data(outcome));
      write_file(directory / (id + "_training.dat"), training_data(outcome));
      script += "\n" + variables(id, experiment.architecture, outcome) +
                (has_fp16(outcome) ? kGradientPicture : "") + kTrainingPicture;
    }
  }
  write_file(directory / kScriptName, script);
  const std::string where = directory.string();
  switch (run_gnuplot(directory, kScriptName)) {
    case 0:
      return "plots, their data and report.json are in " + where;
    case -1:
      return "no plots: gnuplot (Debian package gnuplot-nox) is missing; the data, " +
             std::string(kScriptName) + " and report.json are in " + where;
    default:
      return "no plots: gnuplot failed; see " + (directory / kScriptName).string();
  }
}

}  // namespace mpdemo
