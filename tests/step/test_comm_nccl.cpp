// mp_comm_init_nccl against a stub of NCCL (stub/nccl.c), and its declarations against nccl.h if
// that is installed.  Uses internals of capi/comm.h.
#include "capi/comm.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/stub/nccl.h"
#include "tests/support/testing.h"

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime_api.h>)
#include <nccl.h>

namespace {

template <typename Ours, typename Theirs>
constexpr bool kSamePassing =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;

/// True if parameters and result are passed alike: pointers as pointers, integers and enums of
/// equal size.
template <typename R, typename... P, typename S, typename... Q>
consteval bool same_call(R (*)(P...), S (*)(Q...)) {
  return kSamePassing<R, S> && (kSamePassing<P, Q> && ...);
}

constexpr mp::nccl::Functions kNccl{};
static_assert(same_call(kNccl.comm_count, ncclCommCount));
static_assert(same_call(kNccl.comm_user_rank, ncclCommUserRank));
static_assert(same_call(kNccl.all_reduce, ncclAllReduce));
static_assert(same_call(kNccl.group_start, ncclGroupStart));
static_assert(same_call(kNccl.group_end, ncclGroupEnd));
// Data types and operations are passed as int: the call that takes both checks their order.
static_assert(std::is_invocable_v<decltype(ncclAllReduce), const void *, void *, size_t,
                                  ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t>);
static_assert(std::is_same_v<mp_stream_t, cudaStream_t>);
static_assert(int{ncclSuccess} == 0);
static_assert(mp::float_type(MP_FP16).nccl == int{ncclFloat16});
static_assert(mp::float_type(MP_BF16).nccl == int{ncclBfloat16});
static_assert(mp::float_type(MP_FP32).nccl == int{ncclFloat32});
static_assert(int{mp::nccl::kSum} == int{ncclSum});
static_assert(int{mp::nccl::kMax} == int{ncclMax});

}  // namespace
#endif

using namespace mptest;

namespace {

/// Checks in a child process, because dlclose does not guarantee that a library is unloaded.
bool has_nccl() {
  const pid_t child = fork();
  if (child == 0) _exit(dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL) != nullptr);
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status) != 0;
}

/// A library that is already loaded is found by name before any installed library.
stub_groups &load_stub() {
  const auto tests = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  void *const library = dlopen((tests / "stub/libnccl.so.2").c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  return *static_cast<stub_groups *>(dlsym(library, "stub_groups"));
}

}  // namespace

TEST_CASE("nccl: an error is reported if the library is missing", "[comm]") {
  if (has_nccl()) return skip("libnccl.so.2 is installed");
  ncclComm nccl{};
  mp_comm_t comm = mp_comm_default();
  expect_status(mp_comm_init_nccl(&comm, &nccl), MP_ERROR_NOT_FOUND);
  CHECK(std::string(mp_last_error()).starts_with("mp_comm_init_nccl: libnccl.so.2 cannot be"));
  CHECK(comm.all_reduce == nullptr);
}

TEST_CASE("nccl: mp_comm_init_nccl returns a table of NCCL functions", "[comm]") {
  ncclComm nccl{};
  nccl.rank = 2;
  nccl.count = 4;
  mp_comm_t comm = mp_comm_default();
  stub_groups &groups = load_stub();
  nccl.code = 3;
  expect_status(mp_comm_init_nccl(&comm, &nccl), MP_ERROR_COMM);
  CHECK(std::string(mp_last_error()) == "mp_comm_init_nccl: ncclCommUserRank returned 3");
  CHECK(comm.world_size == 1);

  nccl.code = 0;
  require_ok(mp_comm_init_nccl(&comm, &nccl));
  CHECK(comm.struct_size == sizeof comm);
  CHECK(comm.rank == 2);
  CHECK(comm.world_size == 4);
  CHECK(comm.user == &nccl);

  const float send = 0;
  float recv = 0;
  const auto stream = reinterpret_cast<mp_stream_t>(&nccl);
  struct {
    mp_dtype_t dtype;
    mp_reduce_op_t op;
    int nccl_dtype, nccl_op;
  } const cases[] = {{MP_FP16, MP_REDUCE_SUM, 6, 0},
                     {MP_BF16, MP_REDUCE_SUM, 9, 0},
                     {MP_FP32, MP_REDUCE_SUM, 7, 0},
                     {MP_FP32, MP_REDUCE_MAX, 7, 2}};
  for (const auto &c : cases) {
    CHECK(comm.all_reduce(&send, &recv, 5, c.dtype, c.op, stream, comm.user) == 0);
    CHECK(nccl.send == &send);
    CHECK(nccl.recv == &recv);
    CHECK(nccl.elements == 5);
    CHECK(nccl.dtype == c.nccl_dtype);
    CHECK(nccl.op == c.nccl_op);
    CHECK(nccl.stream == stream);
  }
  CHECK(nccl.calls == 4);
  CHECK(comm.group_begin(comm.user) == 0);
  CHECK(comm.group_end(comm.user) == 0);
  CHECK(groups.starts == 1);
  CHECK(groups.ends == 1);

  nccl.code = groups.code = 6;
  CHECK(comm.all_reduce(&send, &recv, 5, MP_FP32, MP_REDUCE_SUM, stream, comm.user) == 6);
  CHECK(comm.group_begin(comm.user) == 6);
  CHECK(comm.group_end(comm.user) == 6);
  groups.code = 0;
}
