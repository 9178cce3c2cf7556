// Progress of one run on stderr: a bar that redraws itself on a terminal, else a line per epoch.
#pragma once

#include <cstdint>
#include <string>

namespace mpdemo {

class Progress {
 public:
  Progress(std::string run_name, int64_t num_steps);

  /// @param loss  the latest that has been fetched.
  void show(int64_t steps_done, double loss);
  void epoch_done(int64_t steps_done, double loss, const std::string &test, double seconds);

 private:
  std::string run_name_;
  int64_t num_steps_;
  bool is_terminal_;
};

}  // namespace mpdemo
