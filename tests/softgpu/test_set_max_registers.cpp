// setmaxnreg: the registers of a block balance.
#include "tests/softgpu/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Eight warps, of which the first four do something else than the others.
Outcome run_registers(const std::string &first, const std::string &second) {
  const Kernel kernel(module_text("",
                                  ".reg .b32 %t;\n.reg .pred %q;\nmov.u32 %t, %tid.x;\n"
                                  "setp.lt.u32 %q, %t, 128;\n@!%q bra second;\n" +
                                      first + "ret;\nsecond:\n" + second + "ret;"));
  Shape shape;
  shape.threads = {256, 1, 1};
  return kernel(shape);
}

TEST_CASE("registers that a warp takes have been given back before", "[set_max_registers]") {
  // 1024 threads have 64 registers each.
  const std::string inc = "setmaxnreg.inc.sync.aligned.u32 ",
                    dec = "setmaxnreg.dec.sync.aligned.u32 ";
  CHECK(run_registers(inc + "88;\n", dec + "40;\n").is_clean());
  CHECK_THAT(run_registers(inc + "96;\n", dec + "40;\n").fault, ContainsSubstring("deadlock"));
  CHECK_THAT(run_registers(inc + "88;\n", "").fault, ContainsSubstring("deadlock"));
  CHECK_THAT(run_registers(inc + "40;\n", "").fault,
             ContainsSubstring("setmaxnreg.inc to 40 from 64"));
  CHECK_THAT(run_registers(dec + "72;\n", "").fault,
             ContainsSubstring("setmaxnreg.dec to 72 from 64"));
  CHECK_THROWS_AS(run_registers(dec + "44;\n", ""), ptx::Error);
}

}  // namespace
}  // namespace softgpu::test
