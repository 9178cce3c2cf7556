// Operations of cuDNN's graph API, and the engines that its heuristic selects for them.
#include "cudnn.h"

#if __has_include(<cudnn.h>)
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "cudnn_functions.h"

namespace mpbench {
namespace {

/// A descriptor of any kind.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    MPBENCH_DNN(cudnnBackendCreateDescriptor, type, &desc_);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() { MPBENCH_CUDNN(cudnnBackendDestroyDescriptor)(desc_); }

  cudnnBackendDescriptor_t get() const { return desc_; }

  template <typename Value>
  void set(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
           const std::vector<Value> &values) {
    MPBENCH_DNN(cudnnBackendSetAttribute, desc_, attribute, type,
                static_cast<int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t attribute, const Descriptor &descriptor) {
    set(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::vector{descriptor.get()});
  }
  void finalize() { MPBENCH_DNN(cudnnBackendFinalize, desc_); }
  /// Writes at most `room` values and returns the number of existing ones.
  int64_t get_all(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
                  int64_t room, void *values) const {
    int64_t count = 0;
    MPBENCH_DNN(cudnnBackendGetAttribute, desc_, attribute, type, room, &count, values);
    return count;
  }

 private:
  cudnnBackendDescriptor_t desc_ = nullptr;
};

using Owner = std::unique_ptr<Descriptor>;
using Extents = std::vector<int64_t>;

std::vector<cudnnBackendNumericalNote_t> notes_of(const Descriptor &config) {
  const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t descriptor = engine.get();
  config.get_all(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &descriptor);
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  notes.resize(static_cast<size_t>(engine.get_all(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                  CUDNN_TYPE_NUMERICAL_NOTE,
                                                  CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes.data())));
  return notes;
}

bool has_note(const std::vector<cudnnBackendNumericalNote_t> &notes,
              cudnnBackendNumericalNote_t note) {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

/// Attributes of the operation of a pass.
struct Pass {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t first, second, out, convolution, alpha, beta;
};

#define MPBENCH_PASS(backend, prefix, first, second, out)       \
  Pass {                                                        \
    CUDNN_BACKEND_OPERATION_CONVOLUTION_##backend##_DESCRIPTOR, \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##first,    \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##second,   \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_##out,      \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_CONV_DESC,  \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_ALPHA,      \
        CUDNN_ATTR_OPERATION_CONVOLUTION_##prefix##_BETA        \
  }

Pass pass_of(mp_conv_op_t op) {
  if (op == MP_CONV_FPROP) return MPBENCH_PASS(FORWARD, FORWARD, X, W, Y);
  if (op == MP_CONV_DGRAD) return MPBENCH_PASS(BACKWARD_DATA, BWD_DATA, DY, W, DX);
  return MPBENCH_PASS(BACKWARD_FILTER, BWD_FILTER, X, DY, DW);
}

/// Describes an operation and finds its engines.
class GraphBuilder {
 public:
  explicit GraphBuilder(const Cudnn &library) : library_(library) {}

  Descriptor &make(cudnnBackendDescriptorType_t type) {
    return *parts_->emplace_back(std::make_unique<Descriptor>(type));
  }

  /// @param id  index of the tensor
  Descriptor &tensor(int64_t id, mp_dtype_t dtype, const Extents &extents, const Extents &strides,
                     bool is_by_value = false) {
    Descriptor &tensor = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, std::vector{id});
    tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector{cudnn_type(dtype)});
    tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, extents);
    tensor.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides);
    tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::vector{kAlignment});
    if (is_by_value) {
      const bool by_value = true;
      MPBENCH_DNN(cudnnBackendSetAttribute, tensor.get(), CUDNN_ATTR_TENSOR_IS_BY_VALUE,
                  CUDNN_TYPE_BOOLEAN, 1, &by_value);
    }
    tensor.finalize();
    return tensor;
  }

  /// @param tensors  their number; the next ID is that of `scale` if it is not 0
  std::vector<DnnCall> find_engines(Descriptor &operation, size_t tensors, float scale = 0) {
    operation.finalize();
    const std::vector handle{library_.handle()};
    Descriptor &graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    graph.finalize();
    Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector{CUDNN_HEUR_MODE_A});
    heuristic.finalize();

    std::vector<Descriptor *> configs;
    std::vector<cudnnBackendDescriptor_t> results;
    for (int64_t i = 0; i < Cudnn::kMaxEngines; ++i) {
      configs.push_back(&make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
      results.push_back(configs.back()->get());
    }
    const int64_t found =
        heuristic.get_all(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                          Cudnn::kMaxEngines, results.data());
    configs.resize(static_cast<size_t>(std::clamp<int64_t>(found, 0, Cudnn::kMaxEngines)));
    std::vector<DnnCall> calls;
    for (const Descriptor *config : configs) {
      try {
        add_call(calls, *config, tensors, scale);
      } catch (const std::exception &) {
        // The heuristic does not guarantee that all of its engines can run.
      }
    }
    if (calls.empty()) throw std::runtime_error("cuDNN's graph API has no engine");
    return calls;
  }

 private:
  void add_call(std::vector<DnnCall> &calls, const Descriptor &config, size_t tensors,
                float scale) const {
    const std::vector<cudnnBackendNumericalNote_t> notes = notes_of(config);
    if (has_note(notes, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) ||
        has_note(notes, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS))
      return;
    const auto plan = std::make_shared<Descriptor>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, std::vector{library_.handle()});
    plan->set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    plan->finalize();
    int64_t bytes = 0;
    plan->get_all(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
    if (bytes > Cudnn::kWorkspaceBytes) return;
    // A plan uses the descriptors of its graph.
    const auto enqueue = [&library = library_, parts = parts_, plan, tensors,
                          scale](const std::vector<void *> &all) {
      std::vector<const void *> pointers(all.begin(),
                                         all.begin() + static_cast<ptrdiff_t>(tensors));
      if (scale != 0) pointers.push_back(&scale);
      Extents ids(pointers.size());
      std::iota(ids.begin(), ids.end(), 0);
      Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
      pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids);
      pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
      pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
               std::vector{library.workspace()});
      pack.finalize();
      MPBENCH_DNN(cudnnBackendExecute, library.handle(), plan->get(), pack.get());
    };
    calls.push_back({bytes, !has_note(notes, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC), enqueue});
  }

  const Cudnn &library_;
  const std::shared_ptr<std::vector<Owner>> parts_ = std::make_shared<std::vector<Owner>>();
};

}  // namespace

