#include "capi/gemm_tuning.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>

#include "base/environment.h"
#include "base/files.h"
#include "base/lazy_init.h"
#include "capi/check.h"
#include "kernels/gemm/tuning_text.h"

namespace mp {

namespace {

constexpr size_t kMaxBytes = 1 << 20;  // 100 times the size of a complete table

/// File descriptor, closed by the destructor.
struct File {
  int number;
  ~File() {
    if (number >= 0) close(number);
  }
};

/// Reads a file.  Not a std::ifstream, which reports end of file if it cannot allocate its buffer.
/// @return false on failure, with the reason in `why`
bool read_file(const char *path, std::string *text, std::string *why) {
  const File file{open_regular_file(path)};
  if (file.number < 0 && errno == EINVAL) {
    *why = "must be a regular file";
    return false;
  }
  char block[4096];
  for (;;) {
    const ssize_t bytes = read(file.number, block, sizeof block);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) *why = "cannot be read";
    if (bytes <= 0) return bytes == 0;
    text->append(block, static_cast<size_t>(bytes));
    if (text->size() <= kMaxBytes) continue;
    *why = "exceeds 1 MiB";
    return false;
  }
}

std::shared_ptr<const GemmTuning> tuning_of_environment() {
  const std::string path(environment_value("MP_GEMM_TUNING"));
  if (path.empty()) return nullptr;
  std::string text, why;
  std::shared_ptr<const GemmTuning> tuning;
  if (read_file(path.c_str(), &text, &why)) tuning = parse_gemm_tuning(text, &why);
  static std::atomic_flag is_told;  // concurrent first calls log once
  if (is_told.test_and_set()) return tuning;
  if (tuning != nullptr)
    log(MP_LOG_INFO, "mp_gemm: using MP_GEMM_TUNING = ", path);
  else
    log(MP_LOG_WARN, "mp_gemm: MP_GEMM_TUNING = ", path, ": ", why, "; using the built-in table");
  return tuning;
}

}  // namespace

const GemmTuning &gemm_tuning() {
  const auto &from_file = lazy_init([] { return tuning_of_environment(); });
  return from_file != nullptr ? *from_file : builtin_gemm_tuning();
}

}  // namespace mp
