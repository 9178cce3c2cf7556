#include "graph/executor/executor.h"

#include <algorithm>
#include <array>
#include <set>

#include "graph/autocast_object.h"

namespace mp::graph {

namespace {

List make_list(mp_context_t context, const std::vector<void *> &data,
               const std::vector<int64_t> &numel, const std::vector<mp_dtype_t> &dtypes) {
  auto desc = zero_struct<mp_tensor_list_desc_t>();
  desc.count = static_cast<uint32_t>(data.size());
  desc.dtype = MP_FP32;
  desc.data = data.data();
  desc.numel = numel.data();
  desc.dtypes = dtypes.data();
  mp_tensor_list_t list = nullptr;
  require_success(mp_tensor_list_create(&list, context, &desc));
  return List(list);
}

constexpr char kRequiresLoss[] =
    "requires a loss: call mp_graph_set_loss or mp_graph_seed_gradient before mp_graph_compile";

/// Appends the backward pass to the forward pass.
/// @return the gradient of each tensor
std::vector<int32_t> append_backward(Graph &graph) {
  if (!graph.has_backward()) {
    for (const Tensor &t : graph.tensors)
      MP_REQUIRE(!t.keeps_gradient, MP_ERROR_INVALID_ARGUMENT, "the gradient of ", t.name,
                 " requires a loss; call mp_graph_set_loss or mp_graph_seed_gradient");
    return std::vector<int32_t>(graph.tensors.size(), kNone);
  }
  std::vector<int32_t> gradients = Gradients(graph).append_all();
  bool has_any = false;
  for (size_t t = 0; t < gradients.size(); ++t) {
    const bool is_parameter = graph.tensors[t].role == Role::parameter;
    if (!is_parameter && !graph.tensors[t].keeps_gradient) continue;
    MP_REQUIRE(gradients[t] != kNone, MP_ERROR_INVALID_ARGUMENT, "the loss must depend on ",
               is_parameter ? "parameter " : "tensor ", graph.tensors[t].name);
    graph.tensor(gradients[t]).is_output = true;
    has_any |= is_parameter;
  }
  MP_REQUIRE(has_any, MP_ERROR_INVALID_ARGUMENT,
             "the loss requires at least one parameter; call mp_graph_add_parameter");
  gradients.resize(graph.tensors.size(), kNone);
  return gradients;
}

/// Returns the inputs of the graph that each phase requires.
std::array<std::set<int32_t>, kPhases> required_inputs(const Graph &graph) {
  std::vector<bool> is_read(graph.tensors.size());
  for (const Node &node : graph.nodes)
    for (const Input &input : node.inputs)
      if (input.tensor != kNone) is_read[static_cast<size_t>(input.tensor)] = true;
  std::array<std::set<int32_t>, kPhases> required;
  for (const Node &node : graph.nodes) {
    if (node.is_absorbed) continue;
    const Phase phase = phase_of(graph, node);
    const auto require = [&](const Input &input) {
      if (input.tensor != kNone && graph.tensor(input.tensor).role == Role::input)
        required[static_cast<size_t>(phase)].insert(input.tensor);
    };
    const bool has_readers = std::ranges::any_of(node.outputs, [&](int32_t output) {
      return output != kNone && is_read[static_cast<size_t>(output)];
    });
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      // Readers of the loss are skipped together with the loss.
      const bool leaves_readers =
          node.operation->input_has(i, kTriggers) && has_readers && phase != Phase::loss;
      if (leaves_readers || !node.operation->input_has(i, kUnbound)) require(node.inputs[i]);
    }
    require(node.fused.bias);
    require(node.fused.aux);
  }
  return required;
}

}  // namespace

// ---------------------------------------------------------------------------- compilation

Executor::Executor(const Graph &described, mp_autocast_t policy, mp_context_t context,
                   int32_t measured_kernels)
    : context_(context), measured_kernels_(measured_kernels), graph_(described) {
  keeps_io_ = policy != nullptr && (policy->policy.config.flags & MP_AUTOCAST_FLAG_KEEP_IO) != 0;
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    // Adds tensors but no nodes.
    Node node = std::move(graph_.nodes[i]);
    add_kept_outputs(graph_, node);
    graph_.nodes[i] = std::move(node);
  }
  gradients_ = append_backward(graph_);
  defer_readers_of_loss(graph_);
  reports_ = cast(graph_, policy, context);
  fuse(graph_);
  require_order(graph_);

  Emitter emitter(graph_, context);
  emitter.emit_all();
  plan_workspace(described, emitter);
  required_ = required_inputs(graph_);
  allocate(emitter);
  fill_constants(emitter);
  make_lists();
  launches_[graph_.batch] = std::move(emitter.launches);
}