/// Extents are passed in the order N C H W (K C R S); the strides make C the fastest dimension.
std::vector<DnnCall> Cudnn::convolution_engines(const mp_conv2d_desc_t &desc,
                                                mp_conv_op_t op) const {
  if (desc.dtype != desc.dtype_out)
    throw std::runtime_error("cuDNN requires equal input and output types");
  GraphBuilder builder(*this);
  int32_t p = 0, q = 0;
  check(mp_conv2d_get_output_size(&desc, &p, &q));
  const Extents x{desc.n, desc.c, desc.h, desc.w}, y{desc.n, desc.k, p, q},
      filter{desc.k, desc.c / desc.groups, desc.r, desc.s};
  const auto tensor = [&](int64_t id, const Extents &e) -> Descriptor & {
    return builder.tensor(id, desc.dtype, e, {e[1] * e[2] * e[3], 1, e[3] * e[1], e[1]});
  };

  Descriptor &conv = builder.make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const auto set = [&](cudnnBackendAttributeName_t attribute, const Extents &values) {
    conv.set(attribute, CUDNN_TYPE_INT64, values);
  };
  conv.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector{CUDNN_DATA_FLOAT});
  conv.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
           std::vector{CUDNN_CROSS_CORRELATION});
  set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {2});
  set(CUDNN_ATTR_CONVOLUTION_DILATIONS, {desc.dilation_h, desc.dilation_w});
  set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {desc.stride_h, desc.stride_w});
  set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {desc.pad_top, desc.pad_left});
  set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {desc.pad_bottom, desc.pad_right});
  conv.finalize();

  const Pass pass = pass_of(op);
  Descriptor &operation = builder.make(pass.operation);
  operation.set(pass.first, tensor(0, op == MP_CONV_DGRAD ? y : x));
  operation.set(pass.second, tensor(1, op == MP_CONV_WGRAD ? y : filter));
  operation.set(pass.out, tensor(2, op == MP_CONV_FPROP ? y : op == MP_CONV_DGRAD ? x : filter));
  operation.set(pass.convolution, conv);
  operation.set(pass.alpha, CUDNN_TYPE_FLOAT, std::vector{1.0f});
  operation.set(pass.beta, CUDNN_TYPE_FLOAT, std::vector{desc.beta});
  return builder.find_engines(operation, 3);
}

