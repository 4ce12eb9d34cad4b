#include "platform/hosts.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exec/host_group.h"
#include "exec/trainer.h"
#include "exec/training_identity.h"
#include "platform/error.h"
#include "tests/exec/training_setup.h"
#include "tests/support/bare_machine.h"
#include "tests/support/temporary_path.h"

// Hosts as threads of one process, over 127.0.0.1; hosts_program_test.py has them as processes.

namespace offstage::exec::testing {
namespace {

using offstage::testing::bare_machine;
using scheduler::Plan;
using scheduler::Strategy;

constexpr platform::Seconds kPatience{60.0};

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  REQUIRE(bind(socket, reinterpret_cast<sockaddr*>(&address), length) == 0);
  REQUIRE(getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  close(socket);
  return ntohs(address.sin_port);
}

// Calls `work` for each host on a thread of its own. Returns what each threw.
std::vector<std::exception_ptr> on_hosts(int hosts, const std::function<void(HostGroup&)>& work) {
  install_arena_allocator();
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(hosts));
  const std::uint16_t port = free_port();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < hosts; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        HostAddress address;
        address.rank = rank;
        address.hosts = hosts;
        address.meeting = "127.0.0.1";
        address.port = port;
        HostGroup group(address, kPatience);
        work(group);
      } catch (...) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  threads.clear();
  return failures;
}

void require_no_failure(const std::vector<std::exception_ptr>& failures) {
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

std::string message_of(const std::exception_ptr& failure) {
  if (!failure) return "";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  }
}

platform::Machine machine_of(int hosts, int gpus, int drives = 0) {
  platform::Machine machine = bare_machine(gpus, 1, drives);
  if (hosts > 1) {
    platform::join_hosts(machine, hosts, {{1e9}, "for tests", platform::Confidence::assumed});
  }
  return machine;
}

std::vector<Outcome> train_on(int hosts, const Plan& plan, const scheduler::TrainConfig& config,
                              std::int64_t steps) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(hosts));
  require_no_failure(on_hosts(hosts, [&](HostGroup& group) {
    scheduler::TrainConfig own = config;
    if (own.nvme_directory) *own.nvme_directory += std::to_string(group.rank());
    if (own.nvme_directory) std::filesystem::create_directories(*own.nvme_directory);
    outcomes[static_cast<std::size_t>(group.rank())] =
        run(plan, own, steps, {.window = 2, .hosts = &group});
  }));
  return outcomes;
}

void check_planned_memory(const Outcome& outcome) {
  for (const PoolPeak& pool : outcome.memory) {
    INFO(pool.pool);
    CHECK(pool.peak == pool.planned);
  }
}

using Change = std::function<void(Strategy&)>;
const std::map<std::string, Change>& knobs() {
  static const std::map<std::string, Change> all{
      {"the default", [](Strategy&) {}},
      {"one slot of each", [](Strategy& s) { s.weight_slots = s.host_gradient_slots = 1; }},
      {"two layers a sub-model", [](Strategy& s) { s.layers_per_submodel = 2; }},
      {"micro-batches of 2", [](Strategy& s) { s.micro_batch = 2; }},
      {"activations on the CPU",
       [](Strategy& s) { s.activations = scheduler::ActivationPlace::cpu; }},
      {"weights on the GPU", [](Strategy& s) { s.resident_weights = 2; }},
      {"kept activations", [](Strategy& s) { s.kept_activations = 1; }},
      {"bf16 moments", [](Strategy& s) { s.moments = scheduler::MomentPrecision::bf16; }},
      {"exact clipping", [](Strategy& s) { s.clipping = scheduler::Clipping::exact; }},
      {"state on a drive", [](Strategy& s) { s.nvme_state = 1; }},
  };
  return all;
}

