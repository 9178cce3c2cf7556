// The subcommand comes first, then flags in any order; the last of a kind wins.
#include "options.h"

#include <string_view>

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

/// Of products, or "all".
constexpr std::string_view kGemmSets[] = {"deepbench", "llm"};
constexpr std::string_view kConvSets[] = {"deepbench_conv", "resnet50"};

bool is_one_of(const std::string_view (&sets)[2], std::string_view set) {
  return set == sets[0] || set == sets[1];
}

std::string parse_set(std::string_view value) {
  if (value == "all" || is_one_of(kGemmSets, value) || is_one_of(kConvSets, value))
    return std::string(value);
  throw UsageError("--set is deepbench, llm, deepbench_conv, resnet50 or all, not \"" +
                   std::string(value) + "\".");
}

void parse_subcommand(std::string_view word, Options &options) {
  if (word != "gemm" && word != "conv" && word != "step" && word != "all")
    throw UsageError("unknown subcommand \"" + std::string(word) +
                     "\"; there are gemm, conv, step, all.");
  const bool all = word == "all";
  options.gemm = all || word == "gemm";
  options.conv = all || word == "conv";
  options.step = all || word == "step";
}

/// A set is one of GEMM or one of convolution: the other family has nothing to do then.
void drop_families_without_set(Options &options) {
  const bool asked_for_one = options.gemm != options.conv;
  if (is_one_of(kConvSets, options.set)) options.gemm = false;
  if (is_one_of(kGemmSets, options.set)) options.conv = false;
  if (asked_for_one && !options.gemm && !options.conv)
    throw UsageError("--set " + options.set + " has no shapes for this subcommand.");
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
  if (argc > 1 && argv[1][0] != '-') parse_subcommand(argv[i++], options);
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
    else if (flag == "--device")
      options.device = parse_device(value());
    else if (flag == "--set")
      options.set = parse_set(value());
    else if (flag == "--grep")
      options.grep = value();
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
  drop_families_without_set(options);
  return options;
}

const char *usage() {
  return "mpbench [gemm|conv|step|all] [flags] times mpcore against peers and against the "
         "machine.\n"
         "\n"
         "  gemm  matrix products of real networks, beside cuBLASLt where it is installed\n"
         "  conv  forward, data and weight gradient of convolutions, beside cuDNN in the same\n"
         "        precision and in FP32\n"
         "  step  the optimizer step and its parts, beside a device-to-device copy\n"
         "  all   all three (default)\n"
         "\n"
         "  --device WHERE    auto, host, cuda or cuda:N                  (auto)\n"
         "  --json FILE       write the results there too; - is stdout, then the table is on "
         "stderr\n"
         "  --home DIR        the folder with shapes/ and peers/          (bench)\n"
         "  --help            this text\n"
         "gemm and conv:\n"
         "  --set NAME        gemm: deepbench, llm; conv: deepbench_conv, resnet50; or all (all)\n"
         "  --grep TEXT       shapes whose \"set op MxNxK comment\" has TEXT in it; of conv\n"
         "                    \"set pass nN HxWxC kK RxS sSTRIDE pPAD comment\"\n"
         "  --limit N         the first N of them\n"
         "  --dtype TYPE      of the inputs: fp16, bf16 or fp32           (fp16)\n"
         "  --out-dtype TYPE  of the output; without it that of the inputs, and fp32 += for LLM\n"
         "                    weight gradients\n"
         "  --rank            time every kernel, to judge the choice\n"
         "\n"
         "The host target runs a small subset unless --grep or --limit asks for shapes.\n"
         "Exit code: 0 measured, 1 could not run or a result was wrong, 2 wrong flags.\n";
}

}  // namespace mpbench
