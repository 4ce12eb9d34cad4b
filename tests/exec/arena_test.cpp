#include "exec/arena.h"

#include <thread>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/Allocator.h>
#include <catch2/catch.hpp>

#include "platform/error.h"

using namespace offstage::exec;
using offstage::platform::Bytes;

TEST_CASE("a tensor is charged its bytes to the arena of the thread that makes it", "[exec]") {
  install_arena_allocator();
  Arena gpu0("gpu0", Bytes{1000});
  Arena gpu1("gpu1", Bytes{1000});
  {
    const ArenaScope scope(gpu0, {"forward", "working space"});
    // 3 x 5 floats of 4 bytes.
    const at::Tensor a = at::empty({3, 5}, at::kFloat);
    CHECK(gpu0.live() == Bytes{60});
    {
      const ArenaScope inner(gpu1, {"backward", "working space"});
      const at::Tensor b = at::empty({2}, at::kLong);
      CHECK(gpu1.live() == Bytes{16});
    }
    CHECK(gpu1.live() == Bytes{0});
    const at::Tensor c = at::empty({7}, at::kByte);
    CHECK(gpu0.live() == Bytes{67});
    std::jthread([] { const at::Tensor uncharged = at::empty({1000}, at::kFloat); }).join();
    CHECK(gpu0.live() == Bytes{67});
  }
  CHECK(gpu0.live() == Bytes{0});
  CHECK(gpu0.peak() == Bytes{67});
  CHECK(gpu1.peak() == Bytes{16});
  gpu0.reset_peak();
  CHECK(gpu0.peak() == Bytes{0});
}

TEST_CASE("a tensor freed by another thread is taken off its owner's account", "[exec]") {
  install_arena_allocator();
  Arena gpu("gpu0", Bytes{1000});
  at::Tensor tensor;
  {
    const ArenaScope scope(gpu, {"forward", "working space"});
    tensor = at::empty({10}, at::kFloat);
  }
  std::jthread([&] { tensor.reset(); }).join();
  CHECK(gpu.live() == Bytes{0});
}

TEST_CASE("memory allocated raw is freed by its data pointer alone", "[exec]") {
  install_arena_allocator();
  Arena gpu("gpu0", Bytes{1000});
  const ArenaScope scope(gpu, {"forward", "working space"});
  c10::Allocator* const allocator = c10::GetAllocator(c10::DeviceType::CPU);
  void* const data = allocator->raw_allocate(100);
  CHECK(reinterpret_cast<std::uintptr_t>(data) % 64 == 0);
  CHECK(gpu.live() == Bytes{100});
  allocator->raw_deallocate(data);
  CHECK(gpu.live() == Bytes{0});
}

TEST_CASE("exceeding a cap names task, ledger line and the bytes, and charges nothing", "[exec]") {
  install_arena_allocator();
  Arena gpu("gpu3", Bytes{100});
  const ArenaScope scope(gpu, {"forward s2 m1", "working space"});
  const at::Tensor held = at::empty({80}, at::kByte);
  const auto too_much = [] { return at::empty({21}, at::kByte); };
  // 80 live and 21 more are 1 above 100.
  CHECK_THROWS_WITH(too_much(), Catch::Contains("gpu3") && Catch::Contains("'forward s2 m1'") &&
                                    Catch::Contains("'working space'") &&
                                    Catch::Contains("21 bytes asked for, 80 live, capacity 100") &&
                                    Catch::Contains("short by 1"));
  CHECK(gpu.live() == Bytes{80});
  CHECK_NOTHROW(at::empty({20}, at::kByte));
  CHECK(gpu.peak() == Bytes{100});
  try {
    too_much();
  } catch (const offstage::Error& error) {
    CHECK(error.code() == offstage::ErrorCode::out_of_memory);
  }
}

TEST_CASE("buffers are charged exactly, begin as zeros and free what they charged", "[exec]") {
  Arena host("host0", Bytes{1000});
  {
    Buffer a(host, "optimizer state", Bytes{400});
    CHECK(a.size() == Bytes{400});
    CHECK(a.floats()[99] == 0.0F);
    Buffer b = std::move(a);
    CHECK(host.live() == Bytes{400});
    Buffer c(host, "gradient slots", Bytes{600});
    c = std::move(b);
    CHECK(host.live() == Bytes{400});
    CHECK_THROWS_WITH(Buffer(host, "activations", Bytes{601}),
                      Catch::Contains("host0") && Catch::Contains("'activations'") &&
                          Catch::Contains("short by 1"));
    const Buffer empty(host, "nothing", Bytes{0});
    CHECK(host.live() == Bytes{400});
  }
  CHECK(host.live() == Bytes{0});
  CHECK(host.peak() == Bytes{1000});
}
