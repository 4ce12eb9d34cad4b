#include "exec/parameter_numbers.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::exec {

using scheduler::Range;
using workloads::LayerClass;
using workloads::ParameterTensor;

namespace {

Range overlap(Range a, Range b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

// Equal parts of a column-parallel tensor that are cut each for itself: GPT-2's q, k and v.
std::int64_t sections(const ParameterTensor& tensor) {
  return tensor.name.starts_with("attn.c_attn.") ? 3 : 1;
}

}  // namespace

ParameterNumbers::ParameterNumbers(const scheduler::Plan& plan)
    : plan_(plan), whole_(plan.whole_table()) {
  OFFSTAGE_CHECK(whole_.layers == plan.table.layers, "a slice has the layers of its model");
  for (std::int64_t rank = 0; rank < plan.strategy.tensor_ways; ++rank) {
    std::vector<std::vector<Cut>>& of_rank = cuts_.emplace_back();
    for (std::size_t i = 0; i < whole_.classes.size(); ++i) {
      of_rank.push_back(cuts_of(i, rank));
    }
  }
  std::int64_t number = 0;
  for (std::size_t layer = 0; layer < whole_.layers.size(); ++layer) {
    first_number_.push_back(number);
    number += whole_.layer(layer).parameter_count;
  }
  first_number_.push_back(number);
}

std::vector<ParameterNumbers::Cut> ParameterNumbers::cuts_of(std::size_t layer_class,
                                                             std::int64_t rank) const {
  const LayerClass& whole = whole_.classes[layer_class];
  const LayerClass& slice = plan_.table.classes[layer_class];
  std::vector<Cut> cuts;
  std::int64_t begin = 0, in_layer = 0;
  for (std::size_t i = 0; i < whole.parameters.size(); ++i) {
    Cut cut =
        cut_of(whole, whole.parameters[i], slice.parameters[i], rank, plan_.strategy.tensor_ways);
    cut.begin = begin;
    cut.in_layer += in_layer;
    begin += slice.parameters[i].elements();
    in_layer += whole.parameters[i].elements();
    Cut* const last = cuts.empty() ? nullptr : &cuts.back();
    const bool continues = last != nullptr && last->runs == 1 && cut.runs == 1 &&
                           last->length == last->pitch && last->copy == cut.copy &&
                           last->in_layer + last->length == cut.in_layer;
    if (continues) {
      last->pitch += cut.pitch;
      last->length += cut.length;
    } else {
      cuts.push_back(cut);
    }
  }
  return cuts;
}

// Where a rank's slice lies in a tensor: which dimension is cut shows in the shapes.
ParameterNumbers::Cut ParameterNumbers::cut_of(const LayerClass& layer,
                                               const ParameterTensor& whole,
                                               const ParameterTensor& slice, std::int64_t rank,
                                               std::int64_t ways) {
  Cut cut;
  cut.pitch = cut.length = slice.elements();
  if (whole.shape == slice.shape) {
    cut.copy = rank > 0;
    return cut;
  }
  const std::int64_t rows = whole.shape[0];
  const std::int64_t columns = whole.shape.size() > 1 ? whole.shape[1] : 1;
  if (layer.kind != workloads::LayerKind::block) {  // words
    const std::int64_t words = slice.shape[0];
    const std::int64_t first = std::min(rank * words, rows);
    cut.in_layer = first * columns;
    cut.length = (std::min(first + words, rows) - first) * columns;
    return cut;
  }
  // Ranks that hold the same key head follow each other: two parts for four ranks are 0, 0, 1, 1.
  const std::int64_t parts = whole.elements() / slice.elements();
  const std::int64_t part = rank * parts / ways;
  cut.copy = rank % (ways / parts) != 0;
  const bool by_columns = whole.shape.size() > 1 && slice.shape[0] == rows;
  if (by_columns || sections(whole) > 1) {
    cut.runs = (by_columns ? rows : 1) * sections(whole);
    cut.pitch = cut.length = slice.elements() / cut.runs;
    cut.stride = whole.elements() / cut.runs;
  }
  cut.in_layer = part * cut.length;
  return cut;
}

void ParameterNumbers::in(std::size_t submodel, std::int64_t gpu, Range elements,
                          const std::function<void(const ParameterRun&)>& visit) const {
  const scheduler::SubModel& of = plan_.submodels[submodel];
  const auto rank = static_cast<std::size_t>(gpu % plan_.strategy.tensor_ways);
  std::int64_t begin = of.borrowed;  // of the layer, in the flat buffer
  for (std::size_t layer = of.first_layer; layer < of.end_layer; ++layer) {
    for (const Cut& cut : cuts_[rank][whole_.layers[layer]]) {
      const std::int64_t first = begin + cut.begin;
      if (first >= elements.end || first + cut.runs * cut.pitch <= elements.begin) {
        continue;
      }
      const std::int64_t skipped = std::max<std::int64_t>(0, elements.begin - first) / cut.pitch;
      for (std::int64_t run = skipped; run < cut.runs; ++run) {
        const std::int64_t here = first + run * cut.pitch;
        const Range mine = overlap(elements, {here, here + cut.length});
        if (here >= elements.end) {
          break;
        }
        if (!mine.empty()) {
          const std::int64_t in_layer = cut.in_layer + run * cut.stride + (mine.begin - here);
          visit({.element = mine.begin,
                 .layer = layer,
                 .in_layer = in_layer,
                 .number = first_number_[layer] + in_layer,
                 .count = mine.size(),
                 .copy = cut.copy});
        }
      }
    }
    begin += plan_.table.layer(layer).parameter_count;
  }
}

std::vector<ParameterRun> ParameterNumbers::among(std::size_t submodel, std::int64_t gpu,
                                                  Range elements, Range parameters) const {
  const scheduler::SubModel& of = plan_.submodels[submodel];
  std::vector<ParameterRun> runs;
  const Range here{first_number_[of.first_layer], first_number_[of.end_layer]};
  if (overlap(here, parameters).empty()) {
    return runs;
  }
  in(submodel, gpu, elements, [&](ParameterRun run) {
    const Range both = overlap(parameters, {run.number, run.number + run.count});
    if (!both.empty()) {
      const std::int64_t before = both.begin - run.number;
      run.element += before;
      run.in_layer += before;
      run.number += before;
      run.count = both.size();
      runs.push_back(run);
    }
  });
  return runs;
}

std::vector<Range> ParameterNumbers::own_ranges(std::size_t submodel, std::int64_t gpu,
                                                Range elements) const {
  std::vector<Range> ranges;
  in(submodel, gpu, elements, [&](const ParameterRun& run) {
    if (run.copy) {
      return;
    }
    if (ranges.empty() || ranges.back().end != run.element) {
      ranges.push_back({run.element, run.element});
    }
    ranges.back().end = run.element + run.count;
  });
  return ranges;
}

}  // namespace offstage::exec
