// MP_AUTOCAST_LOG: what a rewrite was given, and what it made of it, as files.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "capi/autocast.h"
#include "capi/check.h"

namespace mp {

namespace {

bool write_file(const std::filesystem::path &path, const std::string &text) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path.c_str(), "wb"),
                                                              std::fclose);
  if (file == nullptr) return false;
  return std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
         std::fflush(file.get()) == 0;
}

}  // namespace

// A folder that cannot be written is no reason to fail: nobody needs the log to go on.
void log_rewrite(const autocast::Policy &policy, const autocast::Rewritten &rewritten) {
  if (policy.log_folder.empty()) return;
  static std::atomic<uint32_t> num_rewrites = 0;
  const std::filesystem::path folder = policy.log_folder;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string stem =
      "autocast-" + std::to_string(::getpid()) + "-" + std::to_string(++num_rewrites);
  const autocast::Rewritten before{rewritten.graph, rewritten.low, rewritten.gate, nullptr,
                                   nullptr};
  const bool is_written =
      write_file(folder / (stem + "-lists.txt"), policy.lists_as_text()) &&
      write_file(folder / (stem + "-before.dot"), report(before, MP_AUTOCAST_DOT)) &&
      write_file(folder / (stem + "-after.dot"), report(rewritten, MP_AUTOCAST_DOT)) &&
      write_file(folder / (stem + "-report.txt"), report(rewritten, MP_AUTOCAST_TEXT));
  if (!is_written)
    log(MP_LOG_WARN, "mp_autocast_rewrite: MP_AUTOCAST_LOG = ", policy.log_folder,
        ": cannot be written");
}

}  // namespace mp
