// mpdemo: trains a perceptron, a convolutional network or an LSTM on Fashion-MNIST in FP32 and, through
// the same calls, in mixed precision with each kind of loss scaling, and compares accuracy, memory and
// lost gradients.
//
// It uses mpcore.h and nothing else of the library.  linear.cpp is where to see GEMMs and epilogues,
// image_layers.cpp convolution, recurrent.cpp the LSTM, update.cpp the optimizer and loss scaler,
// training.cpp the loop.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "architectures.h"
#include "common.h"
#include "dataset.h"
#include "options.h"
#include "plots.h"
#include "random.h"
#include "report.h"
#include "settings.h"
#include "support/program.h"
#include "support/ranks.h"
#include "training.h"

namespace mpdemo {
namespace {

/// Of the slower networks, without --full: enough to see them learn.
constexpr double kSampleEpochs = 0.25;

mp_device_info_t device_info(mp_context_t context) {
  mp_device_info_t info;
  MP_INIT_STRUCT(&info);
  check(mp_context_get_info(context, &info));
  return info;
}

/// What one rank has of the dataset, in fp32 and in the type of mixed precision.
class RankData {
 public:
  RankData(const Ranks &ranks, int rank, const Dataset &dataset, mp_dtype_t mixed)
      : fp32_(upload(ranks, rank, dataset, MP_FP32)), mixed_(upload(ranks, rank, dataset, mixed)) {}

  const DeviceData &in(mp_dtype_t dtype) const { return dtype == MP_FP32 ? fp32_ : mixed_; }

 private:
  static DeviceData upload(const Ranks &ranks, int rank, const Dataset &dataset, mp_dtype_t dtype) {
    const int64_t rows = kBatchRows / ranks.count();
    const Samples train = share_of_rank(dataset.train, kBatchRows, rank, ranks.count());
    return {DeviceSamples(ranks.context(rank), train, dtype, rows),
            DeviceSamples(ranks.context(rank), rank == 0 ? dataset.test : Samples(), dtype, rows)};
  }

  DeviceData fp32_, mixed_;
};

std::vector<const DeviceData *> in_type(const std::vector<RankData> &data, mp_dtype_t dtype) {
  std::vector<const DeviceData *> of_ranks;
  for (const RankData &rank : data) of_ranks.push_back(&rank.in(dtype));
  return of_ranks;
}

Experiment run_experiment(Ranks &ranks, const std::vector<RankData> &data,
                          const Architecture &architecture, const std::vector<Setting> &settings,
                          uint64_t seed) {
  std::vector<Outcome> outcomes;
  for (const Setting &setting : settings) {
    std::fprintf(stderr, "%s: %s\n", architecture.name.c_str(), setting.title.c_str());
    Outcome outcome = {setting, {}};
    for (const RunPlan &plan : setting.runs)
      outcome.results.push_back(
          train(ranks, in_type(data, plan.dtype), architecture, setting, plan, seed));
    outcomes.push_back(std::move(outcome));
  }
  const Verdict verdict = judge(architecture, outcomes.front());
  return {architecture, std::move(outcomes), verdict};
}

/// @return the exit code.
int run(const Options &options) {
  Dataset dataset = load_fashion_mnist(options.data);
  Random random(options.seed);
  shuffle(dataset.train, random);
  std::filesystem::create_directories(options.out);

  Ranks ranks(options.device, options.ranks);
  const Circumstances circumstances = {device_info(ranks.context(0)), options.seed, ranks.count()};
  std::vector<RankData> data;
  for (int rank = 0; rank < ranks.count(); ++rank)
    data.emplace_back(ranks, rank, dataset, options.mixed.dtype);
  std::vector<Experiment> experiments;
  const auto add = [&](const Architecture &architecture, const std::vector<Setting> &settings) {
    experiments.push_back(run_experiment(ranks, data, architecture, settings, options.seed));
    if (!options.json) std::printf("%s\n", text_report(circumstances, experiments.back()).c_str());
  };
  const auto standard = [&](double epochs) { return standard_setting(epochs, options.mixed); };
  const auto small_weight = [&](double epochs) {
    return small_weight_setting(epochs, options.mixed);
  };
  const double sample = options.full ? options.epochs : std::min(kSampleEpochs, options.epochs);
  if (options.net == Net::all || options.net == Net::mlp)
    add(perceptron(), {standard(options.epochs), small_weight(options.epochs)});
  if (options.net == Net::all || options.net == Net::cnn) add(convnet(), {standard(sample)});
  if (options.net == Net::rows) add(row_lstm(), {standard(sample), small_weight(sample)});

  const std::string json = json_report(circumstances, experiments);
  write_file(options.out / "report.json", json);
  const std::string pictures = write_plots(options.out, experiments);
  if (options.json)
    std::fputs(json.c_str(), stdout);
  else
    std::printf("%s\n", pictures.c_str());
  const bool has_failed =
      std::any_of(experiments.begin(), experiments.end(),
                  [](const Experiment &e) { return e.verdict.is_judged && !e.verdict.passed; });
  return has_failed ? 1 : 0;
}

}  // namespace
}  // namespace mpdemo

int main(int argc, char **argv) {
  return mptools::run_program("mpdemo",
                              [&] { return mpdemo::run(mpdemo::parse_options(argc, argv)); });
}
