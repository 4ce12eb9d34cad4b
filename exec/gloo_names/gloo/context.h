#pragma once

#include <chrono>

// Note [Gloo's names]
// The wheel of PyTorch has Gloo inside libtorch_cpu and the header of c10d's class over it,
// ProcessGroupGloo.hpp, but none of the headers of Gloo that this one includes. What c10d's class
// uses of them are names: it holds Gloo's objects by pointer, and calls them in its own source, not
// in ours. So the files in this folder declare these names and nothing else; no object of theirs is
// made, copied or laid out here.
namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
