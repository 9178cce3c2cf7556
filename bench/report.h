// Results: a table that grows row by row, and the same rows as JSON at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "machine.h"
#include "options.h"
#include "rows/row.h"

namespace mpbench {

class Report {
 public:
  Report(const Options &options, const Machine &machine);

  /// Later rows of GEMM and convolution are compared with it.
  void set_ceiling(const Ceiling &ceiling);
  /// @param row  a GemmRow, ConvRow or StepRow
  template <typename Row>
  void add(const Row &row) {
    print_heading(heading_of(row));
    print(line_of(row, ceiling_));
    write_row(json_, row, ceiling_);
  }
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
