// Processes that end, or whose threads end, while the library is in use.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "gang.h"
#include "support/device.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

constexpr int64_t kSize = 64;

/// Whether a product is right.
bool multiplies(mp_context_t context) {
  const std::vector<float> ones(kSize * kSize, 1.0f);
  std::vector<float> d(kSize * kSize, 0.0f);
  const mp_gemm_desc_t desc = mp_gemm_desc_default(kSize, kSize, kSize, MP_FP32, MP_FP32);
  const mp_status_t status = mp_gemm(context, &desc, ones.data(), ones.data(), nullptr, d.data(),
                                     nullptr, nullptr, 0, mptools::kStream);
  return status == MP_SUCCESS && d == std::vector<float>(kSize * kSize, float{kSize});
}

bool fails_with_a_sentence() {
  return mp_context_create(nullptr, nullptr) == MP_ERROR_INVALID_ARGUMENT &&
         std::string(mp_last_error()) == "mp_context_create: context = NULL";
}

/// Calls the library where it is destroyed, behind what the library has made in the meantime.
class UsedAtTheEnd {
 public:
  explicit UsedAtTheEnd(std::atomic<int> &failures) : failures_(failures) {}
  ~UsedAtTheEnd() {
    if (!multiplies(context_.get()) || !fails_with_a_sentence()) ++failures_;
    context_.reset();
  }
  /// Only now the library is called for the first time.
  bool use() {
    context_ = mptools::make_context(MP_DEVICE_HOST);
    return multiplies(context_.get()) && fails_with_a_sentence();
  }

 private:
  std::atomic<int> &failures_;
  mptools::Context context_;
};

void quiet() {
  mp_set_log_callback([](mp_log_level_t, const char *, void *) {}, nullptr, MP_LOG_ERROR);
}

std::atomic<int> failures_at_the_end = 0;

/// As late as a program can say it: behind the tests and their report.
class ExitCode {
 public:
  ~ExitCode() {
    if (failures_at_the_end > 0) {
      std::fputs("wrong: a call at the end\n", stderr);
      std::fflush(stderr);
      _Exit(1);
    }
  }
};

}  // namespace

TEST_CASE("child: use in a static destructor", "[.][child]") {
  static const ExitCode code;
  static UsedAtTheEnd used(failures_at_the_end);
  quiet();
  CHECK(used.use());
}

TEST_CASE("child: use in a destructor of the main thread", "[.][child]") {
  static const ExitCode code;
  static thread_local UsedAtTheEnd used(failures_at_the_end);
  quiet();
  CHECK(used.use());
}

TEST_CASE("child: use in destructors of threads", "[.][child]") {
  quiet();
  std::atomic<int> failures = 0;
  for (int round = 0; round < 3; ++round) {
    together(kThreads, [&](int) {
      static thread_local UsedAtTheEnd used(failures_at_the_end);
      failures += !used.use();
    });
  }
  CHECK(failures == 0);
  CHECK(failures_at_the_end == 0);
}

// The process ends by exit() while threads that nobody joins are in calls.
TEST_CASE("child: exit while threads multiply", "[.][child]") {
  quiet();
  static std::atomic<int64_t> done = 0;
  for (int i = 0; i < 4; ++i) {
    std::thread([] {
      const mptools::Context context = mptools::make_context(MP_DEVICE_HOST);
      for (;;) done += multiplies(context.get());
    }).detach();
  }
  while (done < 100) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(done >= 100);
}

// A thread is gone before the next line is written, and its callback stays.
TEST_CASE("child: end while the callback is set", "[.][child]") {
  static std::atomic<int64_t> lines = 0;
  for (int round = 0; round < 20; ++round) {
    std::thread([] {
      mp_set_log_callback([](mp_log_level_t, const char *, void *) { ++lines; }, nullptr,
                          MP_LOG_ERROR);
      mp_context_create(nullptr, nullptr);
    }).join();
    mp_context_create(nullptr, nullptr);
  }
  mp_set_log_callback(nullptr, nullptr, MP_LOG_ERROR);
  CHECK(lines == 40);
}
