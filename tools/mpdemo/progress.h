// Progress of one run on stderr: a bar on a terminal, otherwise one line per epoch.
#pragma once

#include <cstdint>
#include <string>

namespace mpdemo {

class Progress {
 public:
  Progress(std::string run_name, int64_t num_steps);

  /// @param loss  most recently fetched loss.
  void show(int64_t steps_done, double loss);
  void epoch_done(int64_t steps_done, double loss, const std::string &test, double seconds);

 private:
  std::string run_name_;
  int64_t num_steps_;
  bool is_terminal_;
};

}  // namespace mpdemo
