// Writes data files and one gnuplot script for all pictures, and runs gnuplot.
//
// The script is kScriptStart, followed by the variables and pictures of each outcome.  It is kept
// next to the pictures, so that they can be restyled without training again.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "other_programs.h"
#include "report.h"

namespace mpdemo {
namespace {

namespace fs = std::filesystem;

constexpr const char *kScriptName = "plots.gp";
constexpr size_t kSmoothedSteps = 20;

// The preamble, and the two pictures of one outcome.  They read variables that are written before
// them: id (of the file names), heading, num_runs, last_flushed, and the arrays name, log2_scale,
// flushed_dw and flushed_dz, by run.

constexpr const char *kScriptStart =
    R"gnuplot(# Draws the plots of mpdemo from the .dat files in the same folder:  gnuplot plots.gp
set terminal pngcairo size 1200,700 font 'Sans,12' enhanced
set border 3 lc rgb '#555555'
set tics nomirror out
set format '%h'
set grid ytics lc rgb '#e4e4e4' lt 1 lw 1

# Colors of Okabe and Ito, which are safe for color blindness.  FP32 is the broad gray line, which
# the other lines should cover.
set linetype 1 lc rgb '#bbbbbb' lw 7
set linetype 2 lc rgb '#0072B2' lw 3
set linetype 3 lc rgb '#009E73' lw 1.5
set linetype 4 lc rgb '#D55E00' lw 2 dt (8,5)
set linetype 5 lc rgb '#CC79A7' lw 1.5

# Exponents at which fp16 changes: <= 2^-25 rounds to 0, subnormal below 2^-14, infinite from 2^16.
log2_flush = -25
log2_subnormal = -14
log2_overflow = 16
)gnuplot";

constexpr const char *kGradientPicture = R"gnuplot(
# Distribution of the gradients of the FP32 run, multiplied by the scale S of each mixed run.
set output id.'_gradients.png'
set multiplot layout 2,1 title heading.': gradients in the range of fp16' font 'Sans,15' noenhanced \
    margins 0.07,0.74,0.10,0.86 spacing 0.0,0.13
unset logscale
unset yrange
set xrange [-56:22]
set xtics 5
set key at screen 0.755,graph 0.95 left top Left reverse spacing 2.8 samplen 2
set object 1 rectangle from graph 0,graph 0 to log2_flush,graph 1 behind fs solid noborder fc rgb '#fae0d8'
set object 2 rectangle from log2_flush,graph 0 to log2_subnormal,graph 1 behind fs solid noborder fc rgb '#fdf5d9'
set object 3 rectangle from log2_overflow,graph 0 to graph 1,graph 1 behind fs solid noborder fc rgb '#fae0d8'
set style fill transparent solid 0.25
do for [panel = 1:2] {
  set title (panel == 1 ? 'weight gradients dW' : 'activation gradients dz') offset 0,0.9
  set xlabel (panel == 1 ? '' : 'log_2 |S g|')
  set ylabel '% of nonzero values'
  set label 1 'rounds to 0 (up to 2^{-25})' at (-56 + log2_flush) / 2.0, graph 1.05 center tc rgb '#a03c14'
  set label 2 'subnormal (to 2^{-14})' at (log2_flush + log2_subnormal) / 2.0, graph 1.05 center tc rgb '#806000'
  set label 3 'full precision' at (log2_subnormal + log2_overflow) / 2.0, graph 1.05 center tc rgb '#555555'
  set label 4 'infinite' at (log2_overflow + 22) / 2.0, graph 1.05 center tc rgb '#a03c14'
  plot for [run = 2:last_flushed] id.'_gradients.dat' using ($1 + log2_scale[run]):(column(panel + 1)) \
      with fillsteps lt run notitle, \
    for [run = 2:last_flushed] '' using ($1 + log2_scale[run]):(column(panel + 1)) with steps lt run \
      title sprintf("%s\nS = 2^{%d}: %.1f %% round to 0", name[run], log2_scale[run], \
                    panel == 1 ? flushed_dw[run] : flushed_dz[run])
}
unset multiplot
unset object
unset label
)gnuplot";

constexpr const char *kTrainingPicture = R"gnuplot(
# Training loss and scale S by step.
set output id.'_training.png'
set multiplot layout 2,1 title heading.': loss and loss scale' font 'Sans,15' noenhanced \
    margins 0.07,0.80,0.10,0.92 spacing 0.0,0.08
unset title
set key at screen 0.815,graph 1 left top Left reverse spacing 1.4 samplen 2
set xrange [0:*] noextend
set xtics auto
set xlabel ''
set ylabel 'training loss'
set logscale y
set yrange [*:*] noextend
set ytics (0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10, 20, 50, 100)
plot for [run = 1:num_runs] id.'_training.dat' index run - 1 using 1:2 with lines lt run title name[run]
unset logscale y
set ytics auto
set xlabel 'step'
set ylabel 'log_2 S'
set yrange [-1:*]
plot for [run = 2:num_runs] id.'_training.dat' index run - 1 using 1:3 with steps lt run title name[run]
unset multiplot
)gnuplot";

/// Fractions of the nonzero values by magnitude: bin i counts log2|g| in kLog2Low + [i, i + 1) /
/// kBinsPerOctave.
struct Histogram {
  static constexpr int kLog2Low = -60;
  static constexpr int kLog2High = 20;
  static constexpr int kBinsPerOctave = 2;

  std::vector<double> share;

  static double left_edge(size_t bin) {
    return kLog2Low + static_cast<double>(bin) / kBinsPerOctave;
  }
};

/// Values outside the range count in the first or last bin.
Histogram histogram(std::span<const float> gradients) {
  constexpr int kBins = (Histogram::kLog2High - Histogram::kLog2Low) * Histogram::kBinsPerOctave;
  Histogram result;
  result.share.assign(kBins, 0.0);
  int64_t nonzero = 0;
  for (const float g : gradients) {
    if (g == 0.0f) continue;
    ++nonzero;
    const double position =
        (std::log2(std::abs(g)) - Histogram::kLog2Low) * Histogram::kBinsPerOctave;
    const int bin = std::clamp(static_cast<int>(std::floor(position)), 0, kBins - 1);
    result.share[static_cast<size_t>(bin)] += 1.0;
  }
  for (double &share : result.share) share /= static_cast<double>(std::max<int64_t>(nonzero, 1));
  return result;
}

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
