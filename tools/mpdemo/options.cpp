// Flags come in any order, each followed by its value; the last of a kind wins.
#include "options.h"

#include <charconv>
#include <string>
#include <string_view>

namespace mpdemo {

using mptools::parse_device;
using mptools::parse_integer;

namespace {

Net parse_net(std::string_view text) {
  if (text == "all") return Net::all;
  if (text == "mlp") return Net::mlp;
  if (text == "cnn") return Net::cnn;
  throw UsageError("--net is all, mlp or cnn, not \"" + std::string(text) + "\".");
}

double parse_epochs(std::string_view text) {
  double epochs = 0;
  const char *const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, epochs);
  if (error != std::errc() || stop != end || !(epochs > 0) || epochs > 1e6)
    throw UsageError("--epochs needs a number above 0, not \"" + std::string(text) + "\".");
  return epochs;
}

/// Of 128 rows and, in the last batch, of 96, every rank gets as many.
int parse_ranks(std::string_view text) {
  const int ranks = parse_integer<int>("--ranks", text, 1);
  if (ranks > 32 || (ranks & (ranks - 1)) != 0)
    throw UsageError("--ranks is 1, 2, 4, 8, 16 or 32, not " + std::string(text) + ".");
  return ranks;
}

}  // namespace

Options parse_options(int argc, const char *const *argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const auto value = [&]() -> std::string_view {
      if (i + 1 == argc) throw UsageError(std::string(flag) + " needs a value.");
      return argv[++i];
    };
    if (flag == "--help")
      options.help = true;
    else if (flag == "--json")
      options.json = true;
    else if (flag == "--device")
      options.device = parse_device(value());
    else if (flag == "--net")
      options.net = parse_net(value());
    else if (flag == "--full")
      options.full = true;
    else if (flag == "--epochs")
      options.epochs = parse_epochs(value());
    else if (flag == "--ranks")
      options.ranks = parse_ranks(value());
    else if (flag == "--seed")
      options.seed = parse_integer<uint64_t>(flag, value(), 0);
    else if (flag == "--data")
      options.data = value();
    else if (flag == "--out")
      options.out = value();
    else
      throw UsageError("unknown flag \"" + std::string(flag) + "\"; mpdemo --help lists them.");
  }
  return options;
}

const char *usage() {
  return "mpdemo trains a perceptron and a convolutional network on Fashion-MNIST, in FP32 and in\n"
         "mixed precision, and compares.\n"
         "\n"
         "  --device WHERE  auto, host, cuda or cuda:N              (auto)\n"
         "  --net NET       mlp, cnn or all                         (all)\n"
         "  --full          train the cnn for N epochs, not for a quarter of one\n"
         "  --epochs N      of ordinary training, e.g. 0.1; acceptance needs 3  (3)\n"
         "  --ranks N       data-parallel training on N = 1, 2, 4 ... 32 threads that share every\n"
         "                  batch; on CUDA each has a device and NCCL is needed  (1)\n"
         "  --seed N        of weights and batch order              (1)\n"
         "  --data DIR      the four idx .gz files  (/usr/share/datasets/fashion-mnist)\n"
         "  --out DIR       pictures, their data, report.json       (build/demo)\n"
         "  --json          print report.json instead of tables\n"
         "  --help          this text\n"
         "\n"
         "Exit code: 0 accepted or not judged, 1 rejected or could not run, 2 wrong flags.\n";
}

}  // namespace mpdemo
