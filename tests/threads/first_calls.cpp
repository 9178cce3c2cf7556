// Processes whose first calls are made by 16 threads at once, which race for lazy initialization.
#include <atomic>

#include "calls.h"
#include "gang.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

/// All threads begin with the same call.
void multiply() {
  const mptools::Context context = mptools::make_context(MP_DEVICE_HOST);
  const Catalog calls = all_calls();
  std::vector<Bytes> results(kThreads);
  together(kThreads, [&](int thread) {
    results[static_cast<size_t>(thread)] = run_call(calls, 0, context.get());
  });
  CHECK(results == std::vector<Bytes>(kThreads, run_call(calls, 0, context.get())));
}

std::atomic<int> tuning_lines = 0;

}  // namespace

TEST_CASE("child: make contexts", "[.][child]") {
  std::vector<mptools::Context> contexts(kThreads);
  together(kThreads, [&](int thread) {
    contexts[static_cast<size_t>(thread)] = mptools::make_context(MP_DEVICE_HOST);
  });
  CHECK(contexts.front() != nullptr);
}

TEST_CASE("child: call everything", "[.][child]") {
  const mptools::Context context = mptools::make_context(MP_DEVICE_HOST);
  const Catalog calls = all_calls();
  const auto results = results_of_threads(calls, [&](int) { return context.get(); });
  const std::vector<Bytes> wanted = results_alone(calls, context.get());
  for (const std::vector<Bytes> &mine : results) CHECK(difference(calls, mine, wanted) == "");
}

TEST_CASE("child: multiply", "[.][child]") {
  multiply();
}

TEST_CASE("child: fail", "[.][child]") {
  std::vector<std::string> sentences(kThreads);
  together(kThreads, [&](int thread) {
    if (mp_context_create(nullptr, nullptr) == MP_ERROR_INVALID_ARGUMENT)
      sentences[static_cast<size_t>(thread)] = mp_last_error();
  });
  CHECK(sentences == std::vector<std::string>(kThreads, "mp_context_create: context = NULL"));
}

TEST_CASE("child: query names", "[.][child]") {
  std::vector<std::string> infos(kThreads);
  together(kThreads, [&](int thread) {
    infos[static_cast<size_t>(thread)] =
        std::string(mp_build_info()) + mp_status_string(MP_ERROR_CUDA) + mp_dtype_name(MP_BF16);
  });
  CHECK(infos == std::vector<std::string>(kThreads, infos.front()));
}

// Runs with MP_GEMM_TUNING: the log has one message per file, for any number of threads.
TEST_CASE("child: read tuning", "[.][child]") {
  mp_set_log_callback(
      [](mp_log_level_t, const char *line, void *) {
        tuning_lines += std::string(line).find("MP_GEMM_TUNING") != std::string::npos;
      },
      nullptr, MP_LOG_INFO);
  multiply();
  mp_set_log_callback(nullptr, nullptr, MP_LOG_ERROR);
  CHECK(tuning_lines == 1);
}

TEST_CASE("child: set callbacks", "[.][child]") {
  std::vector<mp_status_t> statuses(kThreads, MP_ERROR_INVALID_ARGUMENT);
  together(kThreads, [&](int thread) {
    if (thread % 2 == 0)
      mp_set_log_callback([](mp_log_level_t, const char *, void *) {}, nullptr, MP_LOG_DEBUG);
    else
      statuses[static_cast<size_t>(thread)] = mp_context_create(nullptr, nullptr);
  });
  CHECK(statuses == std::vector<mp_status_t>(kThreads, MP_ERROR_INVALID_ARGUMENT));
}

TEST_CASE("child: query policies", "[.][child]") {
  std::vector<mp_op_class_t> classes(kThreads);
  together(kThreads, [&](int thread) {
    mp_autocast_t policy = nullptr;
    mptools::check(mp_autocast_create(&policy, nullptr));
    classes[static_cast<size_t>(thread)] = mp_autocast_get_class(policy, "MatMul");
    mp_autocast_destroy(policy);
  });
  CHECK(classes == std::vector<mp_op_class_t>(kThreads, MP_OP_CLASS_ALLOW));
}
