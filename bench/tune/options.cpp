#include "options.h"

#include "support/command_line.h"

namespace mptune {
namespace {

constexpr const char *kDescription =
    "mptune measures every GEMM kernel of a device and writes a tuning table, which mp_gemm uses\n"
    "to select kernels if MP_GEMM_TUNING=FILE is set.";

constexpr const char *kNotes =
    "The machine must be otherwise idle.  The report compares the predictions of the new and of\n"
    "the built-in table with the measured times.\n"
    "Exit code: 0 success, 1 failure, 2 wrong arguments.";

}  // namespace

Options parse_options(int argc, const char *const *argv) {
  Options options;
  options.command = mptools::command_text(argc, argv);

  mptools::CommandLine line("mptune", kDescription, kNotes);
  mptools::add_device(line, options.device);
  line.add_option("--set", options.set,
                  "shapes: grid (designed for tuning), llm, deepbench, or a file in the format of\n"
                  "bench/shapes/llm_gemm_shapes.csv")
      ->type_name("NAME")
      ->default_str(options.set);
  line.add_flag("--quick", options.quick, "only every third shape of the set");
  line.add_option("--minutes", options.minutes,
                  "start no shape after N minutes, then fit the measured ones; 0: no limit")
      ->type_name("N")
      ->check(CLI::Range(0.0, 1e6).description(""));
  line.add_option("--out", options.out, "file of the tuning table")
      ->type_name("FILE")
      ->default_str(options.out);
  line.add_option("--json", options.json,
                  "also write all measurements as JSON; - writes them to stdout and the report to\n"
                  "stderr")
      ->type_name("FILE");
  line.add_option("--home", options.home, "folder that contains shapes/")
      ->type_name("DIR")
      ->default_str(options.home);
  line.add_option("--from", options.from,
                  "fit an earlier file of --json, from any device, instead of measuring")
      ->type_name("FILE");
  line.add_option(
          "--predict", options.predict,
          "print the built-in predictions for the shapes of mpbench (all, or the set of\n"
          "--set) on sm_75, sm_80, sm_89, sm_90, sm_100, sm_120 or host, instead of measuring")
      ->type_name("CLASS");
  line.parse(argc, argv);
  return options;
}

}  // namespace mptune
