#include "report.h"

#include <algorithm>
#include <cmath>

#include "kernels/gemm/plan_text.h"
#include "support/json.h"
#include "support/text.h"

namespace mptune {
namespace {

using mptools::Json;
using mptools::one_line;
using mptools::text;

const Run &fastest_run(const Measured &measured) {
  return *std::min_element(measured.runs.begin(), measured.runs.end(),
                           [](const Run &x, const Run &y) { return x.sample.us < y.sample.us; });
}

/// First kernel of the ranking; ties keep the order of the runs.
const Run &chosen_run(const Measured &measured, const mp::ClassTuning &tuning) {
  return *std::min_element(measured.runs.begin(), measured.runs.end(),
                           [&](const Run &x, const Run &y) {
                             return predicted(x.sample, tuning) < predicted(y.sample, tuning);
                           });
}

double loss_of(const Measured &measured, const mp::ClassTuning &tuning) {
  return chosen_run(measured, tuning).sample.us / fastest_run(measured).sample.us - 1;
}

/// Kernels that were measured.
std::vector<const mp::GemmKernel *> kernels_of(const std::vector<Measured> &measured) {
  std::vector<const mp::GemmKernel *> kernels;
  for (const mp::GemmKernel &kernel : mp::gemm_kernels()) {
    const auto uses = [&](const Run &run) { return run.sample.kernel == &kernel; };
    if (std::any_of(measured.begin(), measured.end(), [&](const Measured &problem) {
          return std::any_of(problem.runs.begin(), problem.runs.end(), uses);
        }))
      kernels.push_back(&kernel);
  }
  return kernels;
}

// ---------------------------------------------------------------------------- text

std::string accuracy_lines(const Accuracy &before, const Accuracy &after) {
  const auto percent = [](const char *what, double x, double y) {
    return text("  %-38s %9.1f %% %9.1f %%\n", what, 100 * x, 100 * y);
  };
  return text("  %-38s %11s %11s\n", "", "built-in", "fitted") +
         percent("median error of the predictions", before.median_error, after.median_error) +
         percent("  90th percentile", before.worst_tenth_error, after.worst_tenth_error) +
         text("  %-38s %11zu %11zu\n",
              text("fastest kernel selected, of %zu problems", before.problems).c_str(),
              before.fastest_chosen, after.fastest_chosen) +
         percent("selected over fastest time, mean", before.mean_loss, after.mean_loss) +
         percent("  worst", before.worst_loss, after.worst_loss);
}

std::string problem_lines(const std::vector<Measured> &measured, const mp::ClassTuning &tuning) {
  std::string lines = text("\n%-22s %-30s %9s %9s  %-30s %9s %7s\n", "problem",
                           "selected by fitted table", "predicted", "us", "fastest", "us", "loss");
  for (const Measured &problem : measured) {
    const Run &chosen = chosen_run(problem, tuning);
    const Run &fastest = fastest_run(problem);
    lines += text("%-22s %-30s %9.1f %9.1f  %-30s %9.1f %5.1f %%\n", problem.shape.name().c_str(),
                  chosen.name.c_str(), predicted(chosen.sample, tuning), chosen.sample.us,
                  fastest.name.c_str(), fastest.sample.us, 100 * loss_of(problem, tuning));
  }
  return lines;
}

// ---------------------------------------------------------------------------- JSON

Json json_of(const Accuracy &accuracy) {
  return {
      {"median_error", accuracy.median_error}, {"worst_tenth_error", accuracy.worst_tenth_error},
      {"problems", accuracy.problems},         {"fastest_chosen", accuracy.fastest_chosen},
      {"mean_loss", accuracy.mean_loss},       {"worst_loss", accuracy.worst_loss}};
}

Json json_of(const Measured &problem, const Outcome &outcome) {
  Json kernels = Json::array();
  for (const Run &run : problem.runs)
    kernels.push_back({{"kernel", run.name},
                       {"us", run.sample.us},
                       {"predicted_us_before", predicted(run.sample, outcome.before)},
                       {"predicted_us", predicted(run.sample, outcome.after)}});
  return {{"set", problem.shape.set},
          {"shape", problem.shape.name()},
          {"layout", problem.shape.name().substr(0, 2)},
          {"is_wgrad", problem.shape.is_wgrad},
          {"m", problem.shape.m},
          {"n", problem.shape.n},
          {"k", problem.shape.k},
          {"kernels", kernels}};
}

}  // namespace

Accuracy accuracy_of(const std::vector<Measured> &measured, const mp::ClassTuning &tuning) {
  Accuracy accuracy{};
  std::vector<double> errors;
  for (const Measured &problem : measured) {
    for (const Run &run : problem.runs)
      errors.push_back(std::abs(relative_error(run.sample, tuning)));
    const double loss = loss_of(problem, tuning);
    accuracy.problems++;
    if (loss == 0) accuracy.fastest_chosen++;
    accuracy.mean_loss += loss;
    accuracy.worst_loss = std::max(accuracy.worst_loss, loss);
  }
  std::sort(errors.begin(), errors.end());
  if (errors.empty()) return accuracy;
  accuracy.median_error = errors[errors.size() / 2];
  accuracy.worst_tenth_error = errors[errors.size() * 9 / 10];
  accuracy.mean_loss /= static_cast<double>(accuracy.problems);
  return accuracy;
}

std::string text_report(const Outcome &o) {
  return text("%s, %s\n\n", o.origin.name.c_str(), mp::name_of(mp::class_of(o.origin.device))) +
         accuracy_lines(accuracy_of(o.measured, o.before), accuracy_of(o.measured, o.after)) +
         problem_lines(o.measured, o.after) + '\n' + table_text(o);
}

std::string table_text(const Outcome &o) {
  mp::GemmTuning tuning{};
  tuning.of(mp::class_of(o.origin.device)) = o.after;
  return text(
             "# GEMM constants fitted by mptune, for MP_GEMM_TUNING.\n"
             "# device   %s, %d SMs\n"
             "# driver   %s\n"
             "# date     %s\n"
             "# library  %s\n"
             "# command  %s\n",
             one_line(o.origin.name).c_str(), o.origin.device.num_sms,
             one_line(o.origin.driver).c_str(), o.origin.date.c_str(), mp_build_info(),
             one_line(o.options.command).c_str()) +
         tuning_text(tuning, mp::class_of(o.origin.device), kernels_of(o.measured));
}

std::string json_report(const Outcome &o) {
  Json problems = Json::array();
  for (const Measured &problem : o.measured) problems.push_back(json_of(problem, o));
  return mptools::json_text({{"device", o.origin.name},
                             {"class", mp::name_of(mp::class_of(o.origin.device))},
                             {"target", o.origin.device.target == MP_TARGET_HOST ? "host" : "cuda"},
                             {"arch", o.origin.device.arch},
                             {"num_sms", o.origin.device.num_sms},
                             {"smem_per_block", o.origin.device.smem_per_block},
                             {"driver", o.origin.driver},
                             {"date", o.origin.date},
                             {"commit", mp_build_info()},
                             {"command", o.options.command},
                             {"table", table_text(o)},
                             {"accuracy_before", json_of(accuracy_of(o.measured, o.before))},
                             {"accuracy", json_of(accuracy_of(o.measured, o.after))},
                             {"problems", problems}});
}

}  // namespace mptune
