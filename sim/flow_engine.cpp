#include "sim/flow_engine.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

#include "platform/error.h"

// Note [Exact sharing]
// SimGrid shares max-min fairly only in the configuration below and with latency 0 on every link:
// a latency weights the sharing by round-trip time, and with the lazy update it can load a link
// beyond its capacity. Latencies are therefore delays before the flow starts.
//
// Note [Finer units]
// SimGrid takes a flow's size as a whole number. Amounts and capacities are given to it in units of
// 1/65536 byte (or core-nanosecond), so that rounding stays below 1e-9 even for a flow of
// microseconds. A power of two: the scaling itself is exact.
//
// Note [One instant]
// Decisions must not depend on the order in which SimGrid reports what ends at the same time.
// All ends of an instant are collected, sorted by task and handed over together. In its main loop,
// timers fire before flows complete, and timers set for the present moment fire after that; so the
// hand-over is a timer of the present moment, and a delay that ends while flows are about to
// complete waits for it.
namespace offstage::sim {
namespace {

namespace s4u = simgrid::s4u;
using scheduler::TaskId;
using simgrid::kernel::timer::Timer;

constexpr double kUnits = 65536.0;       // see Note [Finer units]
constexpr double kLargestAmount = 2e14;  // in units it still fits 64 bits

// What the route's capping links leave to each flow; SimGrid would count one named twice once only.
// `factors`: by LinkId, of the capacity that the machine gives.
double flow_cap(const platform::Machine& machine, const std::vector<double>& factors,
                const platform::Route& route) {
  double cap = std::numeric_limits<double>::infinity();
  for (const auto link : route.links) {
    if (!machine.links[link].caps_each_flow) continue;
    const auto times = std::count(route.links.begin(), route.links.end(), link);
    cap = std::min(
        cap, machine.links[link].capacity.value.value * factors[link] / static_cast<double>(times));
  }
  return cap;
}

class SimGridFlowEngine final : public FlowEngine {
 public:
  explicit SimGridFlowEngine(const platform::Machine& machine);
  ~SimGridFlowEngine() override = default;
  platform::Seconds now() const override { return {s4u::Engine::get_clock()}; }
  void start(TaskId task, const Work& work) override;
  void scale_link(platform::LinkId link, double factor) override;
  void run(const Handler& handler) override;

 private:
  struct Flow {
    s4u::CommPtr comm;
    TaskId task = 0;
  };
  // A delay that ends at `time`: of a task, or before its flow.
  struct Delay {
    double time = 0.0;
    TaskId task = 0;
    std::optional<platform::RouteId> route;
    std::uint64_t units = 0;
    // The standard queue keeps the largest on top.
    friend bool operator<(const Delay& a, const Delay& b) {
      return a.time != b.time ? a.time > b.time : a.task > b.task;
    }
  };

  void build();
  void start_flow(TaskId task, platform::RouteId route, std::uint64_t units);
  void flow_completed(const s4u::Activity& activity);
  void arm_alarm(double time);
  void alarm();
  void collect_delays();
  void hand_over();

