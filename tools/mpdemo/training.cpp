// Training loop, with optimizer and loss scaler.
#include "training.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "random.h"
#include "support/progress.h"

namespace mpdemo {
namespace {

constexpr int64_t kStepsPerFetch = 50;
constexpr int64_t kWrittenCharacters = 600;

double mean(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Progress of one run on stderr: on a terminal a bar that redraws itself after a carriage return,
/// and whose last state is the line of the run; otherwise one line per epoch.
class Progress {
 public:
  Progress(std::string run_name, int64_t num_steps)
      : run_name_(std::move(run_name)),
        num_steps_(num_steps),
        is_terminal_(isatty(STDERR_FILENO)) {}

  /// @param loss  most recently fetched loss.
  void show(int64_t steps_done, double loss) const {
    if (!is_terminal_) return;
    const double share = static_cast<double>(steps_done) / static_cast<double>(num_steps_);
    std::fprintf(stderr, "%s  %-16s  %s  loss %.3f", mptools::kClearLine, run_name_.c_str(),
                 mptools::bar_text(share).c_str(), loss);
    std::fflush(stderr);
  }

  void epoch_done(int64_t steps_done, double loss, const std::string &test, double seconds) const {
    if (is_terminal_ && steps_done < num_steps_) return;
    std::fprintf(stderr, "%s  %-16s  step %4lld of %lld  loss %.3f  test %s  %.1f s\n",
                 is_terminal_ ? mptools::kClearLine : "", run_name_.c_str(),
                 static_cast<long long>(steps_done), static_cast<long long>(num_steps_), loss,
                 test.c_str(), seconds);
  }

 private:
  std::string run_name_;
  int64_t num_steps_;
  bool is_terminal_;
};

/// Rest of a training step: SGD with momentum or Adam on fp32 master weights, and the loss scaler,
/// in one call of mp_scale_step.  The call checks, unscales, clips, updates, rounds the 16-bit copy
/// and adapts the loss scale on the device; the host never waits for the outcome.
class Update {
 public:
  /// @param loss_weight  factor of the loss; the weights should not depend on it.
  /// @param num_steps    of the complete training, for the learning rates.
  /// @param scaler       none: S is 1 without a scaler object.
  Update(mp_context_t context, const Network &network, const Recipe &recipe, float loss_weight,
         int64_t num_steps, const std::optional<mp_scaler_config_t> &scaler);

  /// Takes one step with the gradients in the network.
  /// @param steps  previous steps.
  void step(int64_t steps, const mp_comm_t &comm);

  /// NULL without a scaler, which mpcore treats as S = 1.
  mp_scaler_t scaler() const { return scaler_.get(); }

  /// Synchronizes; none without a scaler.
  std::optional<mp_scaler_state_t> scaler_state_sync() const;
  void add_memory(Memory &memory) const { memory.optimizer_state += moment_bytes_; }

 private:
  mp_param_group_t param_group(float lr, float weight_decay) const;

  Recipe recipe_;
  float loss_weight_;
  int64_t num_steps_;
  int64_t moment_bytes_ = 0;
  Scaler scaler_;
  Optimizer optimizer_;
};

Update::Update(mp_context_t context, const Network &network, const Recipe &recipe,
               float loss_weight, int64_t num_steps,
               const std::optional<mp_scaler_config_t> &scaler)
    : recipe_(recipe), loss_weight_(loss_weight), num_steps_(num_steps) {
  std::vector<uint32_t> tensor_group;  // only matrices decay
  for (const Variable &variable : network.variables()) {
    if (!variable.is_trained) continue;
    tensor_group.push_back(variable.rank > 1 ? 0 : 1);
    moment_bytes_ += (recipe.kind == MP_OPT_ADAM ? 2 : 1) * 4 * variable.numel;
  }
  const mp_param_group_t groups[] = {param_group(recipe.peak_lr, recipe.matrix_decay),
                                     param_group(recipe.peak_lr, 0)};
  mp_optimizer_desc_t desc = mp_optimizer_desc_default(recipe.kind);
  if (recipe.matrix_decay > 0) desc.flags |= MP_OPT_FLAG_DECOUPLED_DECAY;
  desc.groups = groups;
  desc.num_groups = 2;
  desc.tensor_group = tensor_group.data();
  const mp::graph_lists lists = network.lists();
  desc.grads = lists.grads;
  desc.master = lists.master;
  desc.model = lists.model;
  optimizer_ = make_optimizer(context, desc);
  if (scaler) scaler_ = make_scaler(context, *scaler);
}

/// loss_weight is a power of two and cancels exactly: a step of SGD is linear in the gradient, and
/// a step of Adam does not change if gradients and eps are scaled together.  Clipping adds 1e-6 to
/// the norm, which does not cancel.
mp_param_group_t Update::param_group(float lr, float weight_decay) const {
  const bool is_adam = recipe_.kind == MP_OPT_ADAM;
  mp_param_group_t h = mp_param_group_default(recipe_.kind, is_adam ? lr : lr / loss_weight_);
  if (is_adam) {
    h.beta2 = recipe_.beta2;
    h.eps *= loss_weight_;
  }
  h.weight_decay = weight_decay;
  if (recipe_.warmup_steps > 0) {
    h.lr_schedule = MP_LR_COSINE;
    h.warmup_steps = recipe_.warmup_steps;
    h.decay_steps = static_cast<int32_t>(std::max<int64_t>(num_steps_ - h.warmup_steps, 1));
    h.lr_end = 0.1f * h.lr;
  }
  return h;
}

void Update::step(int64_t steps, const mp_comm_t &comm) {
  // MP_LR_POLYNOMIAL would compute these rates on the device, with other last bits than those of
  // the published results.
  if (recipe_.warmup_steps == 0) {
    const float remaining = 1.0f - static_cast<float>(steps) / static_cast<float>(num_steps_);
    const mp_param_group_t group = param_group(recipe_.peak_lr * remaining, 0);
    for (uint32_t i = 0; i < 2; ++i)
      check(mp_optimizer_set_group(optimizer_.get(), i, &group, kStream));
  }
  // The gradients are equal on all ranks, but an activation gradient may overflow on one rank only.
  mp_step_options_t options = mp_step_options_default();
  options.comm = &comm;
  options.max_grad_norm = recipe_.max_grad_norm * loss_weight_;
  check(mp_scale_step(optimizer_.get(), scaler_.get(), &options, kStream));
}

std::optional<mp_scaler_state_t> Update::scaler_state_sync() const {
  if (!scaler_) return std::nullopt;
  mp_scaler_state_t state;
  MP_INIT_STRUCT(&state);
  check(mp_scaler_get_state_sync(scaler_.get(), &state, kStream));
  return state;
}

/// One rank of a training run.
class Run {
 public:
  Run(mp_context_t context, const mp_comm_t &comm, const DeviceData &data,
      const Architecture &architecture, const Setting &setting, const RunPlan &plan, uint64_t seed)
      : context_(context),
        comm_(comm),
        data_(data),
        architecture_(architecture),
        random_(seed),
        num_steps_(setting.num_steps),
        form_({.dtype = plan.dtype,
               .batch = architecture.batch / comm.world_size,
               .steps = architecture.steps,
               // Scales the mean over the rank's rows to its part of the mean over all rows.
               .loss_weight = setting.loss_weight / static_cast<float>(comm.world_size),
               .is_observed = false}),
        network_(context, architecture, form_),
        update_(context, network_, architecture.recipe, setting.loss_weight, num_steps_,
                plan.scaler),
        loss_history_(make_buffer(context, num_steps_, MP_FP32)),
        scale_history_(make_buffer(context, num_steps_, MP_FP32)) {
    if (comm.rank == 0) progress_.emplace(plan.name, num_steps_);
    result_.plan = plan;
    network_.initialise(random_);
    check(mp_stream_sync(context, kStream));
  }

  RunResult run() {
    while (steps_ < num_steps_) {
      train_epoch();
      if (!progress_) continue;
      result_.test = architecture_.metric->of(evaluate_sync());
      progress_->epoch_done(steps_, result_.train_loss, architecture_.metric->shown(result_.test),
                            result_.seconds);
    }
    result_.weights = network_.masters_sync();
    result_.scaler = update_.scaler_state_sync();
    result_.memory = network_.memory();
    update_.add_memory(result_.memory);
    result_.explanation = network_.explanation(MP_AUTOCAST_FORMAT_TEXT);
    result_.explanation_json = network_.explanation(MP_AUTOCAST_FORMAT_JSON);
    if (form_.dtype == MP_FP32)
      result_.gradients = gradients_of(data_.train.series.front().front());
    if (architecture_.reads_text()) {
      Network writer = observed(1, architecture_.context);
      result_.text =
          write_text(context_, writer, architecture_.context, kWrittenCharacters, random_);
    }
    return std::move(result_);
  }

 private:
  void train_epoch() {
    const auto &series = data_.train.series;
    std::vector<size_t> order(series.size());
    std::iota(order.begin(), order.end(), 0);
    random_.shuffle(static_cast<int64_t>(order.size()), [&](int64_t i, int64_t j) {
      std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(j)]);
    });

    const int64_t first_step = steps_;
    const auto start = std::chrono::steady_clock::now();
    for (const size_t index : order) {
      for (const Batch &batch : series[index]) {
        if (steps_ == num_steps_) break;
        enqueue_step(batch);
        if (steps_ % kStepsPerFetch == 0) fetch_history_sync();
      }
    }
    fetch_history_sync();
    result_.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result_.train_loss = mean(std::span(result_.losses).subspan(static_cast<size_t>(first_step)));
  }