TEST_CASE("two hosts with a GPU each have the bits of one host with two", "[exec]") {
  // Each GPU has the same sequences either way, and its gradients and those of the other are added
  // once: a + b.
  const TextFile text(2000);
  const auto folder = temporary_path("hosts-drive");
  for (const auto& model : {byte_model(gpt2_model()), untied(byte_model(gpt2_model())),
                            byte_model(llama_model(true)), byte_model(qwen_model())}) {
    for (const auto& [name, change] : knobs()) {
      INFO(model.name << (model.tied_embeddings ? ", tied" : "") << ", " << name);
      auto config = train_config(text);
      const Strategy chosen = strategy(change);
      if (chosen.clipping == scheduler::Clipping::exact) config.clip_norm = 0.1;
      if (chosen.nvme_state > 0) config.nvme_directory = folder.string();
      if (chosen.nvme_state > 0) std::filesystem::create_directories(folder);
      const auto work = workload(model, 8);
      const Plan alone = scheduler::make_plan(machine_of(1, 2, 1), work, chosen);
      const Plan together = scheduler::make_plan(machine_of(2, 1, 1), work, chosen);
      CHECK(together.micro_batches(0) == alone.micro_batches(0));
      const Outcome expected = run(alone, config, 3);
      const auto outcomes = train_on(2, together, config, 3);
      for (const Outcome& outcome : outcomes) {
        CHECK(outcome.losses == expected.losses);
        CHECK(differing(outcome.weights, expected.weights) == 0);
        check_planned_memory(outcome);
      }
    }
  }
  for (const char* suffix : {"", "0", "1"}) std::filesystem::remove_all(folder.string() + suffix);
}

// The largest difference of two weights.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return largest;
}

// An update moves a weight by about the learning rate, 3e-3, whatever the gradient's size: where
// a gradient is nearly 0 its rounding decides on the direction. Sums in another order change few
// weights so, and each by two such moves a step at most.
constexpr int kSteps = 3;
constexpr double kMost = kSteps * 2 * 3e-3;

TEST_CASE("two hosts are near one GPU with twice the micro-batches", "[exec]") {
  // It adds micro-batch after micro-batch, they add two sums: float addition is not associative.
  const TextFile text(2000);
  const auto config = train_config(text);
  const auto work = workload(byte_model(llama_model(false)), 8);
  const Outcome expected =
      run(scheduler::make_plan(machine_of(1, 1), work, Strategy{}), config, kSteps);
  const auto outcomes =
      train_on(2, scheduler::make_plan(machine_of(2, 1), work, Strategy{}), config, kSteps);
  for (std::size_t step = 0; step < kSteps; ++step) {
    CHECK(outcomes[0].losses[step] == Approx(expected.losses[step]).epsilon(1e-5));
  }
  CHECK(distance(outcomes[0].weights, expected.weights) < kMost);
  CHECK(differing(outcomes[0].weights, outcomes[1].weights) == 0);
}

TEST_CASE("three hosts with two GPUs hold the same bits, near those of one with six", "[exec]") {
  const TextFile text(2000);
  const auto config = train_config(text);
  const auto work = workload(byte_model(gpt2_model()), 12);
  const Outcome expected =
      run(scheduler::make_plan(machine_of(1, 6), work, Strategy{}), config, kSteps);
  const auto outcomes =
      train_on(3, scheduler::make_plan(machine_of(3, 2), work, Strategy{}), config, kSteps);
  for (const Outcome& outcome : outcomes) {
    CHECK(differing(outcome.weights, outcomes[0].weights) == 0);
    CHECK(outcome.losses == outcomes[0].losses);
    check_planned_memory(outcome);
  }
  CHECK(outcomes[0].losses.back() == Approx(expected.losses.back()).epsilon(1e-5));
  CHECK(distance(outcomes[0].weights, expected.weights) < kMost);
}

