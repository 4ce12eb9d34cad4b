#include "exec/block_io.h"

#include <algorithm>
#include <cerrno>

#include <liburing.h>
#include <unistd.h>

namespace offstage::exec {
namespace {

// Requests of 1 MiB, eight at a time: on a virtual disk 1.06 times as fast as one after the other
// (1.2 and 2.6 GB/s read and written). Not measured on an NVMe drive of its own, where the gain
// should be larger.
constexpr std::int64_t kRequest = std::int64_t{1} << 20;
constexpr unsigned kDepth = 8;

class Ring {
 public:
  Ring() : error_(io_uring_queue_init(kDepth, &ring_, 0)) {}
  ~Ring() {
    if (usable()) {
      io_uring_queue_exit(&ring_);
    }
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  bool usable() const { return error_ == 0; }
  io_uring* get() { return &ring_; }

 private:
  io_uring ring_{};
  int error_;
};

// What a request still has to move.
struct Request {
  std::int64_t done = 0, end = 0;  // in the transfer
};

void queue(io_uring* ring, Transfer transfer, int descriptor, std::int64_t offset,
           std::byte* memory, Request& request) {
  io_uring_sqe* const entry = io_uring_get_sqe(ring);
  const auto size = static_cast<unsigned>(request.end - request.done);
  const auto at = static_cast<std::uint64_t>(offset + request.done);
  if (transfer == Transfer::read) {
    io_uring_prep_read(entry, descriptor, memory + request.done, size, at);
  } else {
    io_uring_prep_write(entry, descriptor, memory + request.done, size, at);
  }
  io_uring_sqe_set_data(entry, &request);
}

}  // namespace

int move_blocks_one_by_one(Transfer transfer, int descriptor, std::int64_t offset,
                           std::byte* memory, std::int64_t size) {
  for (std::int64_t done = 0; done < size;) {
    const auto left = static_cast<std::size_t>(size - done);
    const ssize_t moved = transfer == Transfer::read
                              ? pread(descriptor, memory + done, left, offset + done)
                              : pwrite(descriptor, memory + done, left, offset + done);
    if (moved > 0) {
      done += moved;
    } else if (moved == 0) {
      return ENODATA;  // the file was cut short by somebody else
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int move_blocks(Transfer transfer, int descriptor, std::int64_t offset, std::byte* memory,
                std::int64_t size) {
  if (size <= kRequest) {
    return move_blocks_one_by_one(transfer, descriptor, offset, memory, size);
  }
  Ring ring;
  if (!ring.usable()) {
    return move_blocks_one_by_one(transfer, descriptor, offset, memory, size);
  }
  Request requests[kDepth];
  std::int64_t next = 0;
  unsigned in_flight = 0;
  int error = 0;
  const auto begin_next = [&](Request& request) {
    request = {next, std::min(size, next + kRequest)};
    next = request.end;
    queue(ring.get(), transfer, descriptor, offset, memory, request);
    ++in_flight;
  };
  for (Request& request : requests) {
    if (next < size) {
      begin_next(request);
    }
  }
  // After an error nothing new begins, but what is in flight still uses the memory.
  while (in_flight > 0) {
    io_uring_cqe* completion = nullptr;
    const int waited = io_uring_submit_and_wait(ring.get(), 1);
    if (waited < 0 && waited != -EINTR) {
      return -waited;
    }
    while (io_uring_peek_cqe(ring.get(), &completion) == 0) {
      auto& request = *static_cast<Request*>(io_uring_cqe_get_data(completion));
      const int moved = completion->res;
      io_uring_cqe_seen(ring.get(), completion);
      --in_flight;
      if (moved <= 0 && moved != -EINTR && moved != -EAGAIN) {
        error = error != 0 ? error : (moved == 0 ? ENODATA : -moved);
        continue;
      }
      request.done += std::max(0, moved);
      if (error != 0) {
        continue;
      }
      if (request.done < request.end) {
        queue(ring.get(), transfer, descriptor, offset, memory, request);
        ++in_flight;
      } else if (next < size) {
        begin_next(request);
      }
    }
  }
  return error;
}

}  // namespace offstage::exec
