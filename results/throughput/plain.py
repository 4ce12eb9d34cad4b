#!/usr/bin/env python3
"""Trains the same GPT in plain PyTorch, all of it in memory, and prints the seconds of each step as JSON.

    plain.py TEXT STEPS MICRO_BATCH THREADS [--recompute]

transformers' GPT-2 without dropout, attention by scaled_dot_product_attention, fused AdamW. With
--recompute every block keeps its input only and is computed a second time going back.
"""

import json
import pathlib
import sys
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

SEQUENCE, BATCH = 128, 32


def model(recompute):
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=256, n_positions=SEQUENCE, n_embd=256, n_layer=48, n_head=4,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="sdpa", use_cache=False,
    )
    gpt = GPT2LMHeadModel(config)
    if recompute:
        gpt.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return gpt.train()


def main():
    text, steps, micro_batch, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(threads)
    tokens = torch.frombuffer(bytearray(pathlib.Path(text).read_bytes()), dtype=torch.uint8).long()
    gpt = model("--recompute" in sys.argv)
    optimizer = torch.optim.AdamW(gpt.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
    places = torch.Generator().manual_seed(1)
    seconds, losses = [], []
    for _ in range(steps):
        begin = time.perf_counter()
        total = 0.0
        for _ in range(BATCH // micro_batch):
            at = torch.randint(len(tokens) - SEQUENCE, (micro_batch,), generator=places)
            inputs = torch.stack([tokens[i : i + SEQUENCE] for i in at.tolist()])
            # transformers shifts labels itself.
            loss = gpt(input_ids=inputs, labels=inputs).loss * (micro_batch / BATCH)
            loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - begin)
        losses.append(total)
    print(json.dumps({"seconds": seconds, "loss": losses}))


if __name__ == "__main__":
    main()
