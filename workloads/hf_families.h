#pragma once

#include "workloads/hf_keys.h"
#include "workloads/model.h"

// One reader per group of architectures whose config.json has the same keys. hf_config.cpp chooses
// among them and checks afterwards what holds for every model.
namespace offstage::workloads {

// Each fills a Model's shape; `name`, `architecture` and `family` are set already. Errors:
// bad_input.
void read_gpt2(const HfKeys& keys, Model& model);  // hf_gpt.cpp
void read_gptj(const HfKeys& keys, Model& model);
void read_gpt_neox(const HfKeys& keys, Model& model);
void read_opt(const HfKeys& keys, Model& model);
void read_phi(const HfKeys& keys, Model& model);
void read_bloom(const HfKeys& keys, Model& model);  // hf_alibi.cpp
void read_falcon(const HfKeys& keys, Model& model);
void read_mpt(const HfKeys& keys, Model& model);
void read_llama(const HfKeys& keys, Model& model);  // hf_llama.cpp
void read_qwen2(const HfKeys& keys, Model& model);
void read_gemma(const HfKeys& keys, Model& model);
void read_mixtral(const HfKeys& keys, Model& model);  // hf_experts.cpp
void read_qwen2_moe(const HfKeys& keys, Model& model);
void read_deepseek_v2(const HfKeys& keys, Model& model);
void read_bert(const HfKeys& keys, Model& model);  // hf_encoder.cpp
void read_t5(const HfKeys& keys, Model& model);

// What Llama and its descendants share; used by the readers of hf_experts.cpp too.
void read_llama_shape(const HfKeys& keys, Model& model);

}  // namespace offstage::workloads
