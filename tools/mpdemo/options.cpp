// Command line, and the runs that it selects.
//
// Every setting runs the same network in FP32 and in mixed precision: in fp16 with each scaler and
// without one; in bf16, which has the exponents of fp32, without one; or with the user's scaler.
// Settings differ in the weight of the loss.
#include "options.h"

#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>

#include "support/command_line.h"
#include "training.h"

namespace mpdemo {

using mptools::UsageError;

namespace {

constexpr const char *kDescription =
    "mpdemo trains a perceptron, a convolutional network or an LSTM on Fashion-MNIST, or a\n"
    "character model or a GPT on a text, in FP32 and in mixed precision, and compares the results.";

constexpr const char *kNotes = "Exit code: 0 passed or not judged, 1 failed, 2 wrong arguments.";

/// The networks of `make demo`, or all 16-bit types.
constexpr const char *kAll = "all";

mp_scaler_config_t parse_loss_scale(const std::string &word) {
  mp_scaler_config_t config;
  if (mp_scaler_config_from_name(word.c_str(), &config, sizeof config) != MP_SUCCESS)
    throw UsageError(std::string("--loss-scale: ") + mp_last_error());
  return config;
}

double parse_epochs(const std::string &text) {
  double epochs = 0;
  const char *const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, epochs);
  if (error != std::errc() || stop != end || !(epochs > 0) || epochs > 1e6)
    throw UsageError("--epochs = " + text + ": must be a number greater than 0");
  return epochs;
}

/// Checks that `ranks` divides the 128 images of a batch and the 96 of the last batch.
void check_ranks(const Options &options) {
  const int ranks = options.ranks;
  if (ranks > 1 && options.selected().front().reads_text())
    throw UsageError("--net " + options.net +
                     " requires --ranks 1: batches of text cannot be divided");
  if (ranks > 32 || (ranks & (ranks - 1)) != 0)
    throw UsageError("--ranks must be 1, 2, 4, 8, 16 or 32, not " + std::to_string(ranks));
}

/// Epochs without --full that show the effect of a small task weight.
constexpr double kGlance = 0.5;

std::vector<RunPlan> make_runs(float loss_weight, const std::vector<mp_dtype_t> &dtypes,
                               const MixedPrecision &mixed) {
  // Gradients depend on S * loss_weight, so the limit of S changes inversely with the weight.  The
  // initial S does not change: the policy adapts it.
  const auto weighted = [loss_weight](mp_scaler_config_t config) {
    config.max_scale = std::min(config.max_scale / loss_weight, FLT_MAX);
    return config;
  };
  const auto scaler = [&](mp_scaler_policy_t policy) {
    return weighted(mp_scaler_config_default(policy));
  };
  std::vector<RunPlan> all = {{"FP32", MP_FP32, std::nullopt, false}};
  for (const mp_dtype_t dtype : dtypes) {
    const bool is_wide = mp::has_fp32_range(dtype);
    const std::string type = is_wide ? mp_dtype_name(dtype) + std::string(", ") : "mixed, ";
    if (mixed.scaler) {
      all.push_back({type + mixed.loss_scale, dtype, weighted(*mixed.scaler), true});
    } else if (is_wide) {
      all.push_back({type + "no scaler", dtype, std::nullopt, true});
    } else {
      all.push_back({type + "backoff", dtype, scaler(MP_SCALER_POLICY_BACKOFF), true});
      all.push_back({type + "lognormal", dtype, scaler(MP_SCALER_POLICY_LOGNORMAL), true});
      all.push_back({type + "S = 1", dtype, scaler(MP_SCALER_POLICY_STATIC), false});
    }
  }
  return all;
}

}  // namespace

std::vector<Architecture> Options::selected() const {
  std::vector<Architecture> found;
  for (const Architecture &each : architectures(full))
    if (net == each.id || (net == kAll && (each.id == "mlp" || each.id == "cnn")))
      found.push_back(each);
  return found;
}

