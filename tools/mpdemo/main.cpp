// mpdemo: trains a perceptron, a convolutional network or an LSTM on Fashion-MNIST, or a character
// model or a GPT on a text, in FP32 and, with one more call, in mixed precision with each kind of
// loss scaling, and compares accuracy, memory and lost gradients.
//
// The only header of the library that it uses is mpcore.hpp.  Files:
// - architectures.cpp: the networks, a few lines each
// - description.cpp: layers as graph nodes
// - network.cpp: the additional call
// - training.cpp: training loop, with optimizer and loss scaler
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "dataset.h"
#include "options.h"
#include "random.h"
#include "report.h"
#include "support/program.h"
#include "support/ranks.h"
#include "verses.h"

namespace mpdemo {
namespace {

/// Dataset in the memory of each rank.
struct Data {
  std::string name;
  std::vector<DeviceData> ranks;
};

/// Loads the text or the images of a network.
Data load_data(const Ranks &ranks, const Options &options, const Architecture &architecture) {
  Random random(options.seed);
  const int64_t batch = architecture.batch;
  if (architecture.reads_text()) {
    Verses verses = load_verses(options.text);
    shuffle(verses, random);
    const auto upload = [&](const std::vector<std::string> &some) {
      return (architecture.context > 1 ? make_stream : make_windows)(ranks.context(0), some, batch);
    };
    Data data = {verses.name, {}};
    data.ranks.push_back({upload(verses.train), upload(verses.test)});
    return data;
  }
  Dataset dataset = load_fashion_mnist(options.data);
  shuffle(dataset.train, random);
  Data data = {"Fashion-MNIST", {}};
  for (int rank = 0; rank < ranks.count(); ++rank) {
    const auto upload = [&](const Samples &samples) {
      return make_batches(ranks.context(rank), samples, batch / ranks.count());
    };
    const Samples train = share_of_rank(dataset.train, batch, rank, ranks.count());
    data.ranks.push_back({upload(train), upload(rank == 0 ? dataset.test : Samples())});
  }
  return data;
}

void show(const Options &options, const std::string &text) {
  if (options.json) return;
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);  // stdout may be a pipe
}

Experiment run_experiment(Ranks &ranks, const Data &data, const Architecture &architecture,
                          const Options &options) {
  // The report's order; trained in reverse order, since the first setting takes longest.
  const std::vector<Setting> settings =
      make_settings(architecture, options, data.ranks.front().train.count());
  std::vector<Outcome> outcomes;
  for (size_t i = settings.size(); i-- > 0;) {
    const Setting &setting = settings[i];
    std::fprintf(stderr, "%s: %s\n", architecture.name.c_str(), setting.title.c_str());
    Outcome outcome = {setting, {}};
    for (const RunPlan &plan : setting.runs)
      outcome.results.push_back(
          train(ranks, data.ranks, architecture, setting, plan, options.seed));
    show(options, outcome_table(*architecture.metric, outcome) + "\n");
    outcomes.insert(outcomes.begin(), std::move(outcome));
  }
  const bool has_default_length =
      options.epochs.value_or(architecture.epochs) == architecture.epochs;
  const Verdict verdict = judge(architecture, outcomes, has_default_length);
  return {architecture, std::move(outcomes), verdict};
}

/// @return the exit code.
int run(const Options &options) {
  Ranks ranks(options.device, options.ranks);
  const std::vector<Architecture> selected = options.selected();
  const Data data = load_data(ranks, options, selected.front());
  if (!options.out.empty()) std::filesystem::create_directories(options.out);
  const Circumstances circumstances = {data.name, device_info(ranks.context(0)), options.seed,
                                       ranks.count()};
  std::vector<Experiment> experiments;
  for (const Architecture &architecture : selected) {
    show(options, heading(circumstances, architecture));
    experiments.push_back(run_experiment(ranks, data, architecture, options));
    show(options, report_behind_tables(circumstances, experiments.back()) + "\n");
  }

  const std::string json = json_report(circumstances, experiments);
  if (options.json) std::fputs(json.c_str(), stdout);
  if (!options.out.empty()) {
    write_file(options.out / "report.json", json);
    show(options, write_plots(options.out, experiments) + "\n");
  }
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
