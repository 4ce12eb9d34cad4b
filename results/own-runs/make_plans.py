#!/usr/bin/env python3
"""The run configs of the 40 plans: drawn by a seeded rule, before anything is simulated or trained.

    make_plans.py PLATFORM OUT      writes OUT/NN.json; PLATFORM is what `offstage calibrate` wrote

Every knob is drawn by itself, most of them evenly from the values listed below. A draw is taken again
when its knobs exclude each other, when batch, heads or cuts do not come out even, or when its step is too
long or too short to be measured (FLOPS below); never for what is predicted or measured of it.
"""

import json
import pathlib
import random
import sys

SEED, PLANS = 20261130, 40
GPUS = [1, 2, 4]
# Of forward, recomputation and backward: on two cores some 20 ms to 1 s a step.
FLOPS = (2e9, 60e9)
LONGEST_TEXT = 256


def gpt2(draw, hidden, heads, layers, vocab):
    return {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": hidden, "n_head": heads,
        "n_layer": layers, "n_positions": LONGEST_TEXT, "vocab_size": vocab, "tie_word_embeddings": draw.random() < 0.7,
    }


def llama(draw, hidden, heads, layers, vocab):
    groups = draw.choice([group for group in (1, 2, 4) if heads % group == 0])
    return {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": hidden,
        "num_attention_heads": heads, "num_key_value_heads": heads // groups, "num_hidden_layers": layers,
        "intermediate_size": hidden * draw.choice([2, 3, 4]), "max_position_embeddings": LONGEST_TEXT,
        "vocab_size": vocab, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": draw.random() < 0.3,
    }


def parameters_of(model):
    """Matrices of the blocks and the head: what computing costs."""
    if model["model_type"] == "gpt2":
        hidden, layers = model["n_embd"], model["n_layer"]
        block = 12 * hidden * hidden
    else:
        hidden, layers = model["hidden_size"], model["num_hidden_layers"]
        keys = 2 * model["num_key_value_heads"] / model["num_attention_heads"]
        block = (2 + keys) * hidden * hidden + 3 * hidden * model["intermediate_size"]
    return layers * block + hidden * model["vocab_size"]


def draw_strategy(draw, layers, gpus):
    per_submodel = draw.choice([1, 1, 2, 3])
    submodels = -(-layers // per_submodel)
    strategy = {
        "layers_per_submodel": per_submodel,
        "micro_batch": draw.choice([1, 2, 4, 8]),
        "weight_slots": draw.choice([2, 2, 3]),
        "gradient_slots": draw.choice([1, 2]),
        "host_gradient_slots": draw.choice([2, 3]),
        "activations": draw.choice(["gpu", "gpu", "cpu"]),
        "moments": draw.choice(["f32", "f32", "f32", "bf16"]),
        "clipping": draw.choice(["none", "none", "none", "exact"]),
        "policy": draw.choice(["planned", "planned", "fifo", "critical_path"]),
        "tensor_ways": draw.choice([1, 1, 1, 2, 4]) if gpus > 1 else 1,
        "spare_activation_slots": 2, "nvme_slots": 3, "submit_ahead": 4, "host_memory": "near",
        "resident_state": 0, "resident_weights": 0, "kept_activations": 0, "nvme_state": 0,
    }
    # Half of the plans have none of a thing; the others any number of sub-models.
    for knob in ("resident_state", "resident_weights", "kept_activations", "nvme_state"):
        if draw.random() < (0.25 if knob == "nvme_state" else 0.5):
            strategy[knob] = draw.randint(1, submodels)
    return strategy, submodels


def draw_plan(draw):
    """A config without its platform, and its number of virtual GPUs; None when it does not come out even."""
    gpus = draw.choice(GPUS)
    hidden, head_dim, layers = draw.choice([128, 192, 256, 320, 384, 512]), draw.choice([32, 64]), draw.randint(2, 8)
    vocab = draw.choice([256, 1024, 4096])
    model = draw.choice([gpt2, llama])(draw, hidden, hidden // head_dim, layers, vocab)
    strategy, submodels = draw_strategy(draw, layers, gpus)
    micro_batches = draw.choice([1, 2, 3, 4])
    length = draw.choice([64, 128, 192, 256])
    workload = {
        "model": model, "sequence_length": length, "precision": draw.choice(["f32", "f32", "bf16"]),
        "optimizer": "adamw",
    }
    ways = strategy["tensor_ways"]
    heads = hidden // head_dim
    keys = model.get("num_key_value_heads", heads)
    # The states of sub-models lie in one place each.
    places = strategy["resident_state"] + strategy["resident_weights"] + strategy["nvme_state"]
    if gpus % ways != 0 or heads % ways != 0 or (keys % ways != 0 and ways % keys != 0) or places > submodels:
        return None
    # Exact clipping wants all gradients in CPU memory.
    if strategy["clipping"] == "exact" and strategy["resident_state"] > 0:
        return None
    workload["global_batch"] = strategy["micro_batch"] * micro_batches * (gpus // ways)
    if not FLOPS[0] <= 8 * parameters_of(model) * workload["global_batch"] * length <= FLOPS[1]:
        return None
    train = {"data": "bible.txt", "steps": 1000, "nvme_directory": "."}
    if strategy["clipping"] == "exact":
        train["clip_norm"] = 1.0
    return {"workload": workload, "strategy": strategy, "train": train}, gpus


def plans(seed=SEED):
    draw = random.Random(seed)
    found = []
    while len(found) < PLANS:
        plan = draw_plan(draw)
        if plan is not None:
            found.append(plan)
    return found


def write(drawn, platform, out):
    for number, (config, gpus) in enumerate(drawn, 1):
        machine = {"name": str(platform.resolve()), "virtual_gpus": gpus}
        (out / f"{number:02}.json").write_text(json.dumps({"platform": machine} | config, indent=1))


if __name__ == "__main__":
    write(plans(), pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
