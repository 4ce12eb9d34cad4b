#pragma once

#include "platform/machine.h"
#include "scheduler/plan.h"
#include "scheduler/profile.h"

// A machine, a profile and a plan with round numbers, for tests whose expected values are derived
// by hand. Nothing here comes from a file or from the planner.
namespace offstage::scheduler {

// Two GPUs behind one 10 B/s uplink each way, 20 B/s lanes of their own, latency 0.5 s; a socket
// whose optimizer reads 40 B/s of DRAM behind a cap of 25 B/s; collectives at 8 B/s plus 2 s over
// two ports of 100 B/s. GEMM 100 FLOP/s, attention 50 FLOP/s, memory 10 B/s, launches every 0.25 s.
platform::Machine small_machine();

// The same sizes on two cores: everything flows over them, each flow over one at most.
platform::Machine small_core_machine();

// Efficiencies 1, no overhead, 26 and 28 optimizer bytes.
Profile exact_profile();

// Embedding, two blocks, head; one layer a sub-model; bf16; 2 sequences of 4 tokens a step, a
// micro-batch of 1 on two GPUs. The passes are given by the layer classes' operations:
// embedding 2 B forward and 4 B backward; block a 200 FLOP product, a 5 B pass, a 300 FLOP product
// and a 10 B pass forward, 1000 FLOP backward; head 100 FLOP and 200 FLOP.
Plan small_plan(const platform::Machine& machine);

// A GPT-2 of hidden 8, 2 heads, vocabulary 100 and 16 positions; 8 sequences of 16 tokens in bf16.
workloads::Workload small_workload(std::int64_t layers, bool tied);

// The same sizes as a Mixtral: rotary positions, 4 experts of 16 of which a token visits 2, one
// head of keys and values; the first `dense` layers have a dense feed-forward of 32 and the others
// an expert of 8 beside that every token visits, as in DeepSeek-V2, unless `dense` is 0.
workloads::Workload small_mixture(std::int64_t layers, std::int64_t dense);

// small_machine with a drive of `capacity` bytes on a 5 B/s link of its own.
platform::Machine small_drive_machine(std::int64_t capacity);

}  // namespace offstage::scheduler
