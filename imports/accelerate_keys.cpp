#include "imports/accelerate_keys.h"

#include <array>

namespace offstage::imports {
namespace {

constexpr std::string_view kLaunch = "says where and how processes start, not what they do";
constexpr std::string_view kTpu = "for TPUs";
constexpr std::string_view kStorage = "concerns loading and checkpoints, not the step";
constexpr std::string_view kOtherMethod =
    "another method, which is not simulated: the answer is for the run without it";

constexpr std::array kKeys{
    KnownKey{"compute_environment", kLaunch},
    KnownKey{"distributed_type"},
    KnownKey{"mixed_precision"},
    KnownKey{"fp16"},
    KnownKey{"num_processes"},
    KnownKey{"num_machines"},
    KnownKey{"gradient_accumulation_steps"},
    KnownKey{"use_cpu"},
    KnownKey{"machine_rank", kLaunch},
    KnownKey{"gpu_ids", kLaunch},
    KnownKey{"main_process_ip", kLaunch},
    KnownKey{"main_process_port", kLaunch},
    KnownKey{"main_training_function", kLaunch},
    KnownKey{"rdzv_backend", kLaunch},
    KnownKey{"same_network", kLaunch},
    KnownKey{"enable_cpu_affinity", "processes are simulated beside their GPU's socket"},
    KnownKey{"debug", "only prints"},
    KnownKey{"downcast_bf16", kTpu},
    KnownKey{"tpu_name", kTpu},
    KnownKey{"tpu_zone", kTpu},
    KnownKey{"tpu_env", kTpu},
    KnownKey{"tpu_vm", kTpu},
    KnownKey{"tpu_use_cluster", kTpu},
    KnownKey{"tpu_use_sudo", kTpu},
    KnownKey{"command_file", kTpu},
    KnownKey{"commands", kTpu},
    KnownKey{"dynamo_backend", kOtherMethod},
    KnownKey{"dynamo_config", kOtherMethod, true},
    KnownKey{"fp8_config", kOtherMethod, true},
    KnownKey{"parallelism_config", kOtherMethod, true},
    KnownKey{"megatron_lm_config", kOtherMethod, true},
    KnownKey{"mpirun_config", kLaunch, true},
    KnownKey{"fsdp_config.fsdp_version"},
    KnownKey{"fsdp_config.fsdp_sharding_strategy"},
    KnownKey{"fsdp_config.fsdp_reshard_after_forward"},
    KnownKey{"fsdp_config.fsdp_offload_params"},
    KnownKey{"fsdp_config.fsdp_auto_wrap_policy"},
    KnownKey{"fsdp_config.fsdp_activation_checkpointing"},
    KnownKey{"fsdp_config.fsdp_backward_prefetch"},
    KnownKey{"fsdp_config.fsdp_backward_prefetch_policy"},
    KnownKey{"fsdp_config.fsdp_forward_prefetch"},
    KnownKey{"fsdp_config.fsdp_use_orig_params"},
    KnownKey{"fsdp_config.fsdp_sync_module_states"},
    KnownKey{"fsdp_config.fsdp_transformer_layer_cls_to_wrap",
             "every block is simulated as a unit"},
    KnownKey{"fsdp_config.fsdp_min_num_params", "every block is simulated as a unit"},
    KnownKey{"fsdp_config.fsdp_ignored_modules", "all parameters are simulated as shared"},
    KnownKey{"fsdp_config.fsdp_cpu_ram_efficient_loading", kStorage},
    KnownKey{"fsdp_config.fsdp_state_dict_type", kStorage},
    KnownKey{"deepspeed_config.deepspeed_config_file"},
    KnownKey{"deepspeed_config.zero_stage"},
    KnownKey{"deepspeed_config.offload_optimizer_device"},
    KnownKey{"deepspeed_config.offload_param_device"},
    KnownKey{"deepspeed_config.gradient_accumulation_steps"},
    KnownKey{"deepspeed_config.gradient_clipping"},
    KnownKey{"deepspeed_config.offload_optimizer_nvme_path",
             "a path; the drives are the platform's"},
    KnownKey{"deepspeed_config.offload_param_nvme_path", "a path; the drives are the platform's"},
    KnownKey{"deepspeed_config.zero3_init_flag", "concerns the start, not the step"},
    KnownKey{"deepspeed_config.zero3_save_16bit_model", kStorage},
    KnownKey{"deepspeed_config.deepspeed_hostfile", kLaunch},
    KnownKey{"deepspeed_config.deepspeed_inclusion_filter", kLaunch},
    KnownKey{"deepspeed_config.deepspeed_exclusion_filter", kLaunch},
    KnownKey{"deepspeed_config.deepspeed_multinode_launcher", kLaunch},
    KnownKey{"deepspeed_config.deepspeed_moe_layer_cls_names", kOtherMethod},
};

constexpr std::array<std::string_view, 1> kStrict{""};

}  // namespace

std::span<const KnownKey> accelerate_keys() { return kKeys; }

UnknownKeys accelerate_unknown_keys() { return {"accelerate", kStrict}; }

}  // namespace offstage::imports
