// Results: a table and JSON that grow row by row.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/options.h"
#include "bench/timing/machine.h"
#include "row.h"

namespace mpbench {

/// Another library, and where it was found.
struct UsedLibrary {
  std::string name, version, place, file;
};

class Report {
 public:
  Report(const Options &options, const Machine &machine);

  /// Later rows of GEMM and convolution are compared with it.
  void set_peak(const Peak &peak);
  /// @param row  one of rows/
  template <typename Row>
  void add(const Row &row) {
    print_heading(heading_of(row));
    print(line_of(row, peak_));
    rows_.push_back(json_of(row, peak_));
  }
  void add(const std::optional<GpuState> &state);
  void add(const MachineRate &rate);
  /// Another library that is used; repeated calls add it once.
  void add_library(const char *name, const std::string &version, const DynamicLibrary &library);
  /// Something that could have been measured and was not.
  void add_note(const std::string &sentence);
  /// The same where it ought to have been, or a result that was wrong: the program has failed.
  void add_failure(const std::string &sentence);
  bool has_failed() const { return has_failed_; }
  /// Writes what there is, as the result of a run that ended here: when the run is ended by force or its
  /// device hangs, what has been measured is kept.
  void save() const;
  /// Writes the JSON.
  void finish() const;

 private:
  void print(const std::string &line) const;
  void print_heading(const std::string &heading);
  void describe(const Machine &machine);
  std::string whole_json(const std::vector<std::string> &notes) const;

  const Options &options_;
  bool stderr_is_terminal_;
  bool has_failed_ = false;
  std::string last_heading_;
  std::optional<Peak> peak_;
  std::vector<GpuState> gpu_states_;
  std::vector<UsedLibrary> libraries_;
  std::vector<MachineRate> rates_;
  std::vector<std::string> notes_;
  Json machine_;  ///< what does not change while it is measured
  Json rows_ = Json::array();
};

}  // namespace mpbench
