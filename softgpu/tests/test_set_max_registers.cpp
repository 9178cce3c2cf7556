// setmaxnreg: balance of the registers of a block.
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Runs eight warps; the first four and the last four have different bodies.
Outcome run_registers(const std::string &first, const std::string &second) {
  const Kernel kernel(module_text("",
                                  ".reg .b32 %t;\n.reg .pred %q;\nmov.u32 %t, %tid.x;\n"
                                  "setp.lt.u32 %q, %t, 128;\n@!%q bra second;\n" +
                                      first + "ret;\nsecond:\n" + second + "ret;"));
  Shape shape;
  shape.threads = {256, 1, 1};
  return kernel(shape);
}

TEST_CASE("setmaxnreg.inc waits for released registers", "[set_max_registers]") {
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