TEST_CASE("hosts that train in bf16 hold the same bits, near those of one", "[exec]") {
  // Their gradients are rounded to bf16 before they are added, and their sum again: 2^-9 of a
  // gradient twice, where one host rounds the sum once.
  const TextFile text(2000);
  const auto config = train_config(text);
  const auto work = workload(byte_model(gpt2_model()), 8, platform::Precision::bf16);
  const Outcome expected =
      run(scheduler::make_plan(machine_of(1, 2), work, Strategy{}), config, kSteps);
  const auto outcomes =
      train_on(2, scheduler::make_plan(machine_of(2, 1), work, Strategy{}), config, kSteps);
  CHECK(differing(outcomes[0].weights, outcomes[1].weights) == 0);
  CHECK(outcomes[0].losses.front() == expected.losses.front());
  CHECK(outcomes[0].losses.back() == Approx(expected.losses.back()).epsilon(1e-2));
  CHECK(distance(outcomes[0].weights, expected.weights) < kMost);
}

TEST_CASE("the loss on other data is that of one host", "[exec]") {
  const TextFile text(2000), other(4000);
  auto config = train_config(text);
  config.validation = scheduler::ValidationConfig{.data = {other.path()}, .every = 1, .batches = 2};
  const auto work = workload(byte_model(gpt2_model()), 8);
  std::vector<double> expected;
  std::vector<std::vector<double>> losses(2);
  const Plan alone = scheduler::make_plan(machine_of(1, 2), work, Strategy{});
  run(alone, config, 2,
      {.on_validation = [&](std::int64_t, double loss) { expected.push_back(loss); }});
  const Plan together = scheduler::make_plan(machine_of(2, 1), work, Strategy{});
  require_no_failure(on_hosts(2, [&](HostGroup& group) {
    auto& own = losses[static_cast<std::size_t>(group.rank())];
    run(together, config, 2,
        {.on_validation = [&](std::int64_t, double loss) { own.push_back(loss); },
         .hosts = &group});
  }));
  CHECK(expected.size() == 2);
  CHECK(losses[0] == expected);
  CHECK(losses[1] == expected);
}

TEST_CASE("a stop asked of one host ends all after the same step", "[exec]") {
  const TextFile text(2000);
  const auto config = train_config(text);
  const Plan plan =
      scheduler::make_plan(machine_of(3, 1), workload(byte_model(gpt2_model()), 6), Strategy{});
  for (const int asked : {0, 2}) {
    std::vector<std::int64_t> done(3);
    require_no_failure(on_hosts(3, [&](HostGroup& group) {
      Trainer* self = nullptr;
      Trainer trainer(plan, config,
                      {.window = 4,
                       .on_step =
                           [&](const StepReport& report) {
                             if (group.rank() == asked && report.step == 6) self->controls().stop();
                           },
                       .hosts = &group});
      self = &trainer;
      trainer.train(1000);
      done[static_cast<std::size_t>(group.rank())] = trainer.steps_done();
    }));
    // Known from a later step's first sum on.
    CHECK(done[0] > 6);
    CHECK(done[0] < 1000);
    CHECK(done[1] == done[0]);
    CHECK(done[2] == done[0]);
  }
}

TEST_CASE("hosts wait for one that was paused, and go on or stop with it", "[exec]") {
  const TextFile text(2000);
  const auto config = train_config(text);
  const Plan plan =
      scheduler::make_plan(machine_of(2, 1), workload(byte_model(gpt2_model()), 4), Strategy{});
  for (const bool stop : {false, true}) {
    std::vector<std::int64_t> done(2);
    require_no_failure(on_hosts(2, [&](HostGroup& group) {
      Trainer* self = nullptr;
      Trainer trainer(plan, config,
                      {.window = 4,
                       .on_step =
                           [&](const StepReport& report) {
                             if (group.rank() == 0 && report.step == 2) self->controls().pause();
                           },
                       .hosts = &group});
      self = &trainer;
      std::jthread user;
      if (group.rank() == 0) {
        user = std::jthread([&] {
          while (trainer.controls().state() != RunControls::State::paused) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
          stop ? trainer.controls().stop() : trainer.controls().resume();
        });
      }
      trainer.train(10);
      done[static_cast<std::size_t>(group.rank())] = trainer.steps_done();
    }));
    CHECK(done[0] == done[1]);
    CHECK((stop ? done[0] < 10 : done[0] == 10));
  }
}

