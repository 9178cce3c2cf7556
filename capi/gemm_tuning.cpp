#include "capi/gemm_tuning.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "capi/check.h"

namespace mp {

namespace {

/// @return false if it cannot be read.
bool read_file(const char *path, std::string *text) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path, "rb"), std::fclose);
  if (file == nullptr) return false;
  char block[4096];
  while (const size_t bytes = std::fread(block, 1, sizeof block, file.get()))
    text->append(block, bytes);
  return std::ferror(file.get()) == 0;
}

std::shared_ptr<const GemmTuning> tuning_of_environment() {
  const char *const path = std::getenv("MP_GEMM_TUNING");
  if (path == nullptr || *path == '\0') return nullptr;
  std::string text, why = "cannot be read";
  std::shared_ptr<const GemmTuning> tuning;
  if (read_file(path, &text)) tuning = parse_gemm_tuning(text, &why);
  if (tuning != nullptr)
    log(MP_LOG_INFO, "mp_gemm: MP_GEMM_TUNING = ", path, " is used");
  else
    log(MP_LOG_WARN, "mp_gemm: MP_GEMM_TUNING = ", path, ": ", why.c_str(),
        "; the built-in table is used");
  return tuning;
}

}  // namespace

const GemmTuning &gemm_tuning() {
  static const std::shared_ptr<const GemmTuning> from_file = tuning_of_environment();
  return from_file != nullptr ? *from_file : builtin_gemm_tuning();
}

}  // namespace mp