std::vector<Setting> make_settings(const Architecture &architecture, const Options &options,
                                   int64_t batches) {
  const MixedPrecision &mixed = options.mixed;
  const auto setting = [&](const char *id, const std::string &title, double epochs,
                           float loss_weight) -> Setting {
    return {
        .id = id,
        .title = title,
        .length = epochs > 0 ? text("%g epoch%s", epochs, epochs == 1 ? "" : "s")
                             : std::to_string(architecture.num_steps) + " steps",
        .num_steps = epochs > 0 ? std::max(1LL, std::llround(epochs * static_cast<double>(batches)))
                                : architecture.num_steps,
        .loss_weight = loss_weight,
        .runs = make_runs(loss_weight,
                          mixed.dtypes.empty() ? architecture.mixed_types : mixed.dtypes, mixed)};
  };
  const double epochs = options.epochs.value_or(architecture.epochs);
  std::vector<Setting> settings = {setting("standard", "Ordinary training", epochs, 1.0f)};
  if (!architecture.has_small_weight) return settings;
  const Recipe &recipe = architecture.recipe;
  const char *const made_up = recipe.kind == MP_OPT_SGD  ? "learning rate x 65536"
                              : recipe.max_grad_norm > 0 ? "epsilon and clipping / 65536"
                                                         : "epsilon / 65536";
  // The largest dlogits is weight / 128 = 2^-23 with 128 images, twice the smallest fp16 number;
  // with 16 or more verses it is smaller than that number.
  settings.push_back(setting("small_weight",
                             std::string("Small task weight: loss / 65536, ") + made_up,
                             options.full ? epochs : std::min(epochs, kGlance), 0x1p-16f));
  return settings;
}

Options parse_options(int argc, const char *const *argv) {
  Options options;
  mptools::Words<std::string> nets;
  for (const Architecture &each : architectures(false)) nets.emplace_back(each.id, each.id);
  nets.emplace_back(kAll, kAll);
  mptools::Words<std::vector<mp_dtype_t>> types;
  for (const mp_dtype_t type : mp::kHalfTypes) types.push_back({mp_dtype_name(type), {type}});
  types.push_back({kAll, {mp::kHalfTypes.begin(), mp::kHalfTypes.end()}});
  mptools::CommandLine line("mpdemo", kDescription, kNotes);
  mptools::add_device(line, options.device);
  mptools::add_choice(line, "--net", options.net, nets,
                      "mlp, cnn, rows (an LSTM over the rows of the image), charlm (an LSTM over\n"
                      "the characters of the King James Bible), gpt (a transformer over them), or\n"
                      "all: mlp and cnn")
      ->type_name("NET")
      ->default_str(kAll);
  mptools::add_choice(line, "--dtype", options.mixed.dtypes, types,
                      "16-bit type of the mixed runs: " MP_HALF_TYPE_NAMES
                      ", or all (default of gpt);\nbf16 uses no loss scaler")
      ->type_name("TYPE")
      ->default_str("fp16");
  line.add_option_function<std::string>(
          "--loss-scale",
          [&](const std::string &word) {
            options.mixed.scaler = parse_loss_scale(word);
            options.mixed.loss_scale = word;
          },
          "a single mixed run with this loss scaler: Backoff, LogMax, lognormal, dynamic,\n"
          "none or a number, as accepted by mp_scaler_config_from_name")
      ->type_name("NAME");
  line.add_flag("--full", options.full,
                "train cnn, rows, charlm, gpt and the runs with a small task weight in full\n"
                "instead of just long enough to show learning");
  line.add_option_function<std::string>(
          "--epochs", [&](const std::string &value) { options.epochs = parse_epochs(value); },
          "number of epochs of ordinary training, e.g. 0.1; the verdict requires the default")
      ->type_name("N")
      ->default_str("3, charlm 0.15, gpt 1000 steps");
  mptools::add_integer(line, "--ranks", options.ranks, 1,
                       "data-parallel training on N = 1, 2, 4 ... 32 threads, which divide every\n"
                       "batch; on CUDA each thread needs its own device and NCCL")
      ->default_str("1");
  mptools::add_integer(line, "--seed", options.seed, uint64_t{0}, "seed of weights and batch order")
      ->default_str("1");
  line.add_option("--data", options.data, "folder of the four idx .gz files")
      ->type_name("DIR")
      ->default_str(options.data);
  line.add_option(
          "--text", options.text,
          "text for charlm and gpt, one sequence per line; default: the King James Bible, as\n"
          "printed by the command `bible` of the Debian package bible-kjv")
      ->type_name("FILE");
  line.add_option("--out", options.out,
                  "write plots, their data and report.json to this folder; default: no files")
      ->type_name("DIR");
  line.add_flag("--json", options.json, "print report.json instead of tables");
  line.parse(argc, argv);
  check_ranks(options);
  return options;
}

}  // namespace mpdemo
