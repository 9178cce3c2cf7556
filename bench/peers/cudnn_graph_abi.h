// cuDNN's graph API as far as one convolution needs it, declared here so that the bench builds without
// cuDNN.  check_cudnn_graph_abi.cpp compares every line with its headers, where they are installed.
// Source of names and values: cuDNN API reference, "cudnn_graph" (versions 8 and 9).
#pragma once

#include <cstdint>

#include "cudnn_abi.h"

namespace mpbench::cudnn {

using GraphDesc = void *;  // cudnnBackendDescriptor_t

enum GraphDescType : int {
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristic = 4,
  kPlan = 5,
  kForward = 10,
  kBackwardFilter = 11,
  kBackwardData = 12,
  kGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
};

enum GraphType : int {
  kHandleType = 0,
  kDataTypeType = 1,
  kInt64Type = 3,
  kFloatType = 4,
  kPointerType = 6,
  kModeType = 7,
  kHeuristicModeType = 8,
  kNoteType = 11,
  kDescType = 15,
};

enum GraphAttribute : int {
  kConvComputeType = 100,
  kConvMode = 101,
  kConvDilations = 102,
  kConvStrides = 103,
  kConvPostPaddings = 104,
  kConvPrePaddings = 105,
  kConvSpatialDims = 106,
  kHeuristicMode = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kConfigEngine = 300,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspaceBytes = 402,
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConv = 702,
  kForwardFilter = 703,
  kForwardX = 704,
  kForwardY = 705,
  kDataAlpha = 706,
  kDataBeta = 707,
  kDataConv = 708,
  kDataFilter = 709,
  kDataDx = 710,
  kDataDy = 711,
  kFilterAlpha = 712,
  kFilterBeta = 713,
  kFilterConv = 714,
  kFilterDfilter = 715,
  kFilterX = 716,
  kFilterDy = 717,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorDataType = 901,
  kTensorExtents = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNotes = 1303,
};

enum HeuristicMode : int { kModeA = 3 };

/// What an engine does to the numbers.
enum NumericalNote : int { kDownConvertInputs = 1, kReducedPrecisionReduction = 2 };
constexpr int kNoteCount = 10;

struct GraphFunctions {
  Status (*create)(GraphDescType, GraphDesc *);
  Status (*destroy)(GraphDesc);
  Status (*finalize)(GraphDesc);
  Status (*set)(GraphDesc, GraphAttribute, GraphType, int64_t count, const void *elems);
  Status (*get)(GraphDesc, GraphAttribute, GraphType, int64_t room, int64_t *count, void *elems);
  Status (*execute)(Handle, GraphDesc plan, GraphDesc pack);
};

}  // namespace mpbench::cudnn