  void enqueue_step(const Batch &batch) {
    if (update_.scaler() != nullptr)
      record(mp_scaler_get_scale_address(update_.scaler()), scale_history_);
    network_.forward(batch, MP_GRAPH_MODE_TRAINING);
    network_.backward(update_.scaler());
    record(network_.loss(), loss_history_);
    all_reduce(network_);
    update_.step(steps_++, comm_);
  }

  void record(const float *value, const Buffer &history) {
    check(mp_memcpy(context_, history.as<float>() + steps_, value, sizeof(float), kStream));
  }

  /// Replaces gradients by the sum over all ranks.
  void all_reduce(const Network &network) {
    check(mp_grads_all_reduce(network.lists().grads, &comm_, 1.0f, 1.0f, kStream));
  }

  void fetch_history_sync() {
    const int64_t fetched = static_cast<int64_t>(result_.losses.size());
    if (fetched == steps_) return;
    for (const float weighted :
         download_sync(context_, loss_history_.as<float>() + fetched, steps_ - fetched))
      result_.losses.push_back(weighted / form_.loss_weight);
    if (progress_)
      progress_->show(steps_,
                      mean(std::span(result_.losses).subspan(static_cast<size_t>(fetched))));
    if (update_.scaler() == nullptr) return;
    const std::vector<float> scales =
        download_sync(context_, scale_history_.as<float>() + fetched, steps_ - fetched);
    result_.scales.insert(result_.scales.end(), scales.begin(), scales.end());
  }