TEST_CASE("the hosts that are lost are named by those that are left", "[exec]") {
  for (const int hosts : {2, 3}) {
    const auto failures = on_hosts(hosts, [&](HostGroup& group) {
      std::vector<float> values(1000, 1.0F);
      group.sum(std::span<float>(values));
      if (group.rank() == 1) return;  // its connections end
      group.sum(std::span<float>(values));
    });
    CHECK(message_of(failures[1]).empty());
    for (const int rank : {0, hosts - 1}) {
      if (rank == 1) continue;
      const std::string message = message_of(failures[static_cast<std::size_t>(rank)]);
      CHECK_THAT(message, Catch::Contains("host 1 is lost"));
      CHECK_THAT(message, Catch::Contains("host " + std::to_string(rank) + " of "));
    }
  }
}

TEST_CASE("hosts with other plans, steps or data are refused on all of them", "[exec]") {
  const TextFile text(2000), other(2001);
  const auto work = workload(byte_model(gpt2_model()), 8);
  const auto identity = [&](HostGroup& group, const std::string& differs) {
    auto config = train_config(text);
    config.steps = 3;
    Strategy strategy;
    auto asked = work;
    asked.model_config = "{}";
    if (group.rank() == 1) {
      if (differs == "steps") config.steps = 4;
      if (differs == "data") config.data = {other.path()};
      if (differs == "plan_hash") strategy.weight_slots = 1;
      if (differs == "learning_rate") config.learning_rate = 1.0;
    }
    return run_identity(scheduler::make_plan(machine_of(2, 1), asked, strategy), config);
  };
  for (const char* differs : {"steps", "data", "plan_hash", "learning_rate", "nothing"}) {
    INFO(differs);
    const auto failures =
        on_hosts(2, [&](HostGroup& group) { require_same_run(group, identity(group, differs)); });
    for (const auto& failure : failures) {
      if (std::string(differs) == "nothing") {
        CHECK(message_of(failure).empty());
      } else {
        CHECK_THAT(message_of(failure), Catch::Contains(std::string(differs) + " is ") &&
                                            Catch::Contains("on host 0 and"));
      }
    }
  }
}

TEST_CASE("host 0's state becomes everybody's", "[exec]") {
  const TextFile text(2000);
  const Plan plan =
      scheduler::make_plan(machine_of(2, 1), workload(byte_model(gpt2_model()), 4), Strategy{});
  std::vector<std::vector<float>> weights(2);
  require_no_failure(on_hosts(2, [&](HostGroup& group) {
    auto config = train_config(text);
    config.seed = static_cast<std::uint64_t>(group.rank());
    Trainer trainer(plan, config, {.hosts = &group});
    trainer.share_state();
    weights[static_cast<std::size_t>(group.rank())] = all_weights(plan, trainer.state());
  }));
  CHECK(differing(weights[0], weights[1]) == 0);
}

TEST_CASE("hosts whose weights have parted are told so at the end", "[exec]") {
  const TextFile text(2000);
  const Plan plan =
      scheduler::make_plan(machine_of(2, 1), workload(byte_model(gpt2_model()), 4), Strategy{});
  const auto failures = on_hosts(2, [&](HostGroup& group) {
    auto config = train_config(text);
    config.seed = static_cast<std::uint64_t>(group.rank());  // first weights that differ
    run(plan, config, 1, {.hosts = &group});
  });
  for (const auto& failure : failures) {
    CHECK_THAT(message_of(failure),
               Catch::Contains("the weights of host 1 are not those of host 0"));
  }
}

TEST_CASE("a plan for several hosts does not run on one", "[exec]") {
  const TextFile text(2000);
  const Plan plan =
      scheduler::make_plan(machine_of(2, 1), workload(byte_model(gpt2_model()), 4), Strategy{});
  CHECK_THROWS_WITH(Trainer(plan, train_config(text), {}),
                    Catch::Contains("the plan is for 2 hosts, there are 1"));
}

}  // namespace
}  // namespace offstage::exec::testing
