// Mutation of kernels while they are parsed, to check that a test detects the change (SOFTGPU_EDIT,
// `run --edit`).
//
//   edit   = ("drop " TEXT | "swap " A "=>" B) [" @" N] [" in " KERNEL]
//
//   drop TEXT     removes the instructions that contain TEXT
//   swap A=>B     replaces the first A by B in the instructions that contain A
//   @N            only the N-th instruction of a kernel that contains the text, from 0
//   in KERNEL     only kernels whose name, as printed in messages, contains KERNEL
//
// TEXT and A are compared with the instruction on one line, with its guard, without its semicolon,
// and with one space for each run of blanks.  Called functions belong to the kernel, separately for
// each call.  Examples:
//
//   drop wgmma.fence @0 in gemm_wgmma
//   swap wgmma.wait_group.sync.aligned 0=>wgmma.wait_group.sync.aligned 1
#pragma once

#include <string>

#include "softgpu/ptx/syntax.h"

namespace softgpu {

/// Returns the edit of a kernel with this name; empty if there is none.  The first change is
/// printed to stderr.  Throws ptx::Error if the text is not a valid edit.
ptx::Rewrite make_edit(const std::string &text, const std::string &kernel);
/// Returns whether an edit has changed an instruction.
bool was_edited();

}  // namespace softgpu
