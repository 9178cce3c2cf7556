// Kernels that break a rule of the programming model: the complaint must name the place, and the next launch
// must work.
#pragma once

#include <filesystem>

#include "testing.h"

namespace mptest {

using std::source_location;

/// Kernels write down the lines that a report should name.
struct Lines {
  mutable int first = 0, second = 0;
};

/// The place of this call, whose line is noted; for operations that take a place as an argument.
inline source_location noted(int &line, source_location where = source_location::current()) {
  line = static_cast<int>(where.line());
  return where;
}

struct SumArgs {
  int *out;
};
inline MP_KERNEL(256, 1) sum_block(MP_PARAM(SumArgs) args) {
  const int sum = mp::host::block_reduce<256, mp::host::Sum>(mp::host::thread_index());
  if (mp::host::thread_index() == 0) args.out[mp::host::block_index()] = sum;
}

/// The launch before this one has left nothing behind.
inline void check_next_launch() {
  std::vector<int> out(4);
  run(sum_block, {4, 256}, {out.data()});
  CHECK(out == std::vector<int>(4, 255 * 256 / 2));
}

/// Launches in every mode; the complaint must contain all of `texts` and the lines noted.
inline void check_violation(void (*kernel)(const Lines &), const mp::host::LaunchShape &shape,
                            const std::vector<std::string> &texts,
                            source_location test = source_location::current()) {
  const std::string file = std::filesystem::path(test.file_name()).filename();
  in_every_mode([&] {
    const Lines lines;
    const std::string complaint = outcome(kernel, shape, lines);
    INFO("complaint: " << complaint);
    CHECK(complaint.find("kernel: ") == 0);
    for (const std::string &text : texts) CHECK(complaint.find(text) != std::string::npos);
    for (const int line : {lines.first, lines.second})
      if (line != 0) CHECK(complaint.find(file + ":" + std::to_string(line)) != std::string::npos);
    check_next_launch();
  });
}

}  // namespace mptest
