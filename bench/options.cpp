#include "options.h"

#include "bench/shapes/sets.h"
#include "bench/shapes/shape_file.h"
#include "support/command_line.h"

namespace mpbench {

using mptools::UsageError;

namespace {

constexpr const char *kDescription =
    "mpbench compares the speed of mpcore with reference libraries and with hardware limits.\n"
    "\n"
    "  gemm       GEMMs of real networks; reference: cuBLASLt\n"
    "  epilogue   GEMMs with bias, ReLU, GELU, their gradients, amax and overflow detection;\n"
    "             reference: epilogues of cuBLASLt\n"
    "  batched    strided, pointer-array, grouped and ragged GEMMs; reference: cuBLAS\n"
    "  rnn        recurrent layers, and separately their GEMMs; reference: cuDNN, torch, cuBLASLt\n"
    "  conv       forward, data gradient and weight gradient of convolutions; reference: cuDNN in\n"
    "             the same precision and in FP32\n"
    "  layers     batch normalization, pooling, softmax cross-entropy; reference: a copy, cuDNN\n"
    "  attention, norm, linear_xent, gated\n"
    "             layers of transformers: attention, layer and RMS normalization, the output "
    "layer\n"
    "             with its loss, gated units; reference: cuDNN, torch, Liger\n"
    "  step       the optimizer step and its parts; reference: a device-to-device copy, torch\n"
    "  calls      host time of calls of a training step\n"
    "  startup    time from dlopen to the first result\n"
    "  graph      a training step by mp_graph_*; reference: the same calls made directly\n"
    "  all        all of these suites";

constexpr const char *kNotes =
    "On the host target --quick selects small shapes only and is the default unless --filter or\n"
    "--limit is given, because all shapes would take days.\n"
    "Exit code: 0 success, 1 failure or a wrong result, 2 wrong arguments.";

constexpr std::string_view kSuites[] = {"gemm",   "epilogue",  "batched", "rnn",         "conv",
                                        "layers", "attention", "norm",    "linear_xent", "gated",
                                        "step",   "calls",     "startup", "graph",       "all"};

void check_suite(const std::string &suite) {
  std::string names;
  for (const std::string_view name : kSuites) {
    if (suite == name) return;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw UsageError("unknown suite \"" + suite + "\"; must be one of " + names);
}

/// @param of_products  only sets whose suite has_products()
mptools::Words<const char *> set_names(bool of_products = false) {
  mptools::Words<const char *> names;
  for (const ShapeSet &set : kShapeSets)
    if (!of_products || has_products(set.suite)) names.emplace_back(set.name, set.name);
  names.emplace_back("all", "all");
  return names;
}

/// Returns one line for each suite that has sets.
std::string set_list() {
  std::string lines = "measure only this set";
  std::string_view suite;
  for (const ShapeSet &set : kShapeSets) {
    lines += suite == set.suite ? std::string("\n  ") : std::string("\n") + set.suite + ":\n  ";
    lines += set.name;
    suite = set.suite;
  }
  return lines;
}

/// Parses comma-separated names.
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
          "--peer must be none, all, or a comma-separated list of cublaslt, cudnn, torch, not \"" +
          std::string(value) + "\"");
  }
  return peers;
}

/// Limits the run to the suite to which the chosen set belongs.
void keep_suite_of_set(Options &options) {
  if (options.set == "all") return;
  const std::string suite = find_set(options.set)->suite;
  if (!options.has_suite(suite))
    throw UsageError("--set " + options.set + " belongs to " + suite + ", not to " + options.suite);
  options.suite = suite;
}

/// Shortens everything that --tune does not need, unless another option requests it.
void set_defaults_of_tuning(Options &options, bool has_peers) {
  options.tunes = true;
  options.brief = true;
  if (!has_peers) options.peers = {.cublaslt = false, .cudnn = false, .torch = false};
  if (options.sustained_s < 0) options.sustained_s = 0;
}

void check_types(const Options &options) {
  const bool keeps_type = options.out_dtype == MP_DTYPE_NONE || options.out_dtype == options.dtype;
  if (keeps_type || options.dtype == MP_FP32 || options.out_dtype == MP_FP32) return;
  throw UsageError("--out-dtype must be fp32 or the type of --dtype");
}

}  // namespace

Options parse_options(int argc, const char *const *argv) {
  Options options;
  options.command = mptools::command_text(argc, argv);

  mptools::CommandLine line("mpbench", kDescription, kNotes);
  line.add_option("SUITE", options.suite, "one of these suites")->type_name("")->default_str("all");
  mptools::add_device(line, options.device);
  std::string tuned;
  CLI::Option *const tune =
      mptools::add_choice(
          line, "--tune", tuned, set_names(true),
          "measure kernels for each GEMM and convolution of a set of gemm, epilogue,\n"
          "batched or conv, or of all; append the fastest to a file for MP_GEMM_TUNING")
          ->type_name("SET");
  line.add_option("--out", options.out, "file to which --tune appends")
      ->type_name("FILE")
      ->default_str(options.out)
      ->needs(tune);
  line.add_flag("--quick", options.quick,
                "two shapes of each set, operand order and pass, timed briefly");
  line.add_flag("--brief", options.brief, "all shapes, timed as briefly as with --quick");
  line.add_option(
      "--filter", options.filter,
      "only shapes and calls with TEXT in their names, e.g. \"NT\", \"wgrad\", \"3x3\"");
  mptools::add_integer(line, "--limit", options.limit, int64_t{1},
                       "only the first N shapes of each suite");
  line.add_option_function<std::string>(
          "--peer", [&](const std::string &value) { options.peers = parse_peers(value); },
          "reference libraries: a comma-separated list of cublaslt, cudnn, torch; none; or all")
      ->type_name("NAMES")
      ->default_str("all");
  line.add_option("--json", options.json,
                  "also write the results as JSON; - writes them to stdout and the table to stderr")
      ->type_name("FILE");
  line.add_option("--home", options.home, "folder that contains shapes/ and peers/")
      ->type_name("DIR")
      ->default_str(options.home);

  const std::string of_shapes = "gemm, rnn and conv";
  mptools::add_choice(line, "--set", options.set, set_names(), set_list())
      ->type_name("NAME")
      ->default_str(options.set)
      ->excludes(tune)
      ->group(of_shapes);
  mptools::add_choice(line, "--dtype", options.dtype, mptools::kDtypes,
                      "type of the inputs: " MP_FLOAT_TYPE_NAMES)
      ->type_name("TYPE")
      ->default_str("fp16")
      ->group(of_shapes);
  mptools::add_choice(line, "--out-dtype", options.out_dtype, mptools::kDtypes,
                      "type of the output; default: that of the inputs, but weight gradients of\n"
                      "llm and rnn accumulate into fp32")
      ->type_name("TYPE")
      ->group(of_shapes);
  line.add_option("--sustained", options.sustained_s,
                  "also time each library alone for this long; 0: never; default: 3 s for the\n"
                  "headline shape on a GPU")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 3600.0).description(""))
      ->group(of_shapes);
  line.add_flag("--rank", options.rank, "time every kernel, to evaluate the selection")
      ->group(of_shapes);
  line.add_option("--once", options.once, "for profilers: call \"set shape\" once, without timing")
      ->excludes(tune)
      ->type_name("NAME")
      ->group(of_shapes);

  line.parse(argc, argv);
  check_suite(options.suite);
  check_types(options);
  if (!tuned.empty()) {
    options.set = tuned;
    set_defaults_of_tuning(options, line.count("--peer") > 0);
  }
  keep_suite_of_set(options);
  return options;
}

}  // namespace mpbench
