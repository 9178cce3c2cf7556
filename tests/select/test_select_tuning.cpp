// The text of a tuning table: syntax, errors and effects.
#include <cstring>

#include "select_cases.h"

using namespace mptest;

namespace {

/// Returns the reason why the text is not a table, or an empty string.
std::string why_no_table(const std::string &text) {
  std::string why;
  return mp::parse_gemm_tuning(text, &why) == nullptr ? why : "";
}

const mp::KernelTuning &constants(const mp::GemmTuning &tuning, mp::DeviceClass device_class,
                                  const char *kernel) {
  return tuning.of(device_class).of(kernel_named(kernel));
}

}  // namespace

TEST_CASE("tuning: lines set constants of classes and kernels") {
  const mp::GemmTuning tuning = tuning_with(
      "# a comment\n"
      "\n"
      "sm_80 launch_us=7 dram_us_per_mb=0.5 # another\n"
      "  sm_80\tl2_us_per_mb=1e-2 partial_us_per_mb=3 scalar_load_us=2.5\r\n"
      "sm_80 wmma_64x64x32_s4 1.25 0\n"
      "host simt_64x64x16 10 20 c2=0.5 start_us=3");
  const mp::ClassTuning &a100_class = tuning.of(mp::DeviceClass::sm_80);
  CHECK(a100_class.launch_us == 7);
  CHECK(a100_class.dram_us_per_mb == 0.5);
  CHECK(a100_class.l2_us_per_mb == 0.01);
  CHECK(a100_class.partial_us_per_mb == 3);
  CHECK(a100_class.scalar_load_us == 2.5);
  CHECK(constants(tuning, mp::DeviceClass::sm_80, "wmma_64x64x32_s4").tile_us == 1.25);
  CHECK(constants(tuning, mp::DeviceClass::sm_80, "wmma_64x64x32_s4").k_us == 0);
  CHECK(constants(tuning, mp::DeviceClass::sm_80, "wmma_64x64x32_s4").c2 == 1);
  CHECK(constants(tuning, mp::DeviceClass::host, "simt_64x64x16").c2 == 0.5);
  CHECK(constants(tuning, mp::DeviceClass::host, "simt_64x64x16").start_us == 3);
  CHECK(constants(tuning, mp::DeviceClass::sm_80, "wmma_64x64x32_s4").start_us == 0);
}

TEST_CASE("tuning: omitted constants keep built-in values, later lines override earlier ones") {
  const mp::GemmTuning &builtin = mp::builtin_gemm_tuning();
  const mp::GemmTuning tuning = tuning_with("sm_90 launch_us=1\nsm_90 launch_us=2\n");
  CHECK(tuning.of(mp::DeviceClass::sm_90).launch_us == 2);
  CHECK(tuning.of(mp::DeviceClass::sm_90).dram_us_per_mb ==
        builtin.of(mp::DeviceClass::sm_90).dram_us_per_mb);
  CHECK(tuning.of(mp::DeviceClass::sm_80).launch_us ==
        builtin.of(mp::DeviceClass::sm_80).launch_us);
  for (const mp::GemmKernel &kernel : mp::gemm_kernels())
    CHECK(tuning.of(mp::DeviceClass::sm_90).of(kernel).k_us ==
          builtin.of(mp::DeviceClass::sm_90).of(kernel).k_us);
  CHECK(why_no_table("") == "");
  CHECK(why_no_table("# nothing\n\n\n") == "");
}

TEST_CASE("tuning: constants are estimates unless a table declares them measured") {
  const mp::GemmTuning &builtin = mp::builtin_gemm_tuning();
  for (const mp::Device &device : {kT4, kA100, kL40s, kB200, kRtx5090})
    CHECK(is_estimated(builtin, device));
  for (const mp::Device &device : {kH200, kHost}) CHECK(!is_estimated(builtin, device));
  // mptune writes that declaration; other lines do not imply it.
  const mp::GemmTuning measured = tuning_with("sm_80 launch_us=1 estimated=0\nsm_75 launch_us=1\n");
  CHECK(!is_estimated(measured, kA100));
  CHECK(is_estimated(measured, kT4));
  const std::string written = tuning_text(measured, mp::DeviceClass::sm_80, {});
  CHECK(!is_estimated(tuning_with(written), kA100));
  CHECK(is_estimated(tuning_with(tuning_text(builtin, mp::DeviceClass::sm_80, {})), kA100));
}

TEST_CASE("tuning: constants measured on one architecture are estimates on others of its class") {
  const mp::GemmTuning &builtin = mp::builtin_gemm_tuning();
  for (const auto &[arch, other] :
       {std::pair{86, 89}, {100, 103}, {103, 110}, {120, 121}, {121, 120}}) {
    const mp::Device device = cuda_device(arch, 100, 99 << 10),
                     sibling = cuda_device(other, 100, 99 << 10);
    CAPTURE(arch);
    CHECK(is_estimated(builtin, device));
    mp::GemmTuning measured = builtin;  // as mptune writes it
    measured.of(class_of(device)).estimated = 0;
    measured.of(class_of(device)).measured_arch = arch;
    const mp::GemmTuning written = tuning_with(tuning_text(measured, class_of(device), {}));
    CHECK(!is_estimated(written, device));
    CHECK(is_estimated(written, sibling));
    CHECK(!is_estimated(written, kH200));
  }
  CHECK(!is_estimated(tuning_with(tuning_text(builtin, mp::DeviceClass::sm_90, {})), kH200));
}

