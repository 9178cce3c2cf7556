// The families of mpbench.
#pragma once

#include "bench/suites/suite.h"

namespace mpbench {

/// Every product that the options ask for, after the peak.
Family gemm_family(const Options &options, const Machine &machine, Report &report);

/// The products of every recurrent layer that the options ask for.
Family rnn_family(const Options &options, const Machine &machine, Report &report);

/// Every convolution that the options ask for.
Family conv_family(const Options &options, const Machine &machine, Report &report);

/// The optimizer step and its parts, over layouts of 10^5 to 10^9 parameters.
Family step_family(const Options &options, const Machine &machine, Report &report);

/// What each call of a training step costs the host.
Family calls_family(const Options &options, const Machine &machine, Report &report);

/// What a program waits for before its first result.
Family startup_family(const Options &options, const Machine &machine, Report &report);

/// Gradients of several ranks, averaged.
Family allreduce_family(const Options &options, const Machine &machine, Report &report);

}  // namespace mpbench
