// Tables for readers, JSON for programs, and the verdict.
//
// The last columns of the table apply a run's final S to the gradients of the FP32 run, so that the
// runs differ only in S.
#include "report.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "support/json.h"

namespace mpdemo {
namespace {

constexpr const char *kTableNote =
    "rounded to 0: share of the nonzero weight gradients dW and activation gradients dz that\n"
    "FP16 rounds to 0 at the final scale S (|S g| <= 2^-25), from one batch after the FP32 run.\n";

/// Exponent of half the smallest fp16 number.  Up to this magnitude x rounds to 0: ties go to even.
constexpr int kLog2Flush = -25;

bool is_fp32(const RunResult &result) {
  return result.plan.dtype == MP_FP32;
}

const RunResult &fp32_result(const Outcome &outcome) {
  return *std::find_if(outcome.results.begin(), outcome.results.end(), is_fp32);
}

/// Returns any mixed run: they differ only in the scaler.
const RunResult &mixed_result(const Outcome &outcome) {
  return *std::find_if_not(outcome.results.begin(), outcome.results.end(), is_fp32);
}

const char *target_name(mp_target_t target) {
  return target == MP_TARGET_CUDA ? "cuda" : "host";
}

std::string kibibytes(int64_t bytes) {
  return text("%.0f", static_cast<double>(bytes) / 1024.0);
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
  lines += row("total", fp32.together(), mixed.together());
  return lines + text("  %-24s %7s %7.2f\n", "relative to FP32", "",
                      static_cast<double>(mixed.together()) / static_cast<double>(fp32.together()));
}

/// Reasons for the types of a mixed run's operations, forward and backward.
std::string autocast_table(const RunResult &mixed) {
  std::string lines = "Types assigned by autocast\n\n";
  size_t first = 0;
  for (size_t end = 0; (end = mixed.explanation.find('\n', first)) != std::string::npos;
       first = end + 1)
    lines += "  " + mixed.explanation.substr(first, end + 1 - first);
  return lines;
}

/// Generated texts in FP32 and mixed precision.
std::string written_text(const Outcome &outcome) {
  std::string lines = "Generated text, with equal random numbers\n";
  for (const RunResult *result : {&fp32_result(outcome), &mixed_result(outcome)})
    lines += "\n  " + result->plan.name + "\n\n" + result->text + "\n";
  return lines;
}

Json json_of(const Metric &metric, const RunResult &result, const Gradients &gradients) {
  Json json{{"name", result.plan.name},
            {metric.id, result.test},
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
  if (!result.text.empty()) json["text"] = result.text;
  if (!result.explanation_json.empty()) json["autocast"] = Json::parse(result.explanation_json);
  return json;
}

Json json_of(const Metric &metric, const Outcome &outcome) {
  Json runs = Json::array();
  for (const RunResult &result : outcome.results)
    runs.push_back(json_of(metric, result, fp32_gradients(outcome)));
  return {{"id", outcome.setting.id},
          {"title", outcome.setting.title},
          {"length", outcome.setting.length},
          {"steps", outcome.setting.num_steps},
          {"loss_weight", outcome.setting.loss_weight},
          {"runs", runs}};
}

Json json_of(const Experiment &experiment) {
  const Verdict &verdict = experiment.verdict;
  const Metric &metric = *experiment.architecture.metric;
  Json settings = Json::array();
  for (const Outcome &outcome : experiment.outcomes) settings.push_back(json_of(metric, outcome));
  return {{"id", experiment.architecture.id},
          {"title", experiment.architecture.title},
          {"metric", metric.id},
          {"largest_gap", metric.largest_gap},
          {"settings", settings},
          {"passed", verdict.is_judged ? Json(verdict.passed) : Json()},
          {"verdict", verdict.sentence}};
}

}  // namespace

double flushed_share(std::span<const float> gradients, double loss_scale) {
  const double limit = std::exp2(kLog2Flush);
  int64_t nonzero = 0;
  int64_t flushed = 0;
  for (const float g : gradients) {
    if (g == 0.0f) continue;
    ++nonzero;
    if (std::abs(static_cast<double>(g)) * loss_scale <= limit) ++flushed;
  }
  return nonzero == 0 ? 0.0 : static_cast<double>(flushed) / static_cast<double>(nonzero);
}

bool is_fp16(const RunResult &result) {
  return result.plan.dtype == MP_FP16;
}

bool has_fp16(const Outcome &outcome) {
  return std::any_of(outcome.results.begin(), outcome.results.end(), is_fp16);
}

const Gradients &fp32_gradients(const Outcome &outcome) {
  return *fp32_result(outcome).gradients;
}

double final_scale(const RunResult &result) {
  return result.scaler ? static_cast<double>(result.scaler->scale) : 1.0;
}

Verdict judge(const Architecture &architecture, const std::vector<Outcome> &outcomes,
              bool has_default_length) {
  if (!architecture.due) return {false, false, "not judged: the verdict requires --full"};
  if (!has_default_length)
    return {false, false, "not judged: the verdict requires the default number of epochs"};
  const Metric &metric = *architecture.metric;
  const Outcome &standard = outcomes.front();
  const std::string due = metric.shown(*architecture.due);
  const double fp32 = fp32_result(standard).test;
  std::set<mp_dtype_t> types;
  int judged = 0;
  for (const RunResult &result : standard.results) {
    if (!result.plan.is_judged) continue;
    ++judged;
    types.insert(result.plan.dtype);
    const double ahead = result.test - *architecture.due;
    if ((metric.more_is_better ? ahead >= 0 : ahead <= 0) &&
        std::abs(result.test - fp32) <= metric.largest_gap)
      continue;
    return {true, false,
            text("FAIL: %s reaches %s; required: %s, and within %s of FP32 (%s)",
                 result.plan.name.c_str(), metric.shown(result.test).c_str(), due.c_str(),
                 metric.gap, metric.shown(fp32).c_str())};
  }
  for (const Outcome &outcome : outcomes)
    for (const RunResult &result : outcome.results)
      if (outcome.setting.loss_weight < 1 && !is_fp32(result) && !result.plan.is_judged &&
          std::abs(result.test - fp32_result(outcome).test) <= metric.largest_gap)
        return {true, false,
                text("FAIL: with a small task weight, %s stays within %s of FP32, although it must "
                     "fail",
                     result.plan.name.c_str(), metric.gap)};
  const char *const how =
      types.size() > 1 ? " in both types" : (judged > 1 ? " with both scalers" : "");
  return {true, true,
          text("PASS: mixed precision%s reaches %s and stays within %s of FP32", how, due.c_str(),
               metric.gap)};
}

std::string heading(const Circumstances &circumstances, const Architecture &architecture) {
  const int ranks = circumstances.ranks;
  return text("\n%s, %s, batch %d%s, seed %llu, on %s (%s)\n\n", circumstances.data.c_str(),
              architecture.title.c_str(), static_cast<int>(architecture.batch),
              ranks > 1 ? text(" on %d ranks", ranks).c_str() : "",
              static_cast<unsigned long long>(circumstances.seed),
              target_name(circumstances.device.target), circumstances.device.name);
}

std::string outcome_table(const Metric &metric, const Outcome &outcome) {
  const Gradients &gradients = fp32_gradients(outcome);
  std::string lines = outcome.setting.title + ", " + outcome.setting.length + "\n\n";
  lines += "                      test    train    final           training   rounded to 0\n";
  lines += text("  run            %9s     loss    scale  skipped   seconds     dW      dz\n",
                metric.heading);
  for (const RunResult &result : outcome.results) {
    const double scale = final_scale(result);
    lines += text("  %-16s %8s %8.4f ", result.plan.name.c_str(), metric.shown(result.test).c_str(),
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

std::string report_behind_tables(const Circumstances &circumstances, const Experiment &experiment) {
  std::string report;
  if (has_fp16(experiment.outcomes.front())) report += std::string(kTableNote) + "\n";
  report += memory_table(circumstances, experiment.outcomes.front()) + "\n";
  report += autocast_table(mixed_result(experiment.outcomes.front())) + "\n";
  if (experiment.architecture.reads_text())
    report += written_text(experiment.outcomes.front()) + "\n";
  return report + experiment.verdict.sentence + "\n";
}

std::string json_report(const Circumstances &circumstances,
                        const std::vector<Experiment> &experiments) {
  Json networks = Json::array();
  for (const Experiment &experiment : experiments) networks.push_back(json_of(experiment));
  return mptools::json_text({{"build", mp_build_info()},
                             {"target", target_name(circumstances.device.target)},
                             {"device", circumstances.device.name},
                             {"data", circumstances.data},
                             {"seed", circumstances.seed},
                             {"ranks", circumstances.ranks},
                             {"networks", networks}});
}

}  // namespace mpdemo