TEST_CASE("tuning: an error names its line and word") {
  struct Case {
    const char *text, *why;
  };
  const Case cases[] = {
      {"sm_70 launch_us=1",
       "line 1: class \"sm_70\" must be sm_75, sm_80, sm_89, sm_90, sm_100, sm_120 or host"},
      {"\n# two\nsm_90", "line 3: a class requires a kernel or KEY=NUMBER"},
      {"sm_90 wmma_1x1 1 2", "line 1: unknown kernel \"wmma_1x1\""},
      {"sm_90 wmma_64x64x32_s4_k2 1 2", "line 1: unknown kernel \"wmma_64x64x32_s4_k2\""},
      {"sm_90 wmma_64x64x32_s4 1", "line 1: a kernel requires TILE_US and K_US"},
      {"sm_90 wmma_64x64x32_s4 1 x", "line 1: \"x\" must be a number from 0 to 1e9"},
      {"sm_90 wmma_64x64x32_s4 1 2 3", "line 1: \"3\" must be KEY=NUMBER"},
      {"sm_90 wmma_64x64x32_s4 1 2 c4=1", "line 1: unknown key \"c4\" of a kernel"},
      {"sm_90 launch_us=1\nsm_90 speed=9\n", "line 2: unknown key \"speed\" of a class"},
      {"sm_90 launch_us=1 2", "line 1: \"2\" must be KEY=NUMBER"},
      {"sm_90 launch_us=", "line 1: \"\" must be a number from 0 to 1e9"},
      {"sm_90 launch_us=-1", "line 1: \"-1\" must be a number from 0 to 1e9"},
      {"sm_90 launch_us=nan", "line 1: \"nan\" must be a number from 0 to 1e9"},
      {"sm_90 launch_us=inf", "line 1: \"inf\" must be a number from 0 to 1e9"},
      {"sm_90 launch_us=1e10", "line 1: \"1e10\" must be a number from 0 to 1e9"},
      {"sm_90 launch_us=1,5", "line 1: \"1,5\" must be a number from 0 to 1e9"},
      {"fastest 0123456789abcdef", "line 1: fastest requires CALL and KERNEL"},
      {"fastest 0123456789abcdef a b", "line 1: fastest requires CALL and KERNEL"},
      {"fastest 123 a", "line 1: call \"123\" must have 16 hexadecimal digits"},
      {"fastest 0123456789abcdeg a",
       "line 1: call \"0123456789abcdeg\" must have 16 hexadecimal digits"},
      {"fastest 0123456789abcdef0 a",
       "line 1: call \"0123456789abcdef0\" must have 16 hexadecimal digits"},
  };
  for (const Case &c : cases) {
    CAPTURE(c.text);
    CHECK(why_no_table(c.text) == c.why);
  }
}

TEST_CASE("tuning: writing and reading a table preserves all bits") {
  Random random(2);
  mp::GemmTuning tuning{};
  std::vector<const mp::GemmKernel *> kernels;
  mp::ClassTuning &host = tuning.of(mp::DeviceClass::host);
  for (double *value : {&host.launch_us, &host.dram_us_per_mb, &host.l2_us_per_mb,
                        &host.partial_us_per_mb, &host.scalar_load_us})
    *value = random.real(0, 100);
  for (const mp::GemmKernel &kernel : mp::gemm_kernels()) {
    host.of(kernel) = {.tile_us = random.real(0, 10),
                       .k_us = random.real(0, 1e6),
                       .start_us = random.real(0, 10),
                       .c2 = random.real(0.5, 1.5)};
    kernels.push_back(&kernel);
  }
  const mp::GemmTuning back = tuning_with(tuning_text(tuning, mp::DeviceClass::host, kernels));
  CHECK(std::memcmp(&back.of(mp::DeviceClass::host), &host, sizeof host) == 0);
}

TEST_CASE("tuning: a table changes only the ranking of its class") {
  const mp::GemmProblem p = problem(256, 256, 256);
  const std::string usual = ranking(p, kA100).front().name;
  REQUIRE(usual != "simt_64x64x16");
  const mp::GemmTuning tuning = tuning_with("sm_80 simt_64x64x16 0 0\n");
  CHECK(std::string(ranking(p, kA100, kAligned, tuning).front().name) == "simt_64x64x16");
  CHECK(std::string(ranking(p, kT4, kAligned, tuning).front().name) ==
        ranking(p, kT4).front().name);
}
