// The suites of mpbench.
#pragma once

#include "suite.h"

namespace mpbench {

/// GEMMs that the options select, after the rate of large squares.
Suite gemm_suite(const Options &options, const Machine &machine, Report &report);

/// GEMMs with epilogues that the options select.
Suite epilogue_suite(const Options &options, const Machine &machine, Report &report);

/// Batches and groups of GEMMs that the options select.
Suite batched_suite(const Options &options, const Machine &machine, Report &report);

/// GEMMs of the recurrent layers that the options select, then the layers.
Suite rnn_suite(const Options &options, const Machine &machine, Report &report);

/// Convolutions that the options select.
Suite conv_suite(const Options &options, const Machine &machine, Report &report);

/// Layers that the options select.
Suite layers_suite(const Options &options, const Machine &machine, Report &report);

/// Optimizer step and its parts, over layouts of 10^5 to 10^9 parameters.
Suite step_suite(const Options &options, const Machine &machine, Report &report);

/// Host time of each call of a training step.
Suite calls_suite(const Options &options, const Machine &machine, Report &report);

/// Time from the start of a program to its first result.
Suite startup_suite(const Options &options, const Machine &machine, Report &report);

/// Host time of a graph rewrite for mixed precision.
Suite autocast_suite(const Options &options, const Machine &machine, Report &report);

/// Training step through mp_graph_* compared with the same calls without a graph.
Suite graph_suite(const Options &options, const Machine &machine, Report &report);

/// Gradients averaged over several ranks.
Suite allreduce_suite(const Options &options, const Machine &machine, Report &report);

}  // namespace mpbench
