#pragma once

#include <span>
#include <string_view>

#include "workloads/model.h"

// Published families of models, from the smallest to the largest: what people mean by "a 13B". Each
// rung is a named model of the library (model_library.h), so that a plan for it is one for the real
// model.
namespace offstage::workloads {

struct Ladder {
  std::string_view name;
  std::string_view source;  // of the shapes
  Family family = Family::llama;
  std::span<const std::string_view> models;  // by rising number of parameters
};

// All of them, in the order in which they were published.
std::span<const Ladder> published_ladders();

// The ladder a model belongs to: the one that lists its name, or else the newest of its family;
// nullptr when its family has none.
const Ladder* ladder_of(const Model& model);

}  // namespace offstage::workloads
