#include "exec/trainer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "exec/cpu_backend.h"
#include "exec/gpu_lost.h"
#include "exec/pretrained.h"
#include "exec/schedule.h"
#include "exec/stream_tasks.h"
#include "platform/error.h"
#include "platform/virtual_machine.h"
#include "scheduler/manager.h"
#include "scheduler/policy.h"
#include "scheduler/step_graph.h"

namespace offstage::exec {

using platform::Seconds;
using scheduler::Plan;
using scheduler::TaskGraph;
using scheduler::Trace;

namespace {

// Every virtual GPU is one core's worth of compute; more threads would also change the bits.
constexpr int kComputeThreads = 1;

const Plan& checked(const Plan& plan, const scheduler::TrainConfig& config) {
  if (plan.strategy.nvme_state > 0 && !config.nvme_directory) {
    throw Error(ErrorCode::bad_input,
                fmt::format("the plan has state of {} sub-models on NVMe: name a folder on that "
                            "drive as train.nvme_directory",
                            plan.strategy.nvme_state));
  }
  scheduler::require_clip_norm(config, plan.strategy.clipping);
  // Before the first tensor: the layers below make some.
  install_arena_allocator();
  return plan;
}

// Passes the first weights on; loaded ones are needed only until they are in the state.
template <typename Use>
auto with_first_weights(const Plan& plan, const scheduler::TrainConfig& config, const Use& use) {
  const workloads::LayerTable table = plan.whole_table();
  if (!config.initialise_from) {
    return use(seeded_weights(table, config.seed));
  }
  const PretrainedWeights weights(*config.initialise_from, table);
  return use(weights.source());
}

ParameterState initial_state(const Plan& plan, PoolArenas& arenas,
                             const scheduler::TrainConfig& config) {
  return with_first_weights(plan, config, [&](const WeightSource& source) {
    return ParameterState(plan, arenas, source);
  });
}

TrainerOptions checked(TrainerOptions options, const Plan& plan,
                       const scheduler::TrainConfig& config) {
  if (options.devices != nullptr) {
    require_streamable(plan);
    if (config.validation) {
      throw Error(ErrorCode::bad_input,
                  "training on GPUs does not compute the loss on validation data: leave out "
                  "train.validation");
    }
    OFFSTAGE_CHECK(options.devices->gpus() == plan.gpus(), "as many devices as the plan has GPUs");
  }
  return options;
}

UpdateSettings update_settings(const scheduler::TrainConfig& config) {
  return {.adamw = {.learning_rate = static_cast<float>(config.learning_rate),
                    .beta1 = static_cast<float>(config.beta1),
                    .beta2 = static_cast<float>(config.beta2),
                    .epsilon = static_cast<float>(config.epsilon),
                    .weight_decay = static_cast<float>(config.weight_decay)},
          .learning_rate =
              [config](std::int64_t step) { return learning_rate_at(config, config.steps, step); },
          .decay_all = config.decay_all,
          .clip_norm = config.clip_norm,
          .seed = config.seed};
}

}  // namespace

Trainer::Trainer(const Plan& plan, const scheduler::TrainConfig& config, TrainerOptions options)
    : plan_(checked(plan, config)),
      options_(checked(std::move(options), plan, config)),
      settings_(update_settings(config)),
      data_(config.data, config.token_type, plan.workload.model.vocab),
      sampler_(data_, {.sequence_length = plan.workload.sequence_length,
                       .global_batch = plan.workload.global_batch,
                       .seed = config.seed,
                       .order = config.order}),
      arenas_(plan, options_.devices),
      state_(initial_state(plan, arenas_, config)),
      slots_(plan, make_step_graph(plan, 1), arenas_),
      token_ids_(plan, arenas_) {
  if (plan.strategy.nvme_state > 0) {
    with_first_weights(plan, config, [&](const WeightSource& source) {
      nvme_.emplace(plan, arenas_, *config.nvme_directory, source);
    });
  }
  if (config.validation) {
    validate_every_ = config.validation->every;
    validation_.emplace(plan, *config.validation, config.token_type);
  }
  if (options_.checkpoints) {
    checkpoints_.emplace(plan, state_, *options_.checkpoints, options_.checkpoint_events);
  }
  require_hosts();
  if (options_.hosts != nullptr) {
    controls_.agree_first();
  }
  if (options_.devices != nullptr) {
    prepare_gpus();
  } else {
    compute_.emplace(plan);
  }
}

TrainResult Trainer::train(std::int64_t steps) {
  OFFSTAGE_CHECK(steps > 0 && options_.window > 0, "a training needs steps and a window");
  TrainResult result;
  std::vector<Seconds> steady, first;
  const std::int64_t end = steps_done_ + steps;
  while (steps_done_ < end && controls_.may_continue()) {
    const auto count = static_cast<std::uint32_t>(next_window(end - steps_done_));
    Window window = run_window(count);
    result.losses.insert(result.losses.end(), window.losses.begin(), window.losses.end());
    if (window.trace.tasks.empty()) {
      break;  // ended on request, perhaps in its last step
    }
    const std::vector<Seconds> ends = window.trace.step_ends(window.graph);
    first.push_back(ends.front());
    if (ends.size() > 1) {
      const auto steps = scheduler::steady_steps(ends);
      steady.insert(steady.end(), steps.begin(), steps.end());
    }
    if (window.graph.steps >= result.graph.steps) {
      result.graph = std::move(window.graph);
      result.trace = std::move(window.trace);
      result.first_step = steps_done_ - count;
    }
    validate();
  }
  // A window's first step has nothing before it to overlap with, its last one nothing behind it.
  if (!steady.empty() || !first.empty()) {
    result.step = scheduler::median(steady.empty() ? std::move(first) : std::move(steady));
  }
  result.memory = memory();
  if (options_.hosts != nullptr) {
    require_equal_weights();
  }
  return result;
}

std::int64_t Trainer::next_window(std::int64_t left) const {
  std::int64_t count = std::min<std::int64_t>(left, options_.window);
  if (validate_every_ > 0) {
    count = std::min(count, validate_every_ - steps_done_ % validate_every_);
  }
  return count;
}

Workplace Trainer::workplace() {
  return {plan_,
          arenas_,
          state_,
          slots_,
          token_ids_,
          sampler_,
          compute_ ? &*compute_ : nullptr,
          settings_,
          nvme_ ? &*nvme_ : nullptr,
          checkpoints(),
          options_.hosts,
          &controls_};
}

void Trainer::validate() {
  if (validation_ && steps_done_ % validate_every_ == 0) {
    const double loss = validation_->loss(workplace());
    if (options_.on_validation) {
      options_.on_validation(steps_done_, loss);
    }
  }
}

Trainer::Window Trainer::run_window(std::uint32_t steps) {
  Window window;
  window.graph = make_step_graph(plan_, steps);
  window.graph.first_step = steps_done_ + 1;
  OFFSTAGE_CHECK(window.graph.slots.size() == slots_.size(), "graphs of one plan differ in slots");
  TaskRunner runner(workplace(), window.graph, steps_done_);
  const std::uint32_t done = options_.devices != nullptr ? run_on_gpus(window, runner)
                             : options_.serial           ? run_serial(window, runner)
                                                         : run_parallel(window, runner);
  for (std::uint32_t step = 0; step < done; ++step) {
    window.losses.push_back(runner.loss(step));
  }
  steps_done_ += done;
  return window;
}

scheduler::KnownCosts Trainer::known_costs_of(const TaskGraph& graph) const {
  // Without costs every task seems to take no time.
  return scheduler::known_costs(
      plan_.machine,
      options_.costs ? options_.costs(graph) : std::vector<scheduler::TaskCost>(graph.size()));
}

void Trainer::run_task(const TaskGraph& graph, TaskRunner& runner, scheduler::TaskId task) {
  const scheduler::Task& work = graph.tasks[task];
  const bool computes = work.kind == scheduler::TaskKind::forward;
  if (options_.lose && computes && steps_done_ + work.step + 1 >= options_.lose->step &&
      plan_.shard_of(work.gpu) == plan_.shard_of(options_.lose->gpu)) {
    throw GpuLost(options_.lose->gpu,
                  fmt::format("{}: {} is lost, as disturbances.lost_gpu asks", graph.describe(task),
                              plan_.machine.gpus[options_.lose->gpu].name));
  }
  runner.run(task);
}

// Returns the steps that were done.
std::uint32_t Trainer::run_parallel(Window& window, TaskRunner& runner) {
  const TaskGraph& graph = window.graph;
  const auto costs = known_costs_of(graph);
  const auto policy = make_policy(plan_.strategy.policy, graph, costs, plan_.strategy.submit_ahead);
  CpuBackendOptions backend_options;
  for (std::size_t gpu = 0; gpu < plan_.machine.gpus.size(); ++gpu) {
    if (const auto throttle = platform::copy_throttle_of(plan_.machine, gpu)) {
      backend_options.copy_throttles.push_back(*throttle);
    }
  }
  backend_options.on_thread_start = [] { set_compute_threads(kComputeThreads); };
  CpuBackend backend(
      graph, [&](scheduler::TaskId task) { run_task(graph, runner, task); }, backend_options);
  const RunControls::Window visible(controls_, backend);
  Seconds step_begin;
  std::uint32_t done = 0;
  scheduler::RunObserver observer;
  observer.on_step_end = [&](std::uint32_t step, Seconds end) {
    report_step(runner, step, end - step_begin);
    step_begin = end;
    done = step + 1;
  };
  try {
    window.trace = scheduler::Manager(graph, backend, *policy).run(observer);
  } catch (const EndedOnRequest&) {
  }
  return done;
}

std::uint32_t Trainer::run_serial(Window& window, TaskRunner& runner) {
  const TaskGraph& graph = window.graph;
  set_compute_threads(kComputeThreads);
  const auto origin = std::chrono::steady_clock::now();
  const auto now = [origin] {
    return Seconds{
        std::chrono::duration<double>(std::chrono::steady_clock::now() - origin).count()};
  };
  Seconds step_begin;
  for (scheduler::TaskId task = 0; task < graph.size(); ++task) {
    const Seconds start = now();
    run_task(graph, runner, task);
    window.trace.tasks.push_back({.start = start, .end = now()});
    // Program order is step after step.
    const std::uint32_t step = graph.tasks[task].step;
    if (task + 1 == graph.size() || graph.tasks[task + 1].step != step) {
      report_step(runner, step, window.trace.tasks.back().end - step_begin);
      step_begin = window.trace.tasks.back().end;
    }
  }
  return graph.steps;
}

void Trainer::report_step(const TaskRunner& runner, std::uint32_t step, Seconds time) {
  ended_ = steps_done_ + step + 1;
  if (options_.on_step) {
    options_.on_step({.step = ended_,
                      .loss = runner.loss(step),
                      .learning_rate = settings_.learning_rate(ended_),
                      .time = time});
  }
}

std::vector<PoolPeak> Trainer::memory() const {
  std::vector<PoolPeak> peaks;
  for (const scheduler::PoolLedger& pool : plan_.memory.pools) {
    if (pool.planned() > platform::Bytes{}) {
      peaks.push_back({.pool = pool.name,
                       .live = arenas_.at(pool.pool).live(),
                       .peak = arenas_.at(pool.pool).peak() + temporaries_peak(pool.pool),
                       .planned = pool.planned()});
    }
  }
  return peaks;
}

}  // namespace offstage::exec
