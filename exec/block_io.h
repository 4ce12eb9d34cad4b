#pragma once

#include <cstddef>
#include <cstdint>

// Large reads and writes of a file with several requests in flight: a drive reaches its bandwidth
// only so. Through io_uring; where the system refuses that (containers often do), one request after
// the other.
namespace offstage::exec {

enum class Transfer { read, write };

// Moves `size` bytes between the file's bytes from `offset` on and memory.
// Thread: any number at once; each call has a ring of its own, which takes some 20 microseconds of
// a transfer's milliseconds.
// Returns 0, or the error of the first request that failed: ENODATA where the file ends early.
int move_blocks(Transfer transfer, int descriptor, std::int64_t offset, std::byte* memory,
                std::int64_t size);

// The same without io_uring.
int move_blocks_one_by_one(Transfer transfer, int descriptor, std::int64_t offset,
                           std::byte* memory, std::int64_t size);

}  // namespace offstage::exec