  const platform::Machine& machine_;
  std::vector<double> factors_;    // by LinkId: see scale_link
  std::vector<s4u::Link*> links_;  // by LinkId
  std::vector<s4u::Link*> caps_;   // by RouteId; null without a capping link
  std::unique_ptr<s4u::Engine> engine_;
  simgrid::kernel::resource::Model* network_ = nullptr;
  s4u::Host* source_ = nullptr;
  std::vector<s4u::Host*> destinations_;  // by RouteId
  std::vector<platform::Seconds> latencies_;
  // A flow's handle must outlive its completion callback; `flows_` keeps it, `last_completed_` lets
  // go.
  std::deque<Flow> flows_;  // SimGrid holds their addresses
  std::vector<Flow*> free_flows_;
  s4u::CommPtr last_completed_;
  std::priority_queue<Delay> delays_;
  double next_alarm_ = std::numeric_limits<double>::infinity();
  bool hand_over_armed_ = false;
  std::vector<TaskId> ended_, handed_over_;
  const Handler* handler_ = nullptr;
  std::exception_ptr error_;
};

SimGridFlowEngine::SimGridFlowEngine(const platform::Machine& machine)
    : machine_(machine), factors_(machine.links.size(), 1.0) {
  std::string name = "offstage";
  std::string quiet = "--log=root.thres:warning";
  char* arguments[] = {name.data(), quiet.data(), nullptr};
  int count = 2;
  engine_ = std::make_unique<s4u::Engine>(&count, arguments);
  // See Note [Exact sharing].
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/crosstraffic:0");
  s4u::Engine::set_config("network/TCP-gamma:1e30");
  s4u::Engine::set_config("network/optim:Full");
  build();
  const auto completed = [this](const auto& activity) { flow_completed(activity); };
#if SIMGRID_VERSION < 33400
  s4u::Activity::on_completion_cb(completed);
#else
  s4u::Comm::on_completion_cb(completed);
#endif
}

// One source host, and a destination host for each route: every route is then any list of links.
// Names are ours: SimGrid's must be unique and free of its separators.
void SimGridFlowEngine::build() {
  auto* zone = s4u::create_full_zone("machine");
  for (const auto& spec : machine_.links) {
    links_.push_back(zone->create_link(fmt::format("link{}", links_.size()),
                                       spec.capacity.value.value * kUnits));
  }
  source_ = zone->create_host("source", 1.0);
  for (const auto& route : machine_.routes) {
    const std::size_t number = destinations_.size();
    std::vector<s4u::LinkInRoute> path;
    for (const auto link : route.links) {
      if (!machine_.links[link].caps_each_flow) path.emplace_back(links_[link]);
    }
    caps_.push_back(nullptr);
    if (const double cap = flow_cap(machine_, factors_, route); std::isfinite(cap)) {
      caps_.back() = zone->create_link(fmt::format("cap{}", number), cap * kUnits);
      path.emplace_back(caps_.back()->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE));
    }
    auto* host = zone->create_host(fmt::format("route{}", number), 1.0);
    zone->add_route(source_->get_netpoint(), host->get_netpoint(), nullptr, nullptr, path, false);
    destinations_.push_back(host);
    latencies_.push_back(route.latency);
  }
  zone->seal();
  for (auto* model : engine_->get_all_models()) {
    if (model->get_name() == "Network_CM02") network_ = model;
  }
  if (network_ == nullptr) {
    throw Error(ErrorCode::device, "this SimGrid has no network model named Network_CM02");
  }
}

void SimGridFlowEngine::start(TaskId task, const Work& work) {
  const auto allowed = [](double value) { return value >= 0.0 && value <= kLargestAmount; };
  if (!allowed(work.delay.value) || !allowed(work.amount)) {
    throw Error(ErrorCode::bad_input,
                fmt::format("task {}: a delay of {} s and an amount of {} can't be simulated; both "
                            "must lie between 0 and {}",
                            task, work.delay.value, work.amount, kLargestAmount));
  }
  Delay delay{now().value + work.delay.value, task, std::nullopt, 0};
  if (work.route) {
    delay.time = now().value + (work.delay + latencies_[*work.route]).value;
    delay.units = static_cast<std::uint64_t>(std::llround(work.amount * kUnits));
    if (delay.units > 0) delay.route = work.route;
  }
  if (delay.route && delay.time <= now().value) {
    start_flow(task, *delay.route, delay.units);
    return;
  }
  delays_.push(delay);
  arm_alarm(delay.time);
}

void SimGridFlowEngine::scale_link(platform::LinkId link, double factor) {
  OFFSTAGE_CHECK(factor > 0.0, fmt::format("link {} scaled by {}", link, factor));
  if (factors_[link] == factor) return;
  factors_[link] = factor;
  const auto& spec = machine_.links[link];
  if (!spec.caps_each_flow) {
    links_[link]->set_bandwidth(spec.capacity.value.value * factor * kUnits);
    return;
  }
  for (std::size_t route = 0; route < caps_.size(); ++route) {
    const auto& path = machine_.routes[route].links;
    if (caps_[route] == nullptr || std::ranges::find(path, link) == path.end()) continue;
    caps_[route]->set_bandwidth(flow_cap(machine_, factors_, machine_.routes[route]) * kUnits);
  }
}

void SimGridFlowEngine::start_flow(TaskId task, platform::RouteId route, std::uint64_t units) {
  if (free_flows_.empty()) free_flows_.push_back(&flows_.emplace_back());
  Flow* flow = free_flows_.back();
  free_flows_.pop_back();
  auto comm = s4u::Comm::sendto_init();
  *flow = {comm, task};
  comm->set_data(flow);
  // Size before end points: a flow of known size starts as soon as both ends are known.
  comm->set_payload_size(units);
  comm->set_source(source_);
  comm->set_destination(destinations_[route]);
  if (comm->get_state() != s4u::Activity::State::STARTED) comm->start();
}

void SimGridFlowEngine::flow_completed(const s4u::Activity& activity) {
  auto* flow = activity.get_data<Flow>();
  last_completed_ = std::move(flow->comm);
  ended_.push_back(flow->task);
  free_flows_.push_back(flow);
  if (hand_over_armed_) return;
  hand_over_armed_ = true;
  Timer::set(now().value, [this] { hand_over(); });
}

// One timer for the earliest delay. A later timer that this makes obsolete still fires.
void SimGridFlowEngine::arm_alarm(double time) {
  if (time >= next_alarm_) return;
  next_alarm_ = time;
  Timer::set(time, [this] { alarm(); });
}

void SimGridFlowEngine::alarm() {
  if (next_alarm_ > now().value) return;  // obsolete
  next_alarm_ = std::numeric_limits<double>::infinity();
  // See Note [One instant]: flow_completed() is about to be called and will set the hand-over.
  if (!network_->get_finished_action_set()->empty()) return;
  hand_over();
}

void SimGridFlowEngine::collect_delays() {
  while (!delays_.empty() && delays_.top().time <= now().value) {
    const Delay delay = delays_.top();
    delays_.pop();
    if (delay.route) {
      start_flow(delay.task, *delay.route, delay.units);
    } else {
      ended_.push_back(delay.task);
    }
  }
}

void SimGridFlowEngine::hand_over() {
  hand_over_armed_ = false;
  collect_delays();
  std::sort(ended_.begin(), ended_.end());
  handed_over_.swap(ended_);
  ended_.clear();
  if (!handed_over_.empty() && !error_) {
    try {
      (*handler_)(handed_over_);
    } catch (...) {
      // Nothing may be thrown through SimGrid's main loop: it would lose count of its actions.
      error_ = std::current_exception();
    }
  }
  if (!delays_.empty()) arm_alarm(delays_.top().time);
}

void SimGridFlowEngine::run(const Handler& handler) {
  handler_ = &handler;
  engine_->run();
  last_completed_.reset();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace

std::unique_ptr<FlowEngine> make_flow_engine(const platform::Machine& machine) {
  // SimGrid would abort the process.
  if (s4u::Engine::is_initialized()) {
    throw Error(ErrorCode::device, "a process can run one simulation only; see sim/simulate.h");
  }
  return std::make_unique<SimGridFlowEngine>(machine);
}

}  // namespace offstage::sim
