// MP_AUTOCAST_LOG: files with the input and the result of a rewrite.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "base/files.h"
#include "capi/check.h"
#include "graph/autocast_object.h"

namespace mp {

// A write error is only logged: the rewrite itself does not need the files.
void log_rewrite(const autocast::Policy &policy, const autocast::Rewritten &rewritten) {
  if (policy.log_folder.empty()) return;
  static std::atomic<uint32_t> num_rewrites = 0;
  const std::filesystem::path folder = policy.log_folder;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string stem =
      "autocast-" + std::to_string(::getpid()) + "-" + std::to_string(++num_rewrites);
  const autocast::Rewritten before{rewritten.graph, rewritten.low, rewritten.disabled_reason,
                                   nullptr, nullptr};
  const auto write = [&](const char *name, const std::string &text) {
    return replace_file((folder / (stem + name)).string(), text) == 0;
  };
  const bool is_written = write("-lists.txt", policy.lists_as_text()) &&
                          write("-before.dot", report(before, MP_AUTOCAST_FORMAT_DOT)) &&
                          write("-after.dot", report(rewritten, MP_AUTOCAST_FORMAT_DOT)) &&
                          write("-report.txt", report(rewritten, MP_AUTOCAST_FORMAT_TEXT));
  if (!is_written)
    log(MP_LOG_WARN, "mp_autocast_rewrite: MP_AUTOCAST_LOG = ", policy.log_folder,
        ": cannot write to this folder");
}

}  // namespace mp
