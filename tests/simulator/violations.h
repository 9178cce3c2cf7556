// Kernels that violate the programming model: the report must name the line, and the next launch
// must succeed.
#pragma once

#include <filesystem>

#include "testing.h"

namespace mptest {

using std::source_location;

/// Lines that a report must name; kernels store them.
struct Lines {
  mutable int first = 0, second = 0;
};

/// Stores the line of this call; for operations with a source_location argument.
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

/// Checks that the previous launch does not affect the next one.
inline void check_next_launch() {
  std::vector<int> out(4);
  run(sum_block, {4, 256}, {out.data()});
  CHECK(out == std::vector<int>(4, 255 * 256 / 2));
}

/// Launches in every mode; the report must contain all of `texts` and the noted lines.
inline void check_violation(void (*kernel)(const Lines &), const mp::host::LaunchShape &shape,
                            const std::vector<std::string> &texts,
                            source_location test = source_location::current()) {
  const std::string file = std::filesystem::path(test.file_name()).filename();
  in_every_mode([&] {
    const Lines lines;
    const std::string diagnostic = outcome(kernel, shape, lines);
    INFO("diagnostic: " << diagnostic);
    CHECK(diagnostic.find("kernel: ") == 0);
    for (const std::string &text : texts) CHECK(diagnostic.find(text) != std::string::npos);
    for (const int line : {lines.first, lines.second})
      if (line != 0) CHECK(diagnostic.find(file + ":" + std::to_string(line)) != std::string::npos);
    check_next_launch();
  });
}

}  // namespace mptest
