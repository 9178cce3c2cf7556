// Catalog of correct calls: every public function that returns a status, with good arguments and
// its outputs.
//
// Its readers: tests/faults (each request of a call fails once), tests/threads (16 threads at once)
// and test_arguments.cpp (each pointer is NULL or misaligned once).  A new public function is added
// here as a row of the table of its section.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "caller.h"

namespace mptest {

/// A row: one call, or several that depend on each other.
struct Entry {
  std::string name;
  /// Makes the calls; the caller then has all results.
  std::function<void(Caller &)> run;
};
using Catalog = std::vector<Entry>;

// Sections.
Catalog product_calls();  ///< GEMMs, convolutions, their kernels and plans
Catalog layer_calls();    ///< layers, attention, casts, recurrent layers
Catalog step_calls();     ///< contexts, lists, scalers, optimizers, steps
Catalog graph_calls();    ///< autocast and graphs

Catalog all_calls();
/// Returns the rows whose names begin with one of `names`, or belong to the section "layers"; each
/// name must have a row.
Catalog calls_named(std::initializer_list<std::string_view> names);

}  // namespace mptest
