// Results: a table that grows row by row, and the same rows as JSON at the end.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conv_shapes.h"
#include "machine.h"
#include "options.h"
#include "shapes.h"
#include "timing.h"

namespace mpbench {

/// Another library doing the same job.
struct PeerResult {
  std::string name;  ///< with its version
  double median_us, q1_us, q3_us;
  std::optional<bool> agrees;  ///< computed the same as mpcore; empty = not compared
};

/// How good the choice of the kernel was, over all kernels that can run the problem.
struct RankResult {
  int64_t position, count;  ///< predicted place of the fastest, from 1
  std::string fastest;
  double chosen_us, fastest_us;
};

struct GemmRow {
  Shape shape;
  mp_gemm_desc_t desc;
  std::string kernel;
  double predicted_us;  ///< by the cost model that chose the kernel
  int64_t workspace_bytes;
  int64_t sets;      ///< of operands, taken in turn
  double min_bytes;  ///< every operand once
  Timing timing;
  std::optional<PeerResult> peer;
  std::optional<RankResult> rank;
};

struct ConvRow {
  ConvShape shape;
  mp_conv2d_desc_t desc;
  std::string kernel;
  double predicted_us;  ///< by the cost model that chose the kernel
  int64_t workspace_bytes;
  int64_t sets;      ///< of tensors, taken in turn
  double min_bytes;  ///< every tensor once
  Timing timing;
  std::optional<PeerResult> peer;
  std::optional<PeerResult> fp32;  ///< the peer in FP32, what mixed precision is an alternative to
  std::optional<RankResult> rank;
};

struct StepRow {
  std::string op, layout;
  int64_t tensors, parameters;
  int64_t bytes_per_parameter;  ///< the least that the algorithm moves
  int64_t sets;
  Timing timing;
  double copy_bytes;  ///< read and written by the copy beside it
  Timing copy;
  std::optional<PeerResult> peer;
};

/// The rate that large squares reached in this run, by whoever was faster.
struct Ceiling {
  double tflops;
  std::string from;
};

class Report {
 public:
  Report(const Options &options, const Machine &machine);

  /// Later rows of GEMM and convolution are compared with it.
  void set_ceiling(const Ceiling &ceiling);
  void add(const GemmRow &row);
  void add(const ConvRow &row);
  void add(const StepRow &row);
  void add(const std::optional<GpuState> &state);
  /// Something that could have been measured and was not, or a result that was wrong.
  void add_note(const std::string &sentence);
  /// Writes the JSON.
  void finish();

  /// On stderr, if that is a terminal: what is being measured now.
  void show_progress(const std::string &what) const;

 private:
  void print(const std::string &line) const;
  void print_heading(const std::string &heading);
  void write_machine(const Machine &machine);

  const Options &options_;
  bool stderr_is_terminal_;
  std::string last_heading_;
  std::optional<Ceiling> ceiling_;
  std::vector<GpuState> gpu_states_;
  std::vector<std::string> notes_;
  JsonWriter json_;
};

}  // namespace mpbench
