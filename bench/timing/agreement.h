// Whether mpcore and a peer have computed the same: every element of the result, against a bound that
// follows from the arithmetic.
//
// Operands are uniform in [-1, 1] and independent (RandomPool), so a product of two is sub-Gaussian with
// variance proxy 1/3, and a sum of k of them stays, with all of its partial sums, below
//
//     P = 5 sqrt(k)           but for a chance of 4 exp(-3 25 / 2) = 2e-16 for each element.
//
// An implementation that sums in fp32 is off by two kinds of errors.  Tensor cores align the addends of an
// instruction to the largest and cut them off: by at most one unit of the last place, 2^-23 P, each.
// What is cut off the products has their signs, which are random, so k of them add up to at most
// 6 sqrt(k) 2^-23 P but for a chance of 2 exp(-18) that only counts where all of them are as large
// as can be.  What is cut off the running sum has the sign of that sum; in the worst case all of it adds up,
// once for each instruction, of which there is at least one for 4 of k: k/4 2^-23 P.  CUDA cores round to
// nearest, k times by half as much and in both directions, which is less.  So two results differ by
//
//     2 (k/4 + 6 sqrt(k)) 2^-23 P      and by a unit of the last place of D's type, for its two roundings.
//
// Source: Fasi, Higham, Mikaitis, Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ Computer Science
// 2021 (alignment and truncation); Higham, Mary, A new approach to probabilistic rounding error analysis, 2019.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine.h"
#include "timing.h"

namespace mpbench {

/// Two results x and y may differ by absolute + relative max(|x|, |y|).
struct Tolerance {
  double absolute, relative;

  double of(double x, double y) const;
};

/// Half a unit of the last place of 1.
double unit_roundoff(mp_dtype_t dtype);

/// P above, of sums of so many products and of something in [-1, 1], such as a bias.
double magnitude_of_sums(int64_t terms);

/// Of such sums in fp32, rounded to `out`.
Tolerance tolerance_of_sums(int64_t terms, mp_dtype_t out);

/// A result in device memory.
struct Result {
  void *data;
  int64_t count;
  mp_dtype_t dtype;
  /// It is added to (beta is not 0).  Before a work writes a result its elements are NaN, so that one
  /// that was left out is seen; what is added to is a constant of about 1.
  bool is_added_to;
};

/// All elements of each result, on the host, after `work` has written them.
using Values = std::vector<std::vector<float>>;
Values values_of(const Machine &machine, const Work &work, const std::vector<Result> &results);

/// Compares with `own` what `work` writes.
/// @return a clause that says what differs, "" if nothing does.  What is not finite always differs.
std::string difference(const Machine &machine, const Values &own, const Work &work,
                       const std::vector<Result> &results, const Tolerance &tolerance);

}  // namespace mpbench
