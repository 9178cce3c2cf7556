// The subcommand comes first, then flags in any order; the last of a kind wins.
#include "options.h"

#include <string_view>

#include "bench/shapes/sets.h"
#include "bench/shapes/shape_file.h"

namespace mpbench {

using mptools::parse_device;
using mptools::parse_integer;

namespace {

mp_dtype_t parse_dtype(std::string_view flag, std::string_view value) {
  if (value == "fp16") return MP_FP16;
  if (value == "bf16") return MP_BF16;
  if (value == "fp32") return MP_FP32;
  throw UsageError(std::string(flag) + " is fp16, bf16 or fp32, not \"" + std::string(value) +
                   "\".");
}

constexpr std::string_view kSuites[] = {"gemm",  "rnn",     "conv",      "step",
                                        "calls", "startup", "allreduce", "all"};

std::string parse_suite(std::string_view word) {
  std::string names;
  for (const std::string_view name : kSuites) {
    if (word == name) return std::string(word);
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw UsageError("unknown subcommand \"" + std::string(word) + "\"; there are " + names + ".");
}

std::string parse_set(std::string_view value) {
  if (value == "all" || find_set(value) != nullptr) return std::string(value);
  std::string names;
  for (const ShapeSet &set : kShapeSets) names += set.name + std::string(", ");
  throw UsageError("--set is one of " + names + "all, not \"" + std::string(value) + "\".");
}

/// Names between commas.
Peers parse_peers(std::string_view value) {
  Peers peers{.cublaslt = false, .cudnn = false, .torch = false};
  for (const std::string_view name : split_line(value, value.size())) {
    if (name == "all")
      peers = {};
    else if (name == "cublaslt")
      peers.cublaslt = true;
    else if (name == "cudnn")
      peers.cudnn = true;
    else if (name == "torch")
      peers.torch = true;
    else if (name != "none" || value != "none")
      throw UsageError(
          "--peer is none, all, or some of cublaslt, cudnn, torch between commas, not \"" +
          std::string(value) + "\".");
  }
  return peers;
}

/// A set belongs to one suite: the others have nothing to do then.
void keep_suite_of_set(Options &options) {
  if (options.set == "all") return;
  const std::string suite = find_set(options.set)->suite;
  if (!options.has_suite(suite))
    throw UsageError("--set " + options.set + " is one of " + suite + ", not of " + options.suite +
                     ".");
  options.suite = suite;
}

void check_types(const Options &options) {
  const bool keeps_type = options.out_dtype == MP_DTYPE_NONE || options.out_dtype == options.dtype;
  if (keeps_type || options.dtype == MP_FP32 || options.out_dtype == MP_FP32) return;
  throw UsageError("--out-dtype is that of --dtype, or fp32.");
}

}  // namespace

Options parse_options(int argc, const char *const *argv) {
  Options options;
  for (int i = 0; i < argc; ++i) options.command += (i > 0 ? " " : "") + std::string(argv[i]);

  int i = 1;
  if (argc > 1 && argv[1][0] != '-') options.suite = parse_suite(argv[i++]);
  for (; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const auto value = [&]() -> std::string_view {
      if (i + 1 == argc) throw UsageError(std::string(flag) + " needs a value.");
      return argv[++i];
    };
    if (flag == "--help")
      options.help = true;
    else if (flag == "--rank")
      options.rank = true;
    else if (flag == "--once")
      options.once = value();
    else if (flag == "--device")
      options.device = parse_device(value());
    else if (flag == "--set")
      options.set = parse_set(value());
    else if (flag == "--filter")
      options.filter = value();
    else if (flag == "--quick")
      options.quick = true;
    else if (flag == "--peer")
      options.peers = parse_peers(value());
    else if (flag == "--limit")
      options.limit = parse_integer<int64_t>(flag, value(), 1);
    else if (flag == "--dtype")
      options.dtype = parse_dtype(flag, value());
    else if (flag == "--out-dtype")
      options.out_dtype = parse_dtype(flag, value());
    else if (flag == "--json")
      options.json = value();
    else if (flag == "--home")
      options.home = value();
    else
      throw UsageError("unknown flag \"" + std::string(flag) + "\"; mpbench --help lists them.");
  }
  check_types(options);
  keep_suite_of_set(options);
  return options;
}

const char *usage() {
  return "mpbench [SUITE] [flags] times mpcore against peers and against the machine.\n"
         "\n"
         "  gemm       matrix products of real networks, beside cuBLASLt where it is installed\n"
         "  rnn        the products of recurrent layers, without their cells, beside the same\n"
         "  conv       forward, data and weight gradient of convolutions, beside cuDNN in the "
         "same\n"
         "             precision and in FP32\n"
         "  step       the optimizer step and its parts, beside a device-to-device copy\n"
         "  calls      what each call of a training step costs the host\n"
         "  startup    what a program waits for between dlopen and the first result\n"
         "  allreduce  gradients of several devices, averaged by NCCL\n"
         "  all        all of them (default)\n"
         "\n"
         "  --device WHERE    auto, host, cuda or cuda:N                  (auto)\n"
         "  --quick           two shapes of each set, operand order and pass, spread over them,\n"
         "                    timed briefly: a minute\n"
         "  --filter TEXT     what has TEXT in its name, e.g. \"NT\", \"wgrad\", \"3x3\", "
         "\"adamw\"\n"
         "  --limit N         the first N of each suite\n"
         "  --peer NAMES      cublaslt, cudnn, torch between commas, none, or all  (all)\n"
         "  --json FILE       write the results there too; - is stdout, then the table is on "
         "stderr\n"
         "  --home DIR        the folder with shapes/ and peers/          (bench)\n"
         "  --help            this text\n"
         "gemm, rnn, conv and allreduce:\n"
         "  --set NAME        one set alone                               (all)\n"
         "                    gemm: llm, deepbench, deepbench_infer, deepbench_infer_device\n"
         "                    rnn: deepbench_rnn_train, deepbench_rnn_infer,\n"
         "                    deepbench_rnn_infer_device\n"
         "                    conv: resnet50, deepbench_conv, deepbench_conv_infer,\n"
         "                    deepbench_conv_infer_device\n"
         "                    allreduce: deepbench_allreduce\n"
         "  --dtype TYPE      of the inputs: fp16, bf16 or fp32           (fp16)\n"
         "  --out-dtype TYPE  of the output; without it that of the inputs, and fp32 += for the\n"
         "                    weight gradients of llm and rnn\n"
         "  --rank            time every kernel, to judge the choice\n"
         "  --once NAME       for profilers: call \"set shape\" once, measure nothing\n"
         "\n"
         "On the host target --quick takes small shapes only, and is on unless --filter or "
         "--limit\n"
         "asks for shapes: all of them would take days.\n"
         "Exit code: 0 measured, 1 could not run or a result was wrong, 2 wrong flags.\n";
}

}  // namespace mpbench
