// Tests of the fault checks: simulated errors in failing calls must be reported.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <utility>

#include "check.h"
#include "run.h"
#include "tests/support/testing.h"

using namespace mptest;
using namespace mptest::faults;

namespace {

constexpr const char *kFunction = "mp_autocast_create";

/// The error: called with the status of a call that failed, and its output.
std::function<mp_status_t(mp_status_t, mp_autocast_t &)> wrong;

mp_status_t create_wrongly(mp_autocast_t *policy, const mp_autocast_config_t *config) {
  const mp_status_t status = mp_autocast_create(policy, config);
  return status == MP_SUCCESS ? status : wrong(status, *policy);
}

void create_policy(Caller &run, std::function<mp_status_t(mp_status_t, mp_autocast_t &)> error) {
  wrong = std::move(error);
  mp_autocast_t policy = nullptr;
  run.create(kFunction, create_wrongly, policy, nullptr);
  DESTROY(run, mp_autocast_destroy, policy);
}

void leak(Caller &run) {
  create_policy(run, [](mp_status_t status, mp_autocast_t) {
    const Paused paused;
    static void *volatile lost;  // volatile, or the compiler may omit malloc
    lost = std::malloc(8);
    return lost != nullptr ? status : MP_ERROR_INTERNAL;
  });
}

void return_another_status(Caller &run) {
  create_policy(run, [](mp_status_t, mp_autocast_t) { return MP_ERROR_INTERNAL; });
}

void return_success(Caller &run) {
  bool is_present = true;
  create_policy(run, [&](mp_status_t, mp_autocast_t &policy) {
    policy = nullptr;
    is_present = false;
    return MP_SUCCESS;
  });
  run.record(&is_present, sizeof is_present);
}

void write_the_handle(Caller &run) {
  create_policy(run, [](mp_status_t status, mp_autocast_t &policy) {
    policy = nullptr;
    return status;
  });
}

void write_results(Caller &run) {
  int failures = 0;
  create_policy(run, [&](mp_status_t status, mp_autocast_t) {
    ++failures;
    return status;
  });
  run.record(&failures, sizeof failures);
}

void say_another_sentence(Caller &run) {
  create_policy(run, [](mp_status_t status, mp_autocast_t) {
    (void)mp_gemm(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0,
                  nullptr);
    return status;
  });
}

void fail_again(Caller &run) {
  static bool fails_now = false;
  create_policy(run, [](mp_status_t status, mp_autocast_t) {
    fails_now = true;
    return status;
  });
  run.repeat_until_success(
      kFunction, [] { return fails_now ? MP_ERROR_INTERNAL : MP_SUCCESS; }, [] {});
}

void abort_the_process(Caller &run) {
  create_policy(run, [](mp_status_t, mp_autocast_t) -> mp_status_t { std::abort(); });
}

void hang(Caller &run) {
  create_policy(run, [](mp_status_t status, mp_autocast_t) {
    alarm(1);
    pause();
    return status;
  });
}

void forget_a_group(Caller &run) {
  const mp_comm_t comm = run.comm();
  run.repeat_until_success(
      "mp_grads_all_reduce", [&] { return comm.group_begin(comm.user), MP_SUCCESS; }, [] {});
  create_policy(run, [](mp_status_t status, mp_autocast_t) { return status; });
}

}  // namespace

TEST_CASE("faults: the checks find injected errors", "[injected]") {
  struct {
    void (*run)(Caller &);
    const char *finding;
  } const cases[] = {
      {leak, "1 blocks are left"},
      {return_another_status, "said MP_ERROR_INTERNAL"},
      {return_success, "other results than without a fault"},
      {write_the_handle, "wrote its new object though it failed"},
      {write_results, "other results than without a fault"},
      {say_another_sentence, "said MP_ERROR_OUT_OF_MEMORY: mp_gemm: "},
      {fail_again, "failed without a fault"},
      {abort_the_process, "killed by signal 6"},
      {hang, "killed by signal 14"},
      {forget_a_group, "does not end the group of its communicator"},
  };
  for (const auto &c : cases) {
    const Found found = run_campaign({"injected", c.run}, {.source = Source::kMemory});
    CHECK_THAT(found.findings, Catch::Matchers::ContainsSubstring(c.finding));
  }
}
