// Tables for people, JSON for programs, and the verdict.
//
// The last columns of the table are computed, not observed: they apply a run's final S to the
// gradients of the FP32 run, so that the runs differ in S alone.
#include "report.h"

#include <algorithm>
#include <cmath>

#include "common.h"

namespace mpdemo {
namespace {

constexpr double kJudgedEpochs = 3;
constexpr double kLargestGap = 0.005;

constexpr const char *kTableNote =
    "rounded to 0: share of the nonzero weight gradients dW and activation gradients dz that\n"
    "fp16 makes 0 at the final scale S, |S g| <= 2^-25; g from one batch after the FP32 run.\n";

bool has_dynamic_scaler(const RunPlan &plan) {
  return plan.scaler && plan.scaler->policy != MP_SCALER_STATIC;
}

bool is_fp32(const RunResult &result) {
  return result.plan.dtype == MP_FP32;
}

const RunResult &fp32_result(const Outcome &outcome) {
  return *std::find_if(outcome.results.begin(), outcome.results.end(), is_fp32);
}

/// Any of them: they differ in the scaler only.
const RunResult &mixed_result(const Outcome &outcome) {
  return *std::find_if_not(outcome.results.begin(), outcome.results.end(), is_fp32);
}

const char *target_name(mp_target_t target) {
  return target == MP_TARGET_CUDA ? "cuda" : "host";
}

std::string kibibytes(int64_t bytes) {
  return text("%.0f", static_cast<double>(bytes) / 1024.0);
}

std::string heading(const Circumstances &circumstances, const Architecture &architecture) {
  const int ranks = circumstances.ranks;
  return text("Fashion-MNIST, %s, batch %d%s, seed %llu, on %s (%s)\n", architecture.title.c_str(),
              static_cast<int>(kBatchRows), ranks > 1 ? text(" on %d ranks", ranks).c_str() : "",
              static_cast<unsigned long long>(circumstances.seed),
              target_name(circumstances.device.target), circumstances.device.name);
}

std::string table(const Outcome &outcome) {
  const Gradients &gradients = fp32_gradients(outcome);
  std::string lines = text("%s, %g epoch%s\n\n", outcome.setting.title.c_str(),
                           outcome.setting.epochs, outcome.setting.epochs == 1 ? "" : "s");
  lines += "                      test    train    final           training   rounded to 0\n";
  lines += "  run             accuracy     loss    scale  skipped   seconds     dW      dz\n";
  for (const RunResult &result : outcome.results) {
    const double scale = final_scale(result);
    lines += text("  %-16s %6.2f %% %8.4f ", result.plan.name.c_str(), 100 * result.test_accuracy,
                  result.train_loss);
    lines += result.scaler ? text("%8s %8d ", text("2^%g", std::log2(scale)).c_str(),
                                  static_cast<int>(result.scaler->skipped))
                           : text("%8s %8s ", "-", "-");
    lines += text("%9.1f ", result.seconds);
    lines += is_fp32(result)
                 ? text("%7s %7s\n", "-", "-")
                 : text("%5.1f %% %5.1f %%\n", 100 * flushed_share(gradients.weights, scale),
                        100 * flushed_share(gradients.activations, scale));
  }
  return lines;
}

std::string memory_table(const Circumstances &circumstances, const Outcome &outcome) {
  std::string lines = text("Device memory%s in KiB, without the dataset\n\n",
                           circumstances.ranks > 1 ? " of each rank" : "");
  lines += "  run              weights  activations  gradients  together  optimizer state\n";
  for (const RunResult *result : {&fp32_result(outcome), &mixed_result(outcome)}) {
    const Memory &memory = result->memory;
    lines += text("  %-16s %7s %12s %10s %9s %16s\n", is_fp32(*result) ? "FP32" : "mixed",
                  kibibytes(memory.weights).c_str(), kibibytes(memory.activations).c_str(),
                  kibibytes(memory.gradients).c_str(),
                  kibibytes(memory.weights + memory.activations + memory.gradients).c_str(),
                  kibibytes(result->optimizer_bytes).c_str());
  }
  return lines;
}

void write_run(JsonWriter &json, const RunResult &result, const Gradients &gradients) {
  json.open('{');
  json.string("name", result.plan.name);
  json.number("test_accuracy", result.test_accuracy);
  json.number("train_loss", result.train_loss);
  json.number("seconds", result.seconds);
  if (result.scaler) {
    json.number("final_scale", final_scale(result));
    json.number("skipped", result.scaler->skipped);
  } else {
    json.null("final_scale");
    json.null("skipped");
  }
  if (!is_fp32(result)) {
    json.number("flushed_weight_gradients", flushed_share(gradients.weights, final_scale(result)));
    json.number("flushed_activation_gradients",
                flushed_share(gradients.activations, final_scale(result)));
  }
  json.number("weight_bytes", result.memory.weights);
  json.number("activation_bytes", result.memory.activations);
  json.number("gradient_bytes", result.memory.gradients);
  json.number("optimizer_bytes", result.optimizer_bytes);
  json.close('}');
}

void write_experiment(JsonWriter &json, const Experiment &experiment) {
  json.open('{');
  json.string("id", experiment.architecture.id);
  json.string("title", experiment.architecture.title);
  json.open('[', "settings");
  for (const Outcome &outcome : experiment.outcomes) {
    json.open('{');
    json.string("id", outcome.setting.id);
    json.string("title", outcome.setting.title);
    json.number("epochs", outcome.setting.epochs);
    json.number("loss_weight", static_cast<double>(outcome.setting.loss_weight));
    json.open('[', "runs");
    for (const RunResult &result : outcome.results)
      write_run(json, result, fp32_gradients(outcome));
    json.close(']');
    json.close('}');
  }
  json.close(']');
  if (experiment.verdict.is_judged)
    json.boolean("passed", experiment.verdict.passed);
  else
    json.null("passed");
  json.string("verdict", experiment.verdict.sentence);
  json.close('}');
}

}  // namespace

const Gradients &fp32_gradients(const Outcome &outcome) {
  return *fp32_result(outcome).gradients;
}

double final_scale(const RunResult &result) {
  return result.scaler ? static_cast<double>(result.scaler->scale) : 1.0;
}

Verdict judge(const Architecture &architecture, const Outcome &standard) {
  if (standard.setting.epochs != kJudgedEpochs)
    return {false, false, text("not judged: acceptance is defined for %g epochs", kJudgedEpochs)};
  const double fp32 = fp32_result(standard).test_accuracy;
  for (const RunResult &result : standard.results) {
    if (!has_dynamic_scaler(result.plan)) continue;
    if (result.test_accuracy >= architecture.least_accuracy &&
        std::abs(result.test_accuracy - fp32) <= kLargestGap)
      continue;
    return {true, false,
            text("FAIL: %s has %.2f %%; it needs %.0f %% and FP32's %.2f %% to half a point",
                 result.plan.name.c_str(), 100 * result.test_accuracy,
                 100 * architecture.least_accuracy, 100 * fp32)};
  }
  return {true, true,
          text("PASS: mixed precision with either scaler reaches %.0f %% and stays within half a "
               "point of FP32",
               100 * architecture.least_accuracy)};
}

std::string text_report(const Circumstances &circumstances, const Experiment &experiment) {
  std::string report = "\n" + heading(circumstances, experiment.architecture) + "\n";
  for (const Outcome &outcome : experiment.outcomes) report += table(outcome) + "\n";
  report += std::string(kTableNote) + "\n" +
            memory_table(circumstances, experiment.outcomes.front()) + "\n";
  return report + experiment.verdict.sentence + "\n";
}

std::string json_report(const Circumstances &circumstances,
                        const std::vector<Experiment> &experiments) {
  JsonWriter json;
  json.open('{');
  json.string("build", mp_build_info());
  json.string("target", target_name(circumstances.device.target));
  json.string("device", circumstances.device.name);
  json.number("seed", circumstances.seed);
  json.number("ranks", circumstances.ranks);
  json.open('[', "networks");
  for (const Experiment &experiment : experiments) write_experiment(json, experiment);
  json.close(']');
  json.close('}');
  return json.finish();
}

}  // namespace mpdemo