/// Plans the workspace for smaller batches too, which may need more: with fewer tiles, sums are
/// split more.  Tries 2 batches per octave, at most 32; set_batch() handles the others.
void Executor::plan_workspace(const Graph &described, Emitter &full) {
  constexpr int kOctaves = 16;
  const int64_t whole = graph_.batch;
  std::set<int64_t> batches;
  for (int octave = 0; octave < kOctaves; ++octave)
    for (const int64_t part : {whole - whole / 4, whole / 2})
      if (part >> octave > 0) batches.insert(part >> octave);
  batches.erase(whole);
  for (const int64_t batch : batches) {
    try {
      set_extents(described, batch);
    } catch (const CallError &) {
      continue;  // a shape that does not fit this batch; set_batch() rejects it too
    }
    Emitter emitter(graph_, context_);
    emitter.emit_all();
    full.needs_workspace(emitter.workspace_bytes);
  }
  if (!batches.empty()) set_extents(described, whole);
}

void Executor::allocate(const Emitter &emitted) {
  layout_ = lay_out(graph_, emitted, gradients_);
  const ContextPtr &shared = context_->shared;
  block_ = allocate_device(shared, layout_.bytes);
  workspace_ = {block_.get() + layout_.workspace_offset, emitted.workspace_bytes};
  addresses_.assign(layout_.offset.size(), nullptr);
  for (AddressIndex index = 0; index < layout_.offset.size(); ++index) {
    const AddressIndex root = layout_.root_of(index);
    addresses_[index] = address_in_block(root);
    if (addresses_[index] == nullptr)
      bound_addresses_[static_cast<int32_t>(root / 2)].push_back(index);
  }
  for (size_t t = 0; t < graph_.tensors.size(); ++t)
    if (graph_.tensors[t].role == Role::input) bind(static_cast<int32_t>(t), nullptr);
}

void *Executor::address_in_block(AddressIndex root) const {
  const size_t offset = layout_.offset[root];
  return offset != Layout::kNowhere ? block_.get() + offset : nullptr;
}

void Executor::fill_constants(const Emitter &emitted) {
  if (layout_.bytes > 0)
    require_success(mp_memset(context_, block_.get(), 0, layout_.bytes, nullptr));
  const AddressTable table(graph_);
  for (const FloatType &type : kFloatTypes) {
    const int64_t count = emitted.num_ones[static_cast<size_t>(type.dtype)];
    if (count == 0) continue;
    // 1 = sigmoid(0) + sigmoid(0), computed from zeroed memory.
    void *const ones = addresses_[table.ones(type.dtype)];
    mp_pointwise_desc_t half = mp_pointwise_desc_default(MP_POINTWISE_COPY, 1, count, type.dtype);
    half.activation = MP_ACT_SIGMOID;
    require_success(mp_pointwise(context_, &half, ones, nullptr, ones, nullptr, nullptr));
    const mp_pointwise_desc_t twice =
        mp_pointwise_desc_default(MP_POINTWISE_ADD, 1, count, type.dtype);
    require_success(mp_pointwise(context_, &twice, ones, ones, ones, nullptr, nullptr));
  }
  require_success(mp_stream_sync(context_, nullptr));
}

void Executor::make_lists() {
  std::vector<void *> grads, masters, models;
  std::vector<mp_dtype_t> grad_dtypes, fp32, model_dtypes;
  std::vector<int64_t> numel;
  for (size_t t = 0; t < graph_.tensors.size(); ++t) {
    const Tensor &tensor = graph_.tensors[t];
    if (tensor.role != Role::parameter) continue;
    const auto id = static_cast<int32_t>(t);
    numel.push_back(tensor.numel());
    masters.push_back(address({id}));
    fp32.push_back(MP_FP32);
    models.push_back(tensor.has_model_copy() ? address({id, true}) : nullptr);
    model_dtypes.push_back(tensor.has_model_copy() ? tensor.copy_dtype : MP_FP16);
    if (tensor.has_model_copy())
      pairs_[id] = {make_list(context_, {masters.back()}, {numel.back()}, {MP_FP32}),
                    make_list(context_, {models.back()}, {numel.back()}, {model_dtypes.back()})};
    if (!has_backward()) continue;
    const int32_t gradient = gradients_[t];
    grads.push_back(address({gradient}));
    grad_dtypes.push_back(graph_.tensor(gradient).dtype);
  }
  master_ = make_list(context_, masters, numel, fp32);
  if (!pairs_.empty()) model_ = make_list(context_, models, numel, model_dtypes);
  if (has_backward()) grads_ = make_list(context_, grads, numel, grad_dtypes);
}

