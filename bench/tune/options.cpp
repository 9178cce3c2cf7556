#include "options.h"

#include "support/command_line.h"

namespace mptune {
namespace {

constexpr const char *kDescription =
    "mptune measures every GEMM kernel of a device and writes the table by which mp_gemm\n"
    "chooses.  Use it with MP_GEMM_TUNING=FILE.";

constexpr const char *kNotes =
    "The machine should do nothing else meanwhile.  The report compares the predictions of the\n"
    "new table and of the built-in one with the measured times.\n"
    "Exit code: 0 written, 1 could not run, 2 wrong options.";

}  // namespace

Options parse_options(int argc, const char *const *argv) {
  Options options;
  options.command = mptools::command_text(argc, argv);

  mptools::CommandLine line("mptune", kDescription, kNotes);
  mptools::add_device(line, options.device);
  line.add_option("--set", options.set,
                  "shapes: grid (made for this), llm, deepbench, or a file as\n"
                  "bench/shapes/llm_gemm_shapes.csv")
      ->type_name("NAME")
      ->default_str(options.set);
  line.add_flag("--quick", options.quick, "every third shape of the set");
  line.add_option("--minutes", options.minutes,
                  "begin no shape after so many, and fit what there is; 0: no limit")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  line.add_option("--out", options.out, "the table")->type_name("FILE")->default_str(options.out);
  line.add_option("--json", options.json,
                  "all measurements; - is stdout, then the report is on stderr")
      ->type_name("FILE");
  line.add_option("--home", options.home, "the folder with shapes/")
      ->type_name("DIR")
      ->default_str(options.home);
  line.add_option("--from", options.from,
                  "measure nothing: fit what an earlier mptune wrote with --json, on\n"
                  "this device or another")
      ->type_name("FILE");
  line.add_option("--predict", options.predict,
                  "measure nothing: what the built-in table says of the bench's shapes\n"
                  "(all, or a set of mpbench) on sm_75, sm_80, sm_90 or host")
      ->type_name("CLASS");
  line.parse(argc, argv);
  return options;
}

}  // namespace mptune