#if CUDNN_VERSION >= 91900

/// Extents are passed in the order batch, heads, rows, elements; rows and heads are stored as in
/// mpcore.
std::vector<DnnCall> Cudnn::attention_engines(const LayerShape &shape, mp_dtype_t dtype) const {
  if (shape.form != "full") throw std::runtime_error("cuDNN's attention operation has no mask");
  GraphBuilder builder(*this);
  const auto tensor = [&](int64_t id, const char *heads, const char *dim) -> Descriptor & {
    const int64_t b = shape["b"], l = shape["l"], h = shape[heads], d = shape[dim];
    return builder.tensor(id, dtype, {b, h, l, d}, {l * h * d, d, h * d, 1});
  };
  const int64_t b = shape["b"], l = shape["l"], h = shape["h"];
  Descriptor &q = tensor(0, "h", "d"), &k = tensor(1, "kv", "d"), &v = tensor(2, "kv", "dv");
  Descriptor &o = tensor(3, "h", "dv");
  Descriptor &lse = builder.tensor(4, MP_FP32, {b, h, l, 1}, {h * l, l, 1, 1});
  const int64_t tensors = shape.is_forward ? 5 : 9;
  Descriptor &scale = builder.tensor(tensors, MP_FP32, {1, 1, 1, 1}, {1, 1, 1, 1}, true);
  Descriptor &operation =
      builder.make(shape.is_forward ? CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR
                                    : CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR);
#define MPBENCH_SDPA(pass)                                          \
  operation.set(CUDNN_ATTR_OPERATION_SDPA_##pass##_QDESC, q);       \
  operation.set(CUDNN_ATTR_OPERATION_SDPA_##pass##_KDESC, k);       \
  operation.set(CUDNN_ATTR_OPERATION_SDPA_##pass##_VDESC, v);       \
  operation.set(CUDNN_ATTR_OPERATION_SDPA_##pass##_ODESC, o);       \
  operation.set(CUDNN_ATTR_OPERATION_SDPA_##pass##_STATSDESC, lse); \
  operation.set(CUDNN_ATTR_OPERATION_SDPA_##pass##_SCALEDESC, scale)
  if (shape.is_forward) {
    MPBENCH_SDPA(FWD);
  } else {
    MPBENCH_SDPA(BWD);
    operation.set(CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC, tensor(5, "h", "dv"));
    operation.set(CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC, tensor(6, "h", "d"));
    operation.set(CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC, tensor(7, "kv", "d"));
    operation.set(CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC, tensor(8, "kv", "dv"));
  }
  return builder.find_engines(operation, static_cast<size_t>(tensors),
                              1 / std::sqrt(static_cast<float>(shape["d"])));
}

#else

std::vector<DnnCall> Cudnn::attention_engines(const LayerShape &, mp_dtype_t) const {
  throw std::runtime_error("mpbench was built with a cuDNN before 9.19");
}

#endif

}  // namespace mpbench

#endif