// ---------------------------------------------------------------------------- execution

void Executor::bind(int32_t input, const void *data) {
  // Inputs are only read.
  for (const AddressIndex index : bound_addresses_[input])
    addresses_[index] = const_cast<void *>(data);
  if (graph_.tensor(input).copy_dtype == MP_DTYPE_NONE) return;
  const AddressIndex copy = AddressTable::of({input, true});
  addresses_[copy] = data != nullptr ? address_in_block(layout_.root_of(copy)) : nullptr;
}

void Executor::set_extents(const Graph &described, int64_t batch) {
  Graph trial = described;
  trial.batch = batch;
  for (Tensor &t : trial.tensors)
    if (t.role == Role::input && !t.extent.empty()) t.extent[0] = batch;
  for (const Node &node : trial.nodes) node.operation->infer(trial, node);
  for (size_t t = 0; t < trial.tensors.size(); ++t)
    graph_.tensors[t].extent = trial.tensors[t].extent;
  for (Tensor &t : graph_.tensors)
    if (t.gradient_of != kNone) t.extent = graph_.tensor(t.gradient_of).extent;
  graph_.batch = batch;
}

void Executor::set_batch(const Graph &described, int64_t batch) {
  const int64_t before = graph_.batch;
  set_extents(described, batch);
  try {
    make_launches();
  } catch (...) {
    set_extents(described, before);
    throw;
  }
  is_trained_ = false;
}

void Executor::make_launches() {
  if (launches_.contains(graph_.batch)) return;
  Emitter emitter(graph_, context_);
  emitter.emit_all();
  if (emitter.workspace_bytes > workspace_.bytes) {
    // Kernels in flight and captured CUDA graphs still use the previous workspace.
    more_workspace_.push_back(allocate_device(context_->shared, emitter.workspace_bytes));
    workspace_ = {more_workspace_.back().get(), emitter.workspace_bytes};
    // Measured kernels belong to a workspace size.
    for (auto &[size, launches] : launches_)
      for (Launch &launch : launches) launch.has_run = false;
  }
  launches_[graph_.batch] = std::move(emitter.launches);
}

void Executor::write(int32_t id, const float *values, mp_stream_t stream) {
  const Tensor &t = graph_.tensor(id);
  require_success(mp_memcpy(context_, address({id}), values, t.bytes(false), stream));
  const auto pair = pairs_.find(id);
  if (pair == pairs_.end()) return;
  const auto &[master, model] = pair->second;
  require_success(mp_masters_to_model(master.get(), model.get(), nullptr, nullptr, stream));
}

void Executor::run(std::initializer_list<Phase> phases, LaunchArgs run) {
  for (const Phase phase : phases)
    for (const int32_t input : required_[static_cast<size_t>(phase)])
      MP_REQUIRE(address({input}) != nullptr, MP_ERROR_INVALID_ARGUMENT, "input ",
                 graph_.tensor(input).name, " is not bound; call mp_graph_bind");
  run.context = context_;
  run.addresses = addresses_.data();
  run.workspace = workspace_.bytes > 0 ? workspace_.ptr : nullptr;
  run.workspace_bytes = workspace_.bytes;
  float *const found_inf = run.stats.found_inf;
  for (Launch &launch : launches_.at(graph_.batch)) {
    if (std::ranges::find(phases, launch.phase) == phases.end()) continue;
    const Measuring measuring(launch.has_run ? 0 : measured_kernels_);
    // Forward nodes that run after the loss compute no gradients, so their infinities do not skip
    // the step.
    run.stats.found_inf = launch.phase == Phase::backward ? found_inf : nullptr;
    run.inputs = &launch.inputs;
    run.outputs = &launch.outputs;
    const mp_status_t status = launch.call(run);
    if (status != MP_SUCCESS) fail(status, launch.what, ": ", mp_last_error());
    launch.has_run = true;
  }
}

