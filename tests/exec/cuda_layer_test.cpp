#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "exec/device_layer.h"
#include "exec/stream_backend.h"
#include "exec/trainer.h"
#include "platform/error.h"
#include "tests/conformance/conformance.h"
#include "tests/exec/training_setup.h"
#include "tests/support/bare_machine.h"

// What needs a GPU. Without one every case says that it was skipped, and passes.
namespace offstage::exec::testing {
namespace {

using offstage::testing::BackendUnderTest;
using offstage::testing::bare_machine;
using offstage::testing::TestLoad;
using platform::Bytes;
using scheduler::EngineKind;
using scheduler::TaskId;

std::unique_ptr<DeviceLayer> one_gpu() {
  try {
    return open_gpus(bare_machine(1));
  } catch (const Error& error) {
    WARN("skipped: " << error.what());
    return nullptr;
  }
}

// All engines of a graph on one GPU, each with a stream of its own where kinds last.
class OnGpu final : public scheduler::Backend {
 public:
  OnGpu(const TestLoad& load, DeviceLayer& devices)
      : graph_(load.graph),
        scratch_arena_("gpu0", Bytes{1 << 20}, devices.on_gpu(0)),
        scratch_(scratch_arena_, "scratch", Bytes{1 << 20}) {
    constexpr EngineKind kKinds[] = {EngineKind::compute, EngineKind::h2d, EngineKind::d2h,
                                     EngineKind::collective};
    for (std::size_t engine = 0; engine < graph_.engines.size(); ++engine) {
      graph_.engines[engine].kind = kKinds[engine % 4];
      graph_.engines[engine].device = 0;
    }
    backend_.emplace(
        graph_, devices,
        StreamBodies{.enqueue =
                         [this, load, &devices](TaskId task, std::span<const StreamId> streams) {
                           if (task == load.failing) {
                             throw Error(ErrorCode::device, "the device is lost");
                           }
                           // Half of the scratch into the other half.
                           devices.copy(streams.front(), scratch_.data(),
                                        scratch_.data() + (1 << 19), Bytes{1 << 19});
                         },
                     .run = {}});
  }
  platform::Seconds now() const override { return backend_->now(); }
  void submit(TaskId task) override { backend_->submit(task); }
  void run(const scheduler::CompletionHandler& handler) override { backend_->run(handler); }

 private:
  scheduler::TaskGraph graph_;
  Arena scratch_arena_;
  Buffer scratch_;
  std::optional<StreamBackend> backend_;
};

TEST_CASE("streams of a GPU keep the contract of all backends", "[gpu][conformance]") {
  const auto devices = one_gpu();
  if (!devices) return;
  const BackendUnderTest streams{
      [&](const TestLoad& load) { return std::make_unique<OnGpu>(load, *devices); }, true};
  for (const auto& check : offstage::testing::conformance_checks()) {
    DYNAMIC_SECTION(check.name) { REQUIRE_NOTHROW(check.run(streams)); }
  }
}

TEST_CASE("copies through a GPU give back what went in", "[gpu]") {
  const auto devices = one_gpu();
  if (!devices) return;
  Arena gpu("gpu0", Bytes{4096}, devices->on_gpu(0));
  Arena host("host0", Bytes{8192}, devices->pinned(bare_machine(1).sockets.front()));
  const Buffer on_gpu(gpu, "there", Bytes{4096}), from(host, "from", Bytes{4096}),
      to(host, "to", Bytes{4096});
  for (int i = 0; i < 1024; ++i) from.floats()[i] = static_cast<float>(i);
  const StreamId stream = devices->stream(0, EngineKind::h2d);
  const EventId end = devices->make_event(stream);
  devices->copy(stream, from.data(), on_gpu.data(), from.size());
  devices->copy(stream, on_gpu.data(), to.data(), to.size());
  devices->record(end, stream);
  while (!devices->reached(end)) devices->idle();
  devices->release(end);
  CHECK(std::equal(from.floats(), from.floats() + 1024, to.floats()));
}

// f32 on both sides (LibTorch leaves TF32 off), other kernels and orders: as for the fake device
// (stream_training_test.cpp).
TEST_CASE("a training on a GPU has the losses of one on a virtual GPU", "[gpu]") {
  const auto devices = one_gpu();
  if (!devices) return;
  const TextFile text(2000);
  const auto config = train_config(text);
  for (const auto& model : {byte_model(gpt2_model()), byte_model(llama_model(false))}) {
    const scheduler::Plan plan =
        scheduler::make_plan(bare_machine(1), workload(model, 4), scheduler::Strategy{});
    // LibTorch's own memory comes in blocks of 2 MiB and more, larger than these toy plans' all.
    const Outcome reference = run(plan, config, 3);
    const Outcome ours = run(plan, config, 3, {.window = 2, .devices = devices.get()});
    for (std::size_t step = 0; step < 3; ++step) {
      CHECK(ours.losses[step] == Approx(reference.losses[step]).epsilon(1e-4));
    }
  }
}

}  // namespace
}  // namespace offstage::exec::testing
