// Tables for people, JSON for programs, and the verdict.
//
// The last columns of the table are computed, not observed: they apply a run's final S to the
// gradients of the FP32 run, so that the runs differ in S alone.
#include "report.h"

#include <algorithm>
#include <cmath>

#include "common.h"
#include "support/json.h"

namespace mpdemo {
namespace {

constexpr double kJudgedEpochs = 3;
constexpr double kLargestGap = 0.005;

constexpr const char *kTableNote =
    "rounded to 0: share of the nonzero weight gradients dW and activation gradients dz that\n"
    "fp16 makes 0 at the final scale S, |S g| <= 2^-25; g from one batch after the FP32 run.\n";

bool is_fp32(const RunResult &result) {
  return result.plan.dtype == MP_FP32;
}

bool is_fp16(const RunResult &result) {
  return result.plan.dtype == MP_FP16;
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
    lines += is_fp16(result)
                 ? text("%5.1f %% %5.1f %%\n", 100 * flushed_share(gradients.weights, scale),
                        100 * flushed_share(gradients.activations, scale))
                 : text("%7s %7s\n", "-", "-");
  }
  return lines;
}

std::string memory_table(const Circumstances &circumstances, const Outcome &outcome) {
  const Memory &fp32 = fp32_result(outcome).memory;
  const Memory &mixed = mixed_result(outcome).memory;
  const auto row = [](const char *title, int64_t in_fp32, int64_t in_mixed) {
    return text("  %-24s %7s %7s\n", title, kibibytes(in_fp32).c_str(),
                kibibytes(in_mixed).c_str());
  };
  std::string lines = text("Device memory%s in KiB, without the dataset\n\n",
                           circumstances.ranks > 1 ? " of each rank" : "");
  lines += text("  %-24s %7s %7s\n", "", "FP32", "mixed");
  for (const MemoryKind &kind : kMemoryKinds)
    lines += row(kind.title, fp32.*kind.bytes, mixed.*kind.bytes);
  lines += row("together", fp32.together(), mixed.together());
  return lines + text("  %-24s %7s %7.2f\n", "as a share of FP32's", "",
                      static_cast<double>(mixed.together()) / static_cast<double>(fp32.together()));
}

Json json_of(const RunResult &result, const Gradients &gradients) {
  Json json{{"name", result.plan.name},
            {"test_accuracy", result.test_accuracy},
            {"train_loss", result.train_loss},
            {"seconds", result.seconds},
            {"final_scale", result.scaler ? Json(final_scale(result)) : Json()},
            {"skipped", result.scaler ? Json(result.scaler->skipped) : Json()}};
  if (is_fp16(result)) {
    const double scale = final_scale(result);
    json["flushed_weight_gradients"] = flushed_share(gradients.weights, scale);
    json["flushed_activation_gradients"] = flushed_share(gradients.activations, scale);
  }
  for (const MemoryKind &kind : kMemoryKinds) json[kind.id] = result.memory.*kind.bytes;
  json["together_bytes"] = result.memory.together();
  return json;
}

Json json_of(const Outcome &outcome) {
  Json runs = Json::array();
  for (const RunResult &result : outcome.results)
    runs.push_back(json_of(result, fp32_gradients(outcome)));
  return {{"id", outcome.setting.id},
          {"title", outcome.setting.title},
          {"epochs", outcome.setting.epochs},
          {"loss_weight", outcome.setting.loss_weight},
          {"runs", runs}};
}

Json json_of(const Experiment &experiment) {
  const Verdict &verdict = experiment.verdict;
  Json settings = Json::array();
  for (const Outcome &outcome : experiment.outcomes) settings.push_back(json_of(outcome));
  return {{"id", experiment.architecture.id},
          {"title", experiment.architecture.title},
          {"settings", settings},
          {"passed", verdict.is_judged ? Json(verdict.passed) : Json()},
          {"verdict", verdict.sentence}};
}

}  // namespace

bool has_fp16(const Outcome &outcome) {
  return std::any_of(outcome.results.begin(), outcome.results.end(), is_fp16);
}

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
  int judged = 0;
  for (const RunResult &result : standard.results) {
    if (!result.plan.is_judged) continue;
    ++judged;
    if (result.test_accuracy >= architecture.least_accuracy &&
        std::abs(result.test_accuracy - fp32) <= kLargestGap)
      continue;
    return {true, false,
            text("FAIL: %s has %.2f %%; it needs %.0f %% and FP32's %.2f %% to half a point",
                 result.plan.name.c_str(), 100 * result.test_accuracy,
                 100 * architecture.least_accuracy, 100 * fp32)};
  }
  return {true, true,
          text("PASS: mixed precision%s reaches %.0f %% and stays within half a point of FP32",
               judged > 1 ? " with either scaler" : "", 100 * architecture.least_accuracy)};
}

std::string text_report(const Circumstances &circumstances, const Experiment &experiment) {
  std::string report = "\n" + heading(circumstances, experiment.architecture) + "\n";
  for (const Outcome &outcome : experiment.outcomes) report += table(outcome) + "\n";
  if (has_fp16(experiment.outcomes.front())) report += std::string(kTableNote) + "\n";
  report += memory_table(circumstances, experiment.outcomes.front()) + "\n";
  return report + experiment.verdict.sentence + "\n";
}

std::string json_report(const Circumstances &circumstances,
                        const std::vector<Experiment> &experiments) {
  Json networks = Json::array();
  for (const Experiment &experiment : experiments) networks.push_back(json_of(experiment));
  return mptools::json_text({{"build", mp_build_info()},
                             {"target", target_name(circumstances.device.target)},
                             {"device", circumstances.device.name},
                             {"seed", circumstances.seed},
                             {"ranks", circumstances.ranks},
                             {"networks", networks}});
}

}  // namespace mpdemo