  Evaluation evaluate_sync() {
    Evaluation sums;
    for (const std::vector<Batch> &series : data_.test.series) {
      for (const Batch &batch : series) {
        network_.forward(batch, MP_GRAPH_MODE_INFERENCE);
        const std::vector<float> losses =
            download_sync(context_, network_.row_loss(), batch.size * form_.steps);
        sums.nats += std::accumulate(losses.begin(), losses.end(), 0.0) / form_.loss_weight;
        sums.correct += download_sync(context_, network_.num_correct(), 1).front();
        sums.rows += batch.counted;
      }
    }
    return sums;
  }

  Gradients gradients_of(const Batch &batch) {
    Network twin = observed(form_.batch, form_.steps);
    twin.forward(batch, MP_GRAPH_MODE_TRAINING);
    twin.backward(nullptr);
    all_reduce(twin);
    return {twin.weight_gradients_sync(), twin.activation_gradients_sync()};
  }

  /// Returns a copy of the network in another form, with observed tensors.
  Network observed(int64_t batch, int64_t steps) const {
    Form form = form_;
    form.batch = batch;
    form.steps = steps;
    form.is_observed = true;
    Network twin(context_, architecture_, form);
    twin.copy_from(network_);
    return twin;
  }

  mp_context_t context_;
  const mp_comm_t &comm_;
  const DeviceData &data_;
  const Architecture &architecture_;
  Random random_;
  int64_t num_steps_;
  int64_t steps_ = 0;  ///< enqueued, including skipped ones
  Form form_;
  Network network_;
  Update update_;
  Buffer loss_history_, scale_history_;
  std::optional<Progress> progress_;  ///< rank 0 only
  RunResult result_ = {};
};

/// Returns the result of rank 0, with the mean losses of all ranks.
/// @throws std::runtime_error if the replicas have not remained equal
RunResult combined(std::vector<RunResult> &ranks) {
  RunResult &result = ranks.front();
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    if (ranks[rank].weights != result.weights)
      throw std::runtime_error("rank " + std::to_string(rank) +
                               " and rank 0 have different weights");
    std::transform(result.losses.begin(), result.losses.end(), ranks[rank].losses.begin(),
                   result.losses.begin(), std::plus<>());
    result.train_loss += ranks[rank].train_loss;
  }
  for (float &loss : result.losses) loss /= static_cast<float>(ranks.size());
  result.train_loss /= static_cast<double>(ranks.size());
  return std::move(result);
}

}  // namespace

RunResult train(Ranks &ranks, const std::vector<DeviceData> &data, const Architecture &architecture,
                const Setting &setting, const RunPlan &plan, uint64_t seed) {
  std::vector<RunResult> results(data.size());
  ranks.run([&](int rank, const mp_comm_t &comm) {
    const size_t i = static_cast<size_t>(rank);
    results[i] = Run(ranks.context(rank), comm, data[i], architecture, setting, plan, seed).run();
  });
  return combined(results);
}

}  // namespace mpdemo
