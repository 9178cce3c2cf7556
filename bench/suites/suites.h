// The suites of mpbench.
#pragma once

#include "suite.h"

namespace mpbench {

/// Every GEMM that the options ask for, after the rate of large squares.
Suite gemm_suite(const Options &options, const Machine &machine, Report &report);

/// GEMMs with every epilogue that the options ask for.
Suite epilogue_suite(const Options &options, const Machine &machine, Report &report);

/// Every batch and group of GEMMs that the options ask for.
Suite batched_suite(const Options &options, const Machine &machine, Report &report);

/// The GEMMs of every recurrent layer that the options ask for, and then the layers themselves.
Suite rnn_suite(const Options &options, const Machine &machine, Report &report);

/// Every convolution that the options ask for.
Suite conv_suite(const Options &options, const Machine &machine, Report &report);

/// Every layer that the options ask for.
Suite layers_suite(const Options &options, const Machine &machine, Report &report);

/// The optimizer step and its parts, over layouts of 10^5 to 10^9 parameters.
Suite step_suite(const Options &options, const Machine &machine, Report &report);

/// What each call of a training step costs the host.
Suite calls_suite(const Options &options, const Machine &machine, Report &report);

/// What a program waits for before its first result.
Suite startup_suite(const Options &options, const Machine &machine, Report &report);

/// What a rewrite of a graph for mixed precision costs the host.
Suite autocast_suite(const Options &options, const Machine &machine, Report &report);

/// A training step through mp_graph_* against the same calls by hand.
Suite graph_suite(const Options &options, const Machine &machine, Report &report);

/// Gradients of several ranks, averaged.
Suite allreduce_suite(const Options &options, const Machine &machine, Report &report);

}  // namespace mpbench
