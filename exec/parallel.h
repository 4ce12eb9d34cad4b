#pragma once

#include <cstdint>
#include <functional>

// One loop over a shard on several threads: how the optimizer of a socket uses its cores.
namespace offstage::exec {

// Calls body(begin, end) for consecutive parts of [0, count), each of whole `grain`s but for the
// last, on at most `threads` threads, the caller's among them. Returns when all have returned.
// Precondition: body throws nothing.
void for_parts(std::int64_t count, std::int64_t grain, int threads,
               const std::function<void(std::int64_t, std::int64_t)>& body);

}  // namespace offstage::exec