void Executor::forward(mp_graph_mode_t mode, mp_stream_t stream) {
  const bool is_training = mode == MP_GRAPH_MODE_TRAINING;
  MP_REQUIRE(!is_training || has_backward(), MP_ERROR_INVALID_ARGUMENT,
             "mode = MP_GRAPH_MODE_TRAINING ", kRequiresLoss);
  is_trained_ = false;
  LaunchArgs pass;
  pass.is_training = is_training;
  pass.stream = stream;
  if (is_training || !can_compute_loss())
    run({Phase::forward}, pass);
  else
    run({Phase::forward, Phase::loss, Phase::after_loss}, pass);
  is_trained_ = is_training;
}

bool Executor::can_compute_loss() const {
  const Node *const loss = graph_.loss_node();
  if (loss == nullptr) return false;
  for (size_t i = 0; i < loss->inputs.size(); ++i)
    if (loss->operation->input_has(i, kTriggers) && address(loss->inputs[i]) == nullptr)
      return false;
  return true;
}

void Executor::backward(mp_scaler_t scaler, mp_stream_t stream) {
  MP_REQUIRE(has_backward(), MP_ERROR_INVALID_ARGUMENT, kRequiresLoss);
  MP_REQUIRE(
      is_trained_, MP_ERROR_INVALID_ARGUMENT,
      "requires mp_graph_forward with MP_GRAPH_MODE_TRAINING as the previous pass, with the same "
      "batch size");
  is_trained_ = false;  // backward overwrites activations of the forward pass
  LaunchArgs pass;
  pass.is_training = true;
  pass.stream = stream;
  if (scaler != nullptr) {
    pass.loss_scale = mp_scaler_get_scale_address(scaler);
    pass.stats.found_inf = mp_scaler_get_found_inf_address(scaler);
  }
  run({Phase::after_loss, Phase::backward}, pass);
}

int64_t Executor::step(mp_stream_t stream) const {
  int64_t t = 0;
  const void *const steps = address_in_block(AddressTable(graph_).steps());
  if (steps == nullptr) return t;
  require_success(mp_memcpy(context_, &t, steps, sizeof t, stream));
  require_success(mp_stream_sync(context_, stream));
  return t;
}

void Executor::set_step(int64_t t, mp_stream_t stream) {
  void *const steps = address_in_block(AddressTable(graph_).steps());
  if (steps == nullptr) return;
  require_success(mp_memcpy(context_, steps, &t, sizeof t, stream));
  require_success(mp_stream_sync(context_, stream));
}

// ---------------------------------------------------------------------------- queries

namespace {

const char *name_of(Phase phase) {
  return phase == Phase::forward ? "forward" : phase == Phase::backward ? "backward" : "inference";
}

}  // namespace

mp_graph_tensor_t shape_of(const Tensor &tensor) {
  auto info = zero_struct<mp_graph_tensor_t>();
  info.name = tensor.name.c_str();
  info.rank = static_cast<int32_t>(tensor.extent.size());
  std::ranges::copy(tensor.extent, info.extent);
  info.dtype = tensor.dtype;
  info.dtype_copy = tensor.copy_dtype;
  return info;
}

mp_graph_tensor_t Executor::tensor(int32_t id) const {
  const Tensor &t = graph_.tensor(id);
  mp_graph_tensor_t info = shape_of(t);
  const bool lasts = t.role != Role::activation || t.is_output;
  if (lasts) info.data = address({id});
  if (lasts && t.copy_dtype != MP_DTYPE_NONE) info.copy = address({id, true});
  if (keeps_io_ && t.is_output && t.copy_dtype == MP_FP32) {
    std::swap(info.dtype, info.dtype_copy);
    std::swap(info.data, info.copy);
  }
  const int32_t gradient = gradients_[static_cast<size_t>(id)];
  if (gradient != kNone) {
    info.grad = address({gradient});
    info.dtype_grad = graph_.tensor(gradient).dtype;
  }
  return info;
}

mp_graph_memory_t Executor::memory() const {
  mp_graph_memory_t m = layout_.memory;
  m.workspace = static_cast<int64_t>(layout_.bytes - layout_.workspace_offset);
  for (const DeviceBuffer &more : more_workspace_)
    m.workspace += static_cast<int64_t>(more.get_deleter().bytes);
  return m;
}

std::string Executor::description() const {
  std::string text;
  for (const Launch &launch : launches_.at(graph_.batch))
    text += std::string(name_of(launch.phase)) + "  " + launch.what + "\n";
  return text;
}

}  // namespace mp::graph
