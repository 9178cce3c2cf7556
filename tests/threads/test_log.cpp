// The log of the process, set and reset while threads write it.
#include <array>
#include <atomic>
#include <stdexcept>

#include "gang.h"
#include "tests/support/run_again.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

/// Lines received by one callback, and whether it is currently set.
struct Listener {
  mp_log_level_t level;
  std::atomic<bool> is_set = false;
  std::atomic<int64_t> lines = 0, too_unimportant = 0, unset = 0;

  static void hear(mp_log_level_t level, const char *, void *user) {
    auto &self = *static_cast<Listener *>(user);
    ++self.lines;
    self.too_unimportant += level > self.level;
    self.unset += !self.is_set;
  }
  void set() {
    is_set = true;
    mp_set_log_callback(hear, this, level);
  }
};

/// Logs one error and several debug lines.
void make_noise() {
  size_t bytes = 0;
  mp_gemm_desc_t desc = mp_gemm_desc_default(4, 4, 4, MP_FP16, MP_FP16);
  mp_gemm_workspace_size(context(), &desc, nullptr, &bytes);
  desc.ld_a = 1;
  mp_gemm_workspace_size(context(), &desc, nullptr, &bytes);
}

using Listeners = std::array<Listener, 3>;

int64_t lines_of(const Listeners &listeners) {
  int64_t lines = 0;
  for (const Listener &listener : listeners) lines += listener.lines;
  return lines;
}

/// Sets the listeners alternately while 16 threads log, for at least `lines` lines and `turns`
/// turns.
void take_turns(Listeners &listeners, int64_t lines, size_t turns) {
  std::atomic<bool> is_over = false;
  together(kThreads + 1, [&](int thread) {
    if (thread < kThreads) {
      while (!is_over) make_noise();
      return;
    }
    Listener *last = nullptr;
    for (size_t turn = 0; turn < turns || lines_of(listeners) < lines; ++turn) {
      Listener &next = listeners[turn % listeners.size()];
      next.set();
      if (last != nullptr) last->is_set = false;  // its last call has returned
      last = &next;
    }
    is_over = true;
  });
  quiet_log();
}

}  // namespace

TEST_CASE("threads: a replaced callback is not called again", "[threads][log]") {
  Listeners listeners{{{MP_LOG_DEBUG}, {MP_LOG_DEBUG}, {MP_LOG_DEBUG}}};
  take_turns(listeners, 20000, 1000);
  for (const Listener &listener : listeners) {
    CHECK(listener.lines > 0);
    CHECK(listener.unset == 0);
  }
}

TEST_CASE("threads: a callback receives no lines below its level", "[threads][log]") {
  Listeners listeners{{{MP_LOG_DEBUG}, {MP_LOG_ERROR}, {MP_LOG_WARN}}};
  take_turns(listeners, kUnderThreadSanitizer ? 20000 : 1500000, 1000);
  for (const Listener &listener : listeners) CHECK(listener.too_unimportant == 0);
}

TEST_CASE("threads: each failure is logged once, by any thread", "[threads][log]") {
  constexpr int64_t kRounds = 100;
  Listener listener{MP_LOG_ERROR};
  listener.set();
  together(kThreads, [](int) {
    for (int64_t round = 0; round < kRounds; ++round) make_noise();
  });
  quiet_log();
  CHECK(listener.lines == kThreads * kRounds);
  CHECK(listener.too_unimportant == 0);
}

TEST_CASE("threads: a once-per-context message is logged once for all threads", "[threads][log]") {
  Listener listener{MP_LOG_WARN};
  const mptools::Context fresh = mptools::make_context(MP_DEVICE_HOST);
  listener.set();
  together(kThreads, [&](int) {
    // A long k without workspace is predicted to be slow, which causes a warning.
    constexpr int64_t kSide = 64, kLong = 8192;
    const std::vector<uint16_t> zeros(kSide * kLong);
    std::vector<uint16_t> d(kSide * kSide);
    const mp_gemm_desc_t desc = mp_gemm_desc_default(kSide, kSide, kLong, MP_FP16, MP_FP16);
    mptools::check(mp_gemm(fresh.get(), &desc, zeros.data(), zeros.data(), nullptr, d.data(),
                           nullptr, nullptr, 0, kStream));
  });
  quiet_log();
  CHECK(listener.lines == 1);
}

// ---------------------------------------------------------------------------- the default log

// Logs a returned error, an error without status, and the warning of a context without a device.
TEST_CASE("child: write to the default log", "[.][child]") {
  mp_set_log_callback(nullptr, nullptr, MP_LOG_ERROR);
  CHECK(mp_context_create(nullptr, nullptr) == MP_ERROR_INVALID_ARGUMENT);
  int64_t some = 0;
  mp_free(nullptr, &some);
  mp_context_t any = nullptr;
  CHECK(mp_context_create(&any, nullptr) == MP_SUCCESS);
  mp_context_destroy(any);
}

TEST_CASE("log: returned errors are not printed to stderr by default", "[threads][log][children]") {
  const std::string returned = "mpcore: error: mp_context_create: context = NULL\n",
                    lost = "mpcore: error: mp_free: context = NULL\n",
                    warning = "mpcore: warn: mp_context_create: using the host target: device = ";
  const auto output_with = [](const std::string &variables) {
    return output_of_test("child: write to the default log", variables);
  };
  for (const char *const variables : {"-u MP_LOG", "MP_LOG=nonsense"}) {
    const std::string output = output_with(variables);
    CAPTURE(output);
    CHECK(times(output, returned) == 0);
    CHECK(times(output, lost) == 1);
  }
  for (const char *const level : {"error", "warn", "info"}) {
    const std::string output = output_with(std::string("MP_LOG=") + level);
    CAPTURE(output);
    CHECK(times(output, returned) == 1);
    CHECK(times(output, lost) == 1);
  }
  const std::string output = output_with("-u MP_LOG");
  CAPTURE(output);
  if (times(output, warning) > 0) CHECK(times(output, warning + "MP_DEVICE_AUTO, but ") == 1);
}

TEST_CASE("child: throw from the log callback", "[.][child]") {
  mp_set_log_callback([](mp_log_level_t, const char *, void *) { throw std::runtime_error("no"); },
                      nullptr, MP_LOG_DEBUG);
  CHECK(mp_context_create(nullptr, nullptr) == MP_ERROR_INVALID_ARGUMENT);
  CHECK(std::string(mp_last_error()) == "mp_context_create: context = NULL");
  mp_context_config_t config = mp_context_config_default();
  config.device = MP_DEVICE_HOST;
  mp_context_t any = nullptr;
  CHECK(mp_context_create(&any, &config) == MP_SUCCESS);
  mp_context_destroy(any);
  mp_set_log_callback(nullptr, nullptr, MP_LOG_ERROR);
}

TEST_CASE("log: a line is printed to stderr if its callback throws", "[threads][log][children]") {
  const std::string output = output_of_test("child: throw from the log callback", "-u MP_LOG");
  CAPTURE(output);
  CHECK(times(output, "mpcore: error: mp_context_create: context = NULL\n") == 1);
  CHECK(times(output, "mpcore: error: the log callback threw an exception") > 2);
  CHECK(times(output, "1 passed, 0 failed\n") == 1);
}
