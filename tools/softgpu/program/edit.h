// Sabotage: kernels are changed while they are read, to see whether a test notices (SOFTGPU_EDIT,
// `run --edit`).
//
//   edit   = ("drop " TEXT | "swap " A "=>" B) [" @" N] [" in " KERNEL]
//
//   drop TEXT     leaves out the instructions that contain TEXT
//   swap A=>B     puts B in place of the first A in the instructions that contain A
//   @N            only in the instruction that is the N-th of a kernel to contain it, from 0
//   in KERNEL     only in kernels whose name, as messages print it, contains KERNEL
//
// TEXT and A are compared with an instruction on one line, with its guard and without its
// semicolon, and with one space wherever there are blanks.  Functions that a kernel calls belong to
// it, each call anew.  Examples:
//
//   drop wgmma.fence @0 in gemm_wgmma
//   swap mbarrier.try_wait.parity.shared::cta.b64 p, [%r12], 0=>mbarrier.try_wait.parity.shared::cta.b64 p, [%r12], 1
#pragma once

#include <string>

#include "tools/softgpu/ptx/syntax.h"

namespace softgpu {

/// What the edit does to a kernel of this name; empty if nothing.  The first change is printed to
/// stderr.  Throws ptx::Error if the text is no edit.
ptx::Rewrite make_edit(const std::string &text, const std::string &kernel);
/// Whether any edit has changed anything.
bool was_edited();

}  // namespace softgpu
