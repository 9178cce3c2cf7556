// Fork while other threads of the process are inside calls.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/run_again.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

constexpr int64_t kSize = 64;

/// Returns whether a product in a new context is correct.  Uses no test macros: children call it.
bool multiplies() {
  mp_context_config_t config = mp_context_config_default();
  config.device = MP_DEVICE_HOST;
  mp_context_t made = nullptr;
  if (mp_context_create(&made, &config) != MP_SUCCESS) return false;
  const std::vector<float> ones(kSize * kSize, 1.0f);
  std::vector<float> d(kSize * kSize, 0.0f);
  const mp_gemm_desc_t desc = mp_gemm_desc_default(kSize, kSize, kSize, MP_FP32, MP_FP32);
  const bool has_run = mp_gemm(made, &desc, ones.data(), ones.data(), nullptr, d.data(), nullptr,
                               nullptr, 0, nullptr) == MP_SUCCESS;
  mp_context_destroy(made);
  return has_run && d == std::vector<float>(kSize * kSize, static_cast<float>(kSize));
}

/// Delays log calls, so that most forks happen during one.
void slow_log(mp_log_level_t, const char *, void *) {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// Returns whether a product in a child is correct; an alarm ends a child that hangs.
bool child_multiplies() {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(20);
    mp_set_log_callback(nullptr, nullptr, MP_LOG_ERROR);
    _exit(multiplies() ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Threads that repeat `work` until destruction.
class Busy {
 public:
  template <typename Work>
  Busy(int count, const Work &work) {
    for (int i = 0; i < count; ++i)
      threads_.emplace_back([this, work] {
        while (!is_over_) work();
      });
  }
  ~Busy() {
    is_over_ = true;
    for (std::thread &thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> is_over_{false};
  std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("fork: a child works regardless of the parent's other threads", "[fork]") {
  if (!on_host()) return skip("CUDA does not work in a child of a process that has used it");
  mp_set_log_callback(slow_log, nullptr, MP_LOG_INFO);
  {
    std::atomic<bool> are_right{true};
    const Busy busy(2, [&] { are_right = are_right && multiplies(); });
    for (int i = 0; i < 20; ++i) CHECK(child_multiplies());
    CHECK(are_right);
  }
  mp_set_log_callback(nullptr, nullptr, MP_LOG_ERROR);
  CHECK(multiplies());
}

TEST_CASE("fork: while another thread reads the tuning", "[.][fork_in_first_call]") {
  static std::atomic<bool> is_reading{false}, may_go_on{false};
  const auto wait_in_log = [](mp_log_level_t, const char *line, void *) {
    if (std::strstr(line, "MP_GEMM_TUNING") == nullptr) return;
    is_reading = true;
    while (!may_go_on) std::this_thread::yield();
  };
  mp_set_log_callback(wait_in_log, nullptr, MP_LOG_INFO);
  std::atomic<bool> is_right{false};
  std::thread first([&] { is_right = multiplies(); });
  while (!is_reading) std::this_thread::yield();
  setenv("MP_GEMM_TUNING", "", 1);
  CHECK(child_multiplies());
  may_go_on = true;
  first.join();
  CHECK(is_right);
}

TEST_CASE("fork: a first call in progress in the parent does not block a child", "[fork]") {
  if (!on_host()) return skip("CUDA does not work in a child of a process that has used it");
  const std::string output = output_of_test("[fork_in_first_call]", "MP_GEMM_TUNING=/dev/null");
  INFO(output);
  CHECK(times(output, "1 passed, 0 failed") == 1);
}

TEST_CASE("fork: a log callback may fork", "[fork]") {
  bool has_forked = false;
  const auto fork_once = [](mp_log_level_t, const char *, void *user) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = -1;
    *static_cast<bool *>(user) = waitpid(child, &status, 0) == child && status == 0;
  };
  mp_set_log_callback(fork_once, &has_forked, MP_LOG_INFO);
  CHECK(multiplies());
  mp_set_log_callback(nullptr, nullptr, MP_LOG_ERROR);
  CHECK(has_forked);
}
