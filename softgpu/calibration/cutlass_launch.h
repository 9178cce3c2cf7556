// Launch of a CUTLASS 3 operation.
#pragma once

#include <cutlass/cutlass.h>

#include "report.h"

namespace calibration {

template <class Operation>
OnDevice<char> workspace_of(const typename Operation::Arguments &arguments) {
  return OnDevice<char>(std::vector<char>(Operation::get_workspace_size(arguments)));
}

/// Launches an operation.  Returns its error, or "".
template <class Operation>
std::string launch(const typename Operation::Arguments &arguments,
                   const OnDevice<char> &workspace) {
  Operation operation;
  cutlass::Status status = operation.can_implement(arguments);
  if (status == cutlass::Status::kSuccess)
    status = operation.initialize(arguments, workspace.get());
  if (status == cutlass::Status::kSuccess) status = operation.run();
  return status == cutlass::Status::kSuccess ? "" : cutlassGetStatusString(status);
}

}  // namespace calibration
