// Flags come in any order, each followed by its value; the last of a kind wins.
#include "options.h"

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
      options.epochs = parse_integer<int64_t>(flag, value(), 1);
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
         "  --epochs N      of ordinary training; acceptance needs 3  (3)\n"
         "  --seed N        of weights and batch order              (1)\n"
         "  --data DIR      the four idx .gz files  (/usr/share/datasets/fashion-mnist)\n"
         "  --out DIR       pictures, their data, report.json       (build/demo)\n"
         "  --json          print report.json instead of tables\n"
         "  --help          this text\n"
         "\n"
         "Exit code: 0 accepted or not judged, 1 rejected or could not run, 2 wrong flags.\n";
}

}  // namespace mpdemo
