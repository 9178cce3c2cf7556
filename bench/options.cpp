#include "options.h"

#include "bench/shapes/sets.h"
#include "bench/shapes/shape_file.h"
#include "support/command_line.h"

namespace mpbench {

using mptools::UsageError;

namespace {

constexpr const char *kDescription =
    "mpbench times mpcore against peers and against the machine.\n"
    "\n"
    "  gemm       GEMMs of real networks, beside cuBLASLt where it is installed\n"
    "  epilogue   GEMMs with bias, ReLU, GELU, their gradients, and what loss scaling asks for,\n"
    "             beside cuBLASLt's epilogues\n"
    "  batched    many GEMMs in one call, with strides, pointers and in groups, beside cuBLAS\n"
    "  rnn        recurrent layers beside cuDNN and torch, and their GEMMs alone beside cuBLASLt\n"
    "  conv       forward, data and weight gradient of convolutions, beside cuDNN in the same\n"
    "             precision and in FP32\n"
    "  layers     batch normalisation, pooling and softmax cross-entropy, beside a copy and cuDNN\n"
    "  step       the optimizer step and its parts, beside a device-to-device copy\n"
    "  calls      what each call of a training step costs the host\n"
    "  startup    what a program waits for between dlopen and the first result\n"
    "  autocast   what rewriting a graph for mixed precision costs the host, in time and memory\n"
    "  graph      a step through mp_graph_* against the same calls written by hand\n"
    "  allreduce  gradients of several devices, averaged by NCCL\n"
    "  all        all of these suites";

constexpr const char *kNotes =
    "On the host target --quick takes small shapes only, and is on unless --filter or --limit\n"
    "asks for shapes: all of them would take days.\n"
    "Exit code: 0 measured, 1 could not run or a result was wrong, 2 wrong options.";

constexpr std::string_view kSuites[] = {"gemm",   "epilogue",  "batched", "rnn",     "conv",
                                        "layers", "step",      "calls",   "startup", "autocast",
                                        "graph",  "allreduce", "all"};

void check_suite(const std::string &suite) {
  std::string names;
  for (const std::string_view name : kSuites) {
    if (suite == name) return;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw UsageError("unknown suite \"" + suite + "\"; there are " + names + ".");
}

mptools::Words<const char *> set_names() {
  mptools::Words<const char *> names;
  for (const ShapeSet &set : kShapeSets) names.emplace_back(set.name, set.name);
  names.emplace_back("all", "all");
  return names;
}

/// One line for each suite that has sets.
std::string set_list() {
  std::string lines = "one set alone";
  std::string_view suite;
  for (const ShapeSet &set : kShapeSets) {
    lines += suite == set.suite ? std::string("\n  ") : std::string("\n") + set.suite + ":\n  ";
    lines += set.name;
    suite = set.suite;
  }
  return lines;
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
  options.command = mptools::command_text(argc, argv);

  mptools::CommandLine line("mpbench", kDescription, kNotes);
  line.add_option("SUITE", options.suite, "one of the above")->type_name("")->default_str("all");
  mptools::add_device(line, options.device);
  line.add_flag("--quick", options.quick,
                "two shapes of each set, operand order and pass, spread over them,\n"
                "timed briefly: a minute");
  line.add_flag("--brief", options.brief, "every shape, each timed as briefly as with --quick");
  line.add_option("--filter", options.filter,
                  "what has TEXT in its name, e.g. \"NT\", \"wgrad\", \"3x3\", \"adamw\"");
  mptools::add_integer(line, "--limit", options.limit, int64_t{1}, "the first N of each suite");
  line.add_option_function<std::string>(
          "--peer", [&](const std::string &value) { options.peers = parse_peers(value); },
          "cublaslt, cudnn, torch between commas, none, or all")
      ->type_name("NAMES")
      ->default_str("all");
  line.add_option("--json", options.json,
                  "write the results there too; - is stdout, then the table is on stderr")
      ->type_name("FILE");
  line.add_option("--home", options.home, "the folder with shapes/ and peers/")
      ->type_name("DIR")
      ->default_str(options.home);

  const std::string of_shapes = "gemm, rnn, conv and allreduce";
  mptools::add_choice(line, "--set", options.set, set_names(), set_list())
      ->type_name("NAME")
      ->default_str(options.set)
      ->group(of_shapes);
  mptools::add_choice(line, "--dtype", options.dtype, mptools::kDtypes,
                      "of the inputs: fp16, bf16 or fp32")
      ->type_name("TYPE")
      ->default_str("fp16")
      ->group(of_shapes);
  mptools::add_choice(line, "--out-dtype", options.out_dtype, mptools::kDtypes,
                      "of the output; without it that of the inputs, and fp32 += for the weight\n"
                      "gradients of llm and rnn")
      ->type_name("TYPE")
      ->group(of_shapes);
  line.add_option("--sustained", options.sustained_s,
                  "time each contestant also alone, for so long; without it 3 s for the headline\n"
                  "shape on a GPU, 0: none")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 3600.0))
      ->group(of_shapes);
  line.add_flag("--rank", options.rank, "time every kernel, to judge the choice")->group(of_shapes);
  line.add_option("--once", options.once, "for profilers: call \"set shape\" once, measure nothing")
      ->type_name("NAME")
      ->group(of_shapes);

  line.parse(argc, argv);
  check_suite(options.suite);
  check_types(options);
  keep_suite_of_set(options);
  return options;
}

}  // namespace mpbench
