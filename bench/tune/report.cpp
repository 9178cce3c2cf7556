#include "report.h"

#include <algorithm>
#include <cmath>

#include "bench/common.h"

namespace mptune {
namespace {

using mptools::text;

const Run &fastest_run(const Measured &measured) {
  return *std::min_element(measured.runs.begin(), measured.runs.end(),
                           [](const Run &x, const Run &y) { return x.sample.us < y.sample.us; });
}

/// The first of the ranking; among equals the order of the runs is kept.
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
         percent("error of predictions, median", before.median_error, after.median_error) +
         percent("  90 % are below", before.worst_tenth_error, after.worst_tenth_error) +
         text("  %-38s %11zu %11zu\n",
              text("problems (of %zu) with the fastest first", before.problems).c_str(),
              before.fastest_chosen, after.fastest_chosen) +
         percent("first choice over the fastest, mean", before.mean_loss, after.mean_loss) +
         percent("  worst", before.worst_loss, after.worst_loss);
}

std::string problem_lines(const std::vector<Measured> &measured, const mp::ClassTuning &tuning) {
  std::string lines = text("\n%-22s %-30s %9s %9s  %-30s %9s %7s\n", "problem",
                           "first by the fitted table", "predicted", "us", "fastest", "us", "loss");
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

void write_accuracy(mptools::JsonWriter &json, const char *key, const Accuracy &accuracy) {
  json.open('{', key);
  json.number("median_error", accuracy.median_error);
  json.number("worst_tenth_error", accuracy.worst_tenth_error);
  json.number("problems", accuracy.problems);
  json.number("fastest_chosen", accuracy.fastest_chosen);
  json.number("mean_loss", accuracy.mean_loss);
  json.number("worst_loss", accuracy.worst_loss);
  json.close('}');
}

void write_problem(mptools::JsonWriter &json, const Measured &problem, const Outcome &outcome) {
  json.open('{');
  json.string("set", problem.shape.set);
  json.string("shape", problem.shape.name());
  json.string("layout", problem.shape.name().substr(0, 2));
  json.boolean("is_wgrad", problem.shape.is_wgrad);
  json.number("m", problem.shape.m);
  json.number("n", problem.shape.n);
  json.number("k", problem.shape.k);
  json.open('[', "kernels");
  for (const Run &run : problem.runs) {
    json.open('{');
    json.string("kernel", run.name);
    json.number("us", run.sample.us);
    json.number("predicted_us_before", predicted(run.sample, outcome.before));
    json.number("predicted_us", predicted(run.sample, outcome.after));
    json.close('}');
  }
  json.close(']');
  json.close('}');
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
             "# GEMM constants measured by mptune; for MP_GEMM_TUNING.\n"
             "# device   %s, %d SMs\n"
             "# driver   %s\n"
             "# date     %s\n"
             "# library  %s\n"
             "# command  %s\n",
             o.origin.name.c_str(), o.origin.device.num_sms, o.origin.driver.c_str(),
             o.origin.date.c_str(), mp_build_info(), o.options.command.c_str()) +
         tuning_text(tuning, mp::class_of(o.origin.device), kernels_of(o.measured));
}

std::string json_report(const Outcome &o) {
  mptools::JsonWriter json;
  json.open('{');
  json.string("device", o.origin.name);
  json.string("class", mp::name_of(mp::class_of(o.origin.device)));
  json.string("target", o.origin.device.target == MP_TARGET_HOST ? "host" : "cuda");
  json.number("arch", o.origin.device.arch);
  json.number("num_sms", o.origin.device.num_sms);
  json.number("smem_per_block", o.origin.device.smem_per_block);
  json.string("driver", o.origin.driver);
  json.string("date", o.origin.date);
  json.string("commit", mp_build_info());
  json.string("command", o.options.command);
  json.string("table", table_text(o));
  write_accuracy(json, "accuracy_before", accuracy_of(o.measured, o.before));
  write_accuracy(json, "accuracy", accuracy_of(o.measured, o.after));
  json.open('[', "problems");
  for (const Measured &problem : o.measured) write_problem(json, problem, o);
  json.close(']');
  json.close('}');
  return json.finish();
}

}  // namespace mptune
