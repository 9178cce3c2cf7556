// Flags come in any order, each followed by its value; the last of a kind wins.
#include "options.h"

#include <string_view>

namespace mptune {

Options parse_options(int argc, const char *const *argv) {
  Options options;
  for (int i = 0; i < argc; ++i) options.command += (i > 0 ? " " : "") + std::string(argv[i]);
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const auto value = [&]() -> std::string_view {
      if (i + 1 == argc) throw UsageError(std::string(flag) + " needs a value.");
      return argv[++i];
    };
    if (flag == "--help")
      options.help = true;
    else if (flag == "--quick")
      options.quick = true;
    else if (flag == "--device")
      options.device = mptools::parse_device(value());
    else if (flag == "--from")
      options.from = value();
    else if (flag == "--predict")
      options.predict = value();
    else if (flag == "--set")
      options.set = value();
    else if (flag == "--out")
      options.out = value();
    else if (flag == "--json")
      options.json = value();
    else if (flag == "--home")
      options.home = value();
    else
      throw UsageError("unknown flag \"" + std::string(flag) + "\"; mptune --help lists them.");
  }
  return options;
}

const char *usage() {
  return "mptune measures every GEMM kernel of a device and writes the table by which mp_gemm\n"
         "chooses.  Use it with MP_GEMM_TUNING=FILE.\n"
         "\n"
         "  --device WHERE  auto, host, cuda or cuda:N                          (auto)\n"
         "  --set NAME      shapes: grid (made for this), llm, deepbench, or a file as\n"
         "                  bench/shapes/llm_gemm_shapes.csv                    (grid)\n"
         "  --quick         every third shape of the set\n"
         "  --out FILE      the table                               (build/tuning.txt)\n"
         "  --json FILE     all measurements; - is stdout, then the report is on stderr\n"
         "  --home DIR      the folder with shapes/                            (bench)\n"
         "  --from FILE     measure nothing: fit what an earlier mptune wrote with --json, on "
         "this\n"
         "                  device or another\n"
         "  --predict CLASS measure nothing: what the built-in table says of the bench's shapes\n"
         "                  (all, or a set of mpbench) on sm_75, sm_80, sm_90 or host\n"
         "  --help          this text\n"
         "\n"
         "The machine should do nothing else meanwhile.  The report compares the predictions of "
         "the\n"
         "new table and of the built-in one with the measured times.\n"
         "Exit code: 0 written, 1 could not run, 2 wrong flags.\n";
}

}  // namespace mptune
