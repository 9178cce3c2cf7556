// mpdemo: trains one network on Fashion-MNIST in FP32 and, through the same calls, in mixed
// precision with each kind of loss scaling, and compares accuracy, memory and lost gradients.
//
// It uses mpcore.h and nothing else of the library.  network.cpp is where to see GEMMs and
// epilogues, update.cpp the optimizer and loss scaler, training.cpp the loop.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "common.h"
#include "dataset.h"
#include "options.h"
#include "plots.h"
#include "random.h"
#include "report.h"
#include "settings.h"
#include "training.h"

namespace mpdemo {
namespace {

mp_device_info_t device_info(mp_context_t context) {
  mp_device_info_t info;
  MP_INIT_STRUCT(&info);
  check(mp_context_get_info(context, &info));
  return info;
}

DeviceData upload(mp_context_t context, const Dataset &dataset, mp_dtype_t dtype) {
  return {DeviceSamples(context, dataset.train, dtype, kBatchRows),
          DeviceSamples(context, dataset.test, dtype, kBatchRows)};
}

std::vector<Outcome> run_all(mp_context_t context, const Dataset &dataset, const Options &options) {
  const DeviceData fp32 = upload(context, dataset, MP_FP32);
  const DeviceData fp16 = upload(context, dataset, MP_FP16);
  std::vector<Outcome> outcomes;
  for (const Setting &setting :
       {standard_setting(static_cast<double>(options.epochs)), small_weight_setting()}) {
    std::fprintf(stderr, "%s\n", setting.title.c_str());
    Outcome outcome = {setting, {}};
    for (const RunPlan &plan : setting.runs)
      outcome.results.push_back(
          train(context, plan.dtype == MP_FP32 ? fp32 : fp16, setting, plan, options.seed));
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

/// @return the exit code.
int run(const Options &options) {
  Dataset dataset = load_fashion_mnist(options.data);
  Random random(options.seed);
  shuffle(dataset.train, random);
  std::filesystem::create_directories(options.out);

  const Context context = make_context(options.device);
  const Circumstances circumstances = {device_info(context.get()), options.seed};
  const std::vector<Outcome> outcomes = run_all(context.get(), dataset, options);
  const Verdict verdict = judge(outcomes.front());

  const std::string json = json_report(circumstances, outcomes, verdict);
  write_file(options.out / "report.json", json);
  const std::string pictures = write_plots(options.out, outcomes);
  if (options.json)
    std::fputs(json.c_str(), stdout);
  else
    std::printf("%s%s\n", text_report(circumstances, outcomes, verdict).c_str(), pictures.c_str());
  return verdict.is_judged && !verdict.passed ? 1 : 0;
}

}  // namespace
}  // namespace mpdemo

int main(int argc, char **argv) try {
  const mpdemo::Options options = mpdemo::parse_options(argc, argv);
  if (options.help) {
    std::fputs(mpdemo::usage(), stdout);
    return 0;
  }
  return mpdemo::run(options);
} catch (const mpdemo::UsageError &error) {
  std::fprintf(stderr, "mpdemo: %s\n", error.what());
  return 2;
} catch (const std::exception &error) {
  std::fprintf(stderr, "mpdemo: %s\n", error.what());
  return 1;
}
