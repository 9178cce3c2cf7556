// Faults of files named by environment variables, each in a new process, since the library reads
// them once.
#define MP_ENABLE_EXPERIMENTAL
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdlib>

#include "check.h"
#include "progress.h"
#include "tests/support/surroundings.h"
#include "tests/support/testing.h"

using namespace mptest;
using namespace mptest::faults;

namespace {

void tell_warnings(mp_log_level_t level, const char *message, void *) {
  if (level == MP_LOG_WARN) progress().add(std::string(message) + "\n");
}

void limit(__rlimit_resource resource, rlim_t most) {
  const rlimit both = {most, most};
  if (setrlimit(resource, &both) != 0) std::abort();
}

/// Runs in a child: reports warnings, then the selected kernel.
void choose_kernel() {
  mp_set_log_callback(tell_warnings, nullptr, MP_LOG_WARN);
  mp_context_config_t config = mp_context_config_default();
  config.device = MP_DEVICE_HOST;
  mp_context_t context = nullptr;
  mp_status_t status = mp_context_create(&context, &config);
  const mp_gemm_desc_t desc = mp_gemm_desc_default(256, 256, 256, MP_FP16, MP_FP16);
  auto info = initialized<mp_kernel_info_t>();
  if (status == MP_SUCCESS) status = mp_gemm_kernel_info(context, &desc, 0, &info);
  progress().add(status == MP_SUCCESS ? info.name : mp_last_error());
}

/// Runs in a child: reports the warnings of a rewrite of an empty graph.
void rewrite() {
  mp_set_log_callback(tell_warnings, nullptr, MP_LOG_WARN);
  mp_autocast_t policy = nullptr;
  auto graph = initialized<mp_autocast_graph_t>();
  auto result = initialized<mp_autocast_result_t>();
  mp_status_t status = mp_autocast_create(&policy, nullptr);
  if (status == MP_SUCCESS) status = mp_autocast_rewrite(policy, nullptr, &graph, &result);
  progress().add(mp_status_string(status));
}

/// Injects failed allocations into calls that read or write files.
void check_file_access(int64_t all_until) {
  const Folder folder;
  const Environment tuning({{"MP_GEMM_TUNING", folder.file("table", "host simt_64x64x16 0 0\n")}});
  const Environment log({{"MP_AUTOCAST_LOG", folder.path()}});
  check_all(calls_named({"plans and kernels"}),
            {.source = Source::kMemory, .is_cold = true, .all_until = all_until});
  check_all(calls_named({"autocast"}), {.source = Source::kMemory, .all_until = all_until});
}

}  // namespace

TEST_CASE("faults: an unreadable or invalid tuning table causes a warning", "[files]") {
  const Folder folder;
  const std::string usual = in_child(20, choose_kernel);
  const auto expect_warning = [&](const std::string &path, const std::string &why) {
    const Environment variable({{"MP_GEMM_TUNING", path}});
    CHECK(in_child(20, choose_kernel) == "mp_gemm: MP_GEMM_TUNING = " + path + ": " + why +
                                             "; using the built-in table\n" + usual);
  };
  const std::string pipe = folder / "pipe";  // rejected without waiting for a writer
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  // A file that can be opened, but not read.
  expect_warning("/proc/self/mem", "cannot be read");
  expect_warning("/nonexistent/table", "cannot be read");
  for (const std::string &path : {std::string("/dev/zero"), std::string("/"), pipe})
    expect_warning(path, "must be a regular file");
  expect_warning(folder.file("large", std::string((1 << 20) + 1, '\n')), "exceeds 1 MiB");
  const std::string line = "host simt_64x64x16 10 20\n";
  expect_warning(folder.file("cut", line + "host simt_64x6"),
                 "line 2: a kernel requires TILE_US and K_US");
  expect_warning(folder.file("key", line + "# two\nhost launch=1\n"),
                 "line 3: unknown key \"launch\" of a class");
  expect_warning(
      folder.file("binary", std::string("\1\0\2 \xff\n", 6)),
      R"(line 1: class "\u0001\u0000\u0002" must be sm_75, sm_80, sm_89, sm_90, sm_100, sm_120 or host)");
}

TEST_CASE("faults: the library works if no file can be opened", "[files]") {
  const Folder folder;
  const std::string usual = in_child(20, choose_kernel);
  const std::string path = folder.file("table", "host simt_64x64x16 0 0\n");
  const Environment tuning({{"MP_GEMM_TUNING", path}});
  const std::string said = in_child(20, [] {
    limit(RLIMIT_NOFILE, 0);
    choose_kernel();
  });
  CHECK(said == "mp_gemm: MP_GEMM_TUNING = " + path + ": cannot be read" +
                    "; using the built-in table\n" + usual);
}

TEST_CASE("faults: a log of autocast that cannot be written causes a warning", "[files]") {
  const Folder folder;
  const auto expect_warning = [&](const std::string &path, const std::function<void()> &body) {
    const Environment variable({{"MP_AUTOCAST_LOG", path}});
    CHECK(in_child(20, body) == "mp_autocast_rewrite: MP_AUTOCAST_LOG = " + path +
                                    ": cannot write to this folder\nMP_SUCCESS");
  };
  expect_warning(folder.file("file", "no folder"), rewrite);
  expect_warning(folder.path(), [] {  // like a full disk
    signal(SIGXFSZ, SIG_IGN);
    limit(RLIMIT_FSIZE, 10);
    rewrite();
  });
  expect_warning(folder.path(), [] {
    limit(RLIMIT_NOFILE, 0);
    rewrite();
  });
}

TEST_CASE("faults: failed allocations during file access are handled", "[files]") {
  check_file_access(200);
}

TEST_CASE("faults: each failed allocation during file access is handled", "[files][long]") {
  check_file_access(INT64_MAX);
}
