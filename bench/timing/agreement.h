// Comparison of the results of mpcore and a peer, element by element, against a bound that follows
// from the arithmetic.
//
// Operands are uniform in [-1, 1] and independent (RandomPool).  A product of two is sub-Gaussian
// with variance proxy 1/3.  A sum of k products, and each of its partial sums, stays below
//
//     P = 5 sqrt(k)           except with probability 4 exp(-3 25 / 2) = 2e-16 per element.
//
// A sum in fp32 has two kinds of errors.  Tensor cores align the addends of an instruction to the
// largest one and truncate them, each by at most one unit in the last place, 2^-23 P.
//
// - Truncated products: the error has the sign of the product, which is random.  The errors of k
//   products add up to at most 6 sqrt(k) 2^-23 P except with probability 2 exp(-18), and reach that
//   only if every error has its maximum size.
// - Truncated running sum: the error has the sign of the sum.  In the worst case it adds up once
//   per instruction, and an instruction adds at least 4 of the k products: k/4 2^-23 P.
//
// CUDA cores round to nearest, k times by half as much and in both directions, which is less.  So
// two results differ by at most
//
//     2 (k/4 + 6 sqrt(k)) 2^-23 P
//
// plus one unit in the last place of D's type for its two roundings.
//
// Sources: Fasi, Higham, Mikaitis, Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ
// Computer Science 2021 (alignment and truncation); Higham, Mary, A new approach to probabilistic
// rounding error analysis, 2019.
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

/// Half a unit in the last place of 1.
double unit_roundoff(mp_dtype_t dtype);

/// P above, for sums of `terms` products and one value in [-1, 1], such as a bias.
double magnitude_of_sums(int64_t terms);

/// Tolerance of such sums in fp32, rounded to `out`.
Tolerance tolerance_of_sums(int64_t terms, mp_dtype_t out);

/// A result in device memory.
struct Result {
  void *data;
  int64_t count;
  mp_dtype_t dtype;
  /// True if the call accumulates into the result (beta is not 0).  The elements are then preset to
  /// a constant of about 1, otherwise to NaN, so that an unwritten element is found.
  bool is_added_to;
};

/// All elements of each result, on the host, after `work` has written them.
using Values = std::vector<std::vector<float>>;
Values values_of(const Machine &machine, const Work &work, const std::vector<Result> &results);

/// Compares the results that `work` writes with `own`.
/// @return a clause that describes the difference, "" if there is none.  Values that are not
///     finite always differ.
std::string difference(const Machine &machine, const Values &own, const Work &work,
                       const std::vector<Result> &results, const Tolerance &tolerance);

}  // namespace mpbench
