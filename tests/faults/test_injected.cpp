// Tests of the fault checks: simulated errors in failing calls must be reported.
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "check.h"
#include "tests/support/testing.h"

using namespace mptest;
using namespace mptest::faults;

namespace {

constexpr const char *kFunction = "mp_autocast_create";

int failures;  ///< failed calls of the current run

/// An error in a call that fails.
struct Injected {
  const char *finding;
  /// Called with the status of the failed call and its output; returns the status to report.
  mp_status_t (*error)(mp_status_t, mp_autocast_t &);
  void (*then)(Caller &) = nullptr;  ///< called after the call
};

mp_status_t keep(mp_status_t status, mp_autocast_t &) {
  return status;
}

void record_failures(Caller &run) {
  run.record(&failures, sizeof failures);
}

const Injected kInjected[] = {
    {"1 blocks are left",
     [](mp_status_t status, mp_autocast_t &) {
       const Paused paused;
       static void *volatile lost;  // volatile, or the compiler may omit malloc
       lost = std::malloc(8);
       return lost != nullptr ? status : MP_ERROR_INTERNAL;
     }},
    {"said MP_ERROR_INTERNAL", [](mp_status_t, mp_autocast_t &) { return MP_ERROR_INTERNAL; }},
    {"other results than without a fault",  // the call reports success
     [](mp_status_t, mp_autocast_t &policy) {
       policy = nullptr;
       return MP_SUCCESS;
     },
     record_failures},
    {"wrote its new object though it failed",
     [](mp_status_t status, mp_autocast_t &policy) {
       policy = nullptr;
       return status;
     }},
    {"other results than without a fault", keep, record_failures},  // a failed call has an effect
    {"said MP_ERROR_OUT_OF_MEMORY: mp_gemm: ",
     [](mp_status_t status, mp_autocast_t &) {
       (void)mp_gemm(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0,
                     nullptr);
       return status;
     }},
    {"failed without a fault", keep,
     [](Caller &run) {
       run.repeat_until_success(
           kFunction, [] { return failures > 0 ? MP_ERROR_INTERNAL : MP_SUCCESS; }, [] {});
     }},
    {"killed by signal 6", [](mp_status_t, mp_autocast_t &) -> mp_status_t { std::abort(); }},
    {"killed by signal 14",
     [](mp_status_t status, mp_autocast_t &) {
       alarm(1);
       pause();
       return status;
     }},
    {"does not end the group of its communicator", keep, [](Caller &run) {
       const mp_comm_t comm = run.comm();
       run.repeat_until_success(
           "mp_grads_all_reduce", [&] { return comm.group_begin(comm.user), MP_SUCCESS; }, [] {});
     }}};

const Injected *injected;  ///< error of the current run

mp_status_t create_wrongly(mp_autocast_t *policy, const mp_autocast_config_t *config) {
  const mp_status_t status = mp_autocast_create(policy, config);
  if (status == MP_SUCCESS) return status;
  ++failures;
  return injected->error(status, *policy);
}

void create_policy(Caller &run) {
  failures = 0;
  mp_autocast_t policy = nullptr;
  run.create(kFunction, create_wrongly, policy, nullptr);
  DESTROY(run, mp_autocast_destroy, policy);
  if (injected->then != nullptr) injected->then(run);
}

}  // namespace

TEST_CASE("faults: the checks find injected errors", "[injected]") {
  for (const Injected &one : kInjected) {
    injected = &one;
    const Found found = run_campaign({"injected", create_policy}, {.source = Source::kMemory});
    CHECK_THAT(found.findings, Catch::Matchers::ContainsSubstring(one.finding));
  }
}
