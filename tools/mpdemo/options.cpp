#include "options.h"

#include <charconv>
#include <string>

#include "support/command_line.h"

namespace mpdemo {

using mptools::UsageError;

namespace {

constexpr const char *kDescription =
    "mpdemo trains a perceptron, a convolutional network or an LSTM on Fashion-MNIST, or a model "
    "of\n"
    "characters on a text, in FP32 and in mixed precision, and compares.";

constexpr const char *kNotes =
    "Exit code: 0 accepted or not judged, 1 rejected or could not run, 2 wrong options.";

const mptools::Words<Net> kNets = {{"mlp", Net::mlp},
                                   {"cnn", Net::cnn},
                                   {"rows", Net::rows},
                                   {"charlm", Net::charlm},
                                   {"all", Net::all}};

const mptools::Words<std::vector<mp_dtype_t>> kMixedTypes = {{mp_dtype_name(MP_FP16), {MP_FP16}},
                                                             {mp_dtype_name(MP_BF16), {MP_BF16}},
                                                             {"all", {MP_FP16, MP_BF16}}};

mp_scaler_config_t parse_loss_scale(const std::string &word) {
  mp_scaler_config_t config;
  if (mp_scaler_config_from_name(word.c_str(), &config, sizeof config) != MP_SUCCESS)
    throw UsageError(std::string("--loss-scale: ") + mp_last_error() + ".");
  return config;
}

double parse_epochs(const std::string &text) {
  double epochs = 0;
  const char *const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, epochs);
  if (error != std::errc() || stop != end || !(epochs > 0) || epochs > 1e6)
    throw UsageError("--epochs needs a number above 0, not \"" + text + "\".");
  return epochs;
}

/// Of 128 images and, in the last batch, of 96, every rank gets as many.
void check_ranks(int ranks, Net net) {
  if (ranks > 1 && net == Net::charlm)
    throw UsageError("--net charlm trains on one rank: a share of its verses has other lengths.");
  if (ranks > 32 || (ranks & (ranks - 1)) != 0)
    throw UsageError("--ranks is 1, 2, 4, 8, 16 or 32, not " + std::to_string(ranks) + ".");
}

}  // namespace

Options parse_options(int argc, const char *const *argv) {
  Options options;
  mptools::CommandLine line("mpdemo", kDescription, kNotes);
  mptools::add_device(line, options.device);
  mptools::add_choice(line, "--net", options.net, kNets,
                      "mlp, cnn, rows (an LSTM over the rows of the image), charlm (an LSTM over\n"
                      "the characters of the King James Bible), or all: mlp and cnn")
      ->type_name("NET")
      ->default_str("all");
  mptools::add_choice(
      line, "--dtype", options.mixed.dtypes, kMixedTypes,
      "of mixed precision, fp16, bf16 or all: both; bf16 is trained without a loss\n"
      "scaler")
      ->type_name("TYPE")
      ->default_str("fp16");
  line.add_option_function<std::string>(
          "--loss-scale",
          [&](const std::string &word) {
            options.mixed.scaler = parse_loss_scale(word);
            options.mixed.loss_scale = word;
          },
          "one mixed run, with this scaler: Backoff, LogMax, lognormal, dynamic, none or a\n"
          "number, as mp_scaler_config_from_name takes them")
      ->type_name("WORD");
  line.add_flag("--full", options.full,
                "train cnn, rows and charlm for N epochs, not for a part of one, and as long with\n"
                "a small task weight");
  line.add_option_function<std::string>(
          "--epochs", [&](const std::string &value) { options.epochs = parse_epochs(value); },
          "of ordinary training, e.g. 0.1; acceptance needs the default")
      ->type_name("N")
      ->default_str("3, charlm 0.15");
  mptools::add_integer(line, "--ranks", options.ranks, 1,
                       "data-parallel training on N = 1, 2, 4 ... 32 threads that share every\n"
                       "batch; on CUDA each has a device and NCCL is needed")
      ->default_str("1");
  mptools::add_integer(line, "--seed", options.seed, uint64_t{0}, "of weights and batch order")
      ->default_str("1");
  line.add_option("--data", options.data, "the four idx .gz files")
      ->type_name("DIR")
      ->default_str(options.data);
  line.add_option("--text", options.text,
                  "what charlm reads, a sequence a line; without it the Bible, as the command\n"
                  "`bible` of the Debian package bible-kjv prints it")
      ->type_name("FILE");
  line.add_option("--out", options.out,
                  "write pictures, their data and report.json; without it no file is written")
      ->type_name("DIR");
  line.add_flag("--json", options.json, "print report.json instead of tables");
  line.parse(argc, argv);
  check_ranks(options.ranks, options.net);
  return options;
}

}  // namespace mpdemo
