// Tests of bench/timing/gpu_watch.h: summaries of clocks, power and temperature; and of
// bench/peers/nvml.h with a stub of NVML (tests/stub/nvml.c).
#include "bench/timing/gpu_watch.h"

#include <dlfcn.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "tests/stub/nvml.h"
#include "tests/support/testing.h"

using namespace mptest;
using mpbench::GpuLoad;
using mpbench::GpuReading;

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// Loads the stub, so that the loader finds it by name before an installed library.
stub_nvml &load_stub() {
  const auto tests = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  void *const library = dlopen((tests / "stub/libnvidia-ml.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  auto &gpu = *static_cast<stub_nvml *>(dlsym(library, "stub_nvml"));
  gpu = {.pci_bus_id = "0000:1A:00.0",
         .sm_mhz = 1755,
         .memory_mhz = 2619,
         .max_sm_mhz = 1980,
         .milliwatts = 698500,
         .limit_milliwatts = 700000,
         .celsius = 61,
         .reasons = 0x4,
         .is_silent = 0,
         .readings = 0};
  return gpu;
}

}  // namespace

TEST_CASE("bench: readings of a GPU are summarized", "[bench]") {
  const GpuLoad load = mpbench::summarize({{1980, 2619, 300, 50, 0},
                                           {1500, 2619, 700, 60, 0x4},
                                           {1400, 2619, 690, 64, 0x80 | 0x1},
                                           {1600, 2619, 650, 63, 0x20 | 0x4}});
  CHECK(load.readings == 4);
  CHECK(load.sm_mhz == 1550);
  CHECK(load.least_sm_mhz == 1400);
  CHECK(load.power_w == 670);
  CHECK(load.temperature_c == 64);
  CHECK(load.power_capped == 0.75);
  CHECK(load.heat_capped == 0.25);
}

TEST_CASE("bench: values that a GPU does not report are ignored", "[bench]") {
  const GpuLoad some =
      mpbench::summarize({{kUnknown, 1, kUnknown, 40, 0}, {1000, 1, kUnknown, kUnknown, 0x40}});
  CHECK(some.sm_mhz == 1000);
  CHECK(some.least_sm_mhz == 1000);
  CHECK(std::isnan(some.power_w));
  CHECK(some.temperature_c == 40);
  CHECK(some.power_capped == 0);
  CHECK(some.heat_capped == 0.5);
}

TEST_CASE("bench: readings of NVML are converted from its units", "[bench]") {
  stub_nvml &gpu = load_stub();
  CHECK_THROWS_AS(mpbench::Nvml("0000:1B:00.0"), std::runtime_error);
  const mpbench::Nvml nvml("0000:1A:00.0");
  CHECK(nvml.driver_version() == "1.2.3");
  CHECK(nvml.max_sm_mhz() == 1980);
  CHECK(nvml.power_limit_w() == 700);
  GpuReading reading = nvml.read();
  CHECK(reading.sm_mhz == 1755);
  CHECK(reading.memory_mhz == 2619);
  CHECK(reading.power_w == 698.5);
  CHECK(reading.temperature_c == 61);
  CHECK(reading.reasons == mpbench::nvml::kSwPowerCap);

  gpu.is_silent = 1;
  reading = nvml.read();
  CHECK(std::isnan(reading.sm_mhz));
  CHECK(std::isnan(reading.power_w));
  CHECK(reading.reasons == 0);
}

TEST_CASE("bench: a GPU is polled until the watch is stopped", "[bench]") {
  stub_nvml &gpu = load_stub();
  const mpbench::Nvml nvml("0000:1A:00.0");
  {
    mpbench::GpuWatch brief(nvml);
    CHECK(brief.stop().readings >= 1);
  }
  gpu.readings = 0;
  mpbench::GpuWatch watch(nvml);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const GpuLoad load = watch.stop();
  CHECK(load.readings >= 2);
  CHECK(load.readings == gpu.readings);
  CHECK(load.sm_mhz == 1755);
  CHECK(load.power_capped == 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(load.readings == gpu.readings);

  const mpbench::GpuWatch never_stopped(nvml);
}
