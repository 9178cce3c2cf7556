// Tests of mp_last_error: each thread has its own message.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "gang.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

/// Fails with a message that is unique to this thread and round.
std::string fail(int64_t number) {
  mp_gemm_desc_t desc = mp_gemm_desc_default(4, 4, 100000, MP_FP16, MP_FP16);
  desc.ld_a = number;
  size_t bytes = 0;
  if (mp_gemm_workspace_size(context(), &desc, nullptr, &bytes) == MP_SUCCESS)
    return "it has succeeded";
  return mp_last_error();
}

std::string sentence(int64_t number) {
  return "mp_gemm_workspace_size: ld_a = " + std::to_string(number) +
         " is smaller than k = 100000 (op_a = N)";
}

}  // namespace

TEST_CASE("threads: each thread has the message of its own failure", "[threads]") {
  constexpr int64_t kRounds = 200;
  REQUIRE(fail(7) == sentence(7));
  std::vector<std::string> wrong(kThreads);
  together(kThreads, [&](int thread) {
    for (int64_t round = 0; round < kRounds; ++round) {
      const int64_t number = thread * kRounds + round + 1;
      const std::string said = fail(number);
      std::this_thread::yield();
      if (said != sentence(number)) wrong[static_cast<size_t>(thread)] = said;
      if (mp_last_error() != sentence(number)) wrong[static_cast<size_t>(thread)] = mp_last_error();
    }
  });
  CHECK(wrong == std::vector<std::string>(kThreads));
  CHECK(fail(8) == sentence(8));
}

TEST_CASE("threads: a new thread has no message", "[threads]") {
  REQUIRE(fail(9) == sentence(9));
  std::vector<std::string> said(kThreads, "not called");
  together(kThreads, [&](int thread) { said[static_cast<size_t>(thread)] = mp_last_error(); });
  CHECK(said == std::vector<std::string>(kThreads));
  CHECK(mp_last_error() == sentence(9));
}

// -------------------------------------------------------------------- exceptions of callbacks

namespace {

struct Unknown {};

/// Throws the exception that user selects: 1 a runtime_error, 2 another type.
void throw_it(void *user) {
  const int kind = *static_cast<int *>(user);
  if (kind == 1) throw std::runtime_error("ran away");
  if (kind == 2) throw Unknown{};
}

const char *said_of(int kind) {
  return kind == 1 ? " threw an exception: ran away" : " threw an exception";
}

mp_context_t context_with(const mp_allocator_t &allocator) {
  mp_context_config_t config = mp_context_config_default();
  config.device = MP_DEVICE_HOST;
  config.allocator = &allocator;
  mp_context_t made = nullptr;
  REQUIRE(mp_context_create(&made, &config) == MP_SUCCESS);
  return made;
}

}  // namespace

TEST_CASE("errors: an exception of an allocator becomes a status that names the callback",
          "[threads][callbacks]") {
  auto allocator = initialized<mp_allocator_t>();
  const mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  for (const int kind : {1, 2}) {
    int user = kind;
    allocator.user = &user;
    allocator.alloc = [](size_t, void *user) -> void * {
      throw_it(user);
      return nullptr;
    };
    allocator.free = [](void *, size_t, void *) {};
    const mp_context_t made = context_with(allocator);
    mp_scaler_t scaler = nullptr;
    CHECK(mp_scaler_create(&scaler, made, &config) == MP_ERROR_OUT_OF_MEMORY);
    CHECK(std::string(mp_last_error()) ==
          std::string("mp_scaler_create: allocator->alloc") + said_of(kind));
    mp_context_destroy(made);
  }
  // An exception of free is logged as an error, since a destroy call returns no status.
  for (const int kind : {1, 2}) {
    int user = kind;
    allocator.user = &user;
    allocator.alloc = [](size_t bytes, void *) -> void * {
      return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    };
    allocator.free = [](void *ptr, size_t, void *user) {
      std::free(ptr);
      throw_it(user);
    };
    const mp_context_t made = context_with(allocator);
    mp_scaler_t scaler = nullptr;
    REQUIRE(mp_scaler_create(&scaler, made, &config) == MP_SUCCESS);
    std::string line;
    mp_set_log_callback([](mp_log_level_t, const char *text,
                           void *user) { *static_cast<std::string *>(user) += text; },
                        &line, MP_LOG_ERROR);
    mp_scaler_destroy(scaler);
    quiet_log();
    CHECK(line == std::string("failed to free device memory: allocator->free") + said_of(kind));
    mp_context_destroy(made);
  }
}

TEST_CASE("errors: an exception of a communicator becomes a status that names the callback",
          "[threads][callbacks]") {
  float values[4] = {1, 2, 3, 4};
  const mptools::Context made = mptools::make_context(MP_DEVICE_HOST);
  const mptools::TensorList list = mptools::make_list(made.get(), MP_FP32, {values}, {4});
  struct User {
    int kind;           // argument of throw_it; must be the first member
    const char *where;  // callback that throws
  };
  const auto is = [](void *user, const char *name) {
    return std::string(static_cast<User *>(user)->where) == name;
  };
  static const auto throw_in = [=](void *user, const char *name) {
    if (is(user, name)) throw_it(user);
    return 0;
  };
  for (const char *const where : {"all_reduce", "group_begin", "group_end"}) {
    for (const int kind : {1, 2}) {
      CAPTURE(where, kind);
      User user{kind, where};
      mp_comm_t comm = mp_comm_default();
      comm.world_size = 2;
      comm.user = &user;
      comm.all_reduce = [](const void *, void *, size_t, mp_dtype_t, mp_reduce_op_t, mp_stream_t,
                           void *user) { return throw_in(user, "all_reduce"); };
      comm.group_begin = [](void *user) { return throw_in(user, "group_begin"); };
      comm.group_end = [](void *user) { return throw_in(user, "group_end"); };
      CHECK(mp_grads_all_reduce(list.get(), &comm, 1, 1, kStream) == MP_ERROR_COMM);
      CHECK(std::string(mp_last_error()) ==
            std::string("mp_grads_all_reduce: comm->") + where + said_of(kind));
      // A call that fails for another reason ends its group even if that throws.
      user.where = "group_end";
      comm.all_reduce = [](const void *, void *, size_t, mp_dtype_t, mp_reduce_op_t, mp_stream_t,
                           void *) { return 7; };
      CHECK(mp_grads_all_reduce(list.get(), &comm, 1, 1, kStream) == MP_ERROR_COMM);
      CHECK(std::string(mp_last_error()) == "mp_grads_all_reduce: comm->all_reduce returned 7");
    }
  }
}
