// Processes that end, or whose threads end, while the library is in use.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "gang.h"
#include "support/device.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

constexpr int64_t kSize = 64;

/// Returns whether a GEMM is correct.
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

/// Calls the library in its destructor, after later initializations of the library.
class UsedAtTheEnd {
 public:
  explicit UsedAtTheEnd(std::atomic<int> &failures) : failures_(failures) {}
  ~UsedAtTheEnd() {
    if (!multiplies(context_.get()) || !fails_with_a_sentence()) ++failures_;
    context_.reset();
  }
  /// Makes the first call of the library.
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

/// Sets the exit code as late as possible: after the tests and their report.
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

// The process calls exit() while detached threads are in calls.
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

// A thread that is cancelled in a call ends after it, with shared state intact.
TEST_CASE("child: cancel threads that multiply", "[.][child]") {
  quiet();
  static mptools::Context context = mptools::make_context(MP_DEVICE_HOST);
  static std::atomic<int64_t> started = 0;
  for (int i = 0; i < 30; ++i) {
    pthread_t thread;
    const int64_t before = started;
    REQUIRE(pthread_create(
                &thread, nullptr,
                [](void *) -> void * {
                  for (;;) {
                    ++started;
                    multiplies(context.get());
                  }
                },
                nullptr) == 0);
    while (started == before) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(100 * i));
    REQUIRE(pthread_cancel(thread) == 0);
    void *result = nullptr;
    REQUIRE(pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
  }
  CHECK(multiplies(context.get()));
}

namespace {

/// Returns the number of threads of this process.
int64_t threads_now() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

}  // namespace

// The last context ends the workers; the next one creates new ones.
TEST_CASE("child: count threads", "[.][child]") {
  quiet();
  const int64_t before = threads_now();
  for (int round = 0; round < 3; ++round) {
    mptools::Context first = mptools::make_context(MP_DEVICE_HOST);
    mptools::Context second = mptools::make_context(MP_DEVICE_HOST);
    CHECK(multiplies(first.get()));
    CHECK(threads_now() == before + 3);
    first.reset();
    CHECK(multiplies(second.get()));
    CHECK(threads_now() == before + 3);
    second.reset();
    // A joined thread may be listed for a moment.
    for (int i = 0; i < 1000 && threads_now() > before; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(threads_now() == before);
  }
}

// Some threads destroy the last context while others create one and multiply.
TEST_CASE("child: create and destroy contexts", "[.][child]") {
  quiet();
  std::atomic<int> failures = 0;
  together(8, [&](int) {
    for (int round = 0; round < 100; ++round)
      failures += !multiplies(mptools::make_context(MP_DEVICE_HOST).get());
  });
  CHECK(failures == 0);
}

// The thread ends before the next line is logged; its callback remains set.
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
