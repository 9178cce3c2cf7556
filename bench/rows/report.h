// Results: a table and JSON, written row by row.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "bench/options.h"
#include "bench/timing/machine.h"
#include "row.h"

namespace mpbench {

/// A reference library and its path.
struct UsedLibrary {
  std::string name, version, place, file;
};

class Report {
 public:
  Report(const Options &options, const Machine &machine);

  /// Later rows of GEMMs and convolutions are compared with this peak.
  void set_peak(const Peak &peak);
  /// @param row  a type from rows.h
  template <typename Row>
  void add(const Row &row) {
    add(fields_of(row, peak_));
  }
  void add(const Fields &row);
  void add(const std::optional<GpuState> &state);
  void add(const MachineRate &rate);
  /// Adds a library to the report; repeated calls add it once.
  void add_library(const char *name, const std::string &version, const DynamicLibrary &library);
  /// Reports a skipped measurement.
  void add_note(const std::string &sentence);
  /// Reports a failed measurement or a wrong result; the program then exits with an error.
  void add_failure(const std::string &sentence);
  /// Returns whether `difference`, a clause that describes the first one, is empty; otherwise adds
  /// a failure.
  bool add_agreement(const std::string &peer, const std::string &problem,
                     const std::string &difference);
  /// Returns make(); if it throws, an empty value, and a note that there is no `what`.
  template <typename Make>
  auto make_or_note(const std::string &what, Make make) -> decltype(make()) {
    try {
      return make();
    } catch (const std::exception &error) {
      add_note("No " + what + ": " + error.what() + ".");
      return {};
    }
  }
  bool has_failed() const { return has_failed_; }
  /// Writes the results so far in the format of a finished run, so that they survive if the run is
  /// killed or its device hangs.
  void save() const;
  /// Writes the final JSON.
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
  Json machine_;  ///< constants of the device
  Json rows_ = Json::array();
};

}  // namespace mpbench
