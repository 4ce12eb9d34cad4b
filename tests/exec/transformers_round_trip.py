#!/usr/bin/env python3
"""Models made by transformers, computed, trained and saved by offstage, loaded back.

transformers_round_trip.py OFFSTAGE OFFSTAGE_LOGITS

Needs what `scripts/setup.sh --tests` installs. Nothing is fetched: the models are made here.

Tolerances: offstage calls the kernels that PyTorch calls, but transformers orders some sums in
another way, so that f32 results differ in their last bits. Logits of these models are of size 1:
1e-5 is some 80 units in the last place of 1. Losses are means, close to ln(vocabulary).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
try:
    import numpy
    import torch
    import transformers
    from safetensors import safe_open
except ImportError as error:
    sys.exit(f"{error}: run scripts/setup.sh --tests, which installs what this test compares with")

TOLERANCE = 1e-5
VOCABULARY = 61
SEQUENCE = 16
BATCH = 4
STEPS = 20
RATE = 1e-3
OFFSTAGE, LOGITS = (pathlib.Path(path).resolve() for path in sys.argv[1:3])


def models():
    """Name, configuration and class of one model of each family."""
    common = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 88,
              "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
              "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
              "bos_token_id": 0, "eos_token_id": 1}
    yield "gpt2", transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=64, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=1)
    yield "llama", transformers.LlamaConfig(
        **common, rope_parameters={"rope_type": "default", "rope_theta": 5000.0})
    yield "mistral", transformers.MistralConfig(**common, sliding_window=None)
    yield "qwen2-tied", transformers.Qwen2Config(**common, tie_word_embeddings=True)


def make(config):
    """A model with every weight random: norms and biases of 1 and 0 would hide their mistakes."""
    torch.manual_seed(5)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.empty_like(parameter).uniform_(-0.1, 0.1))
    return model.eval()


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def run(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: status {done.returncode}: {done.stderr}")
    return done.stdout


def make_tokens(count):
    """Text with something to learn: each token follows from the one before, most of the time."""
    random = numpy.random.default_rng(3)
    tokens = [7]
    while len(tokens) < count:
        next_one = (5 * tokens[-1] + 3) % VOCABULARY
        tokens.append(next_one if random.random() < 0.8 else int(random.integers(VOCABULARY)))
    return numpy.array(tokens, dtype=numpy.uint16)


class RoundTrip(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        folder = tempfile.TemporaryDirectory(prefix="offstage-round-trip-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_same_logits(self, folder, model):
        tokens = make_tokens(SEQUENCE + 1)
        tokens.tofile(self.folder / "probe.bin")
        out = self.folder / "logits"
        loss = float(run(LOGITS, folder, self.folder / "probe.bin", out))
        ours = torch.from_numpy(numpy.fromfile(out, dtype=numpy.float32)).view(SEQUENCE, VOCABULARY)
        ids = torch.from_numpy(tokens.astype(numpy.int64))
        with torch.no_grad():
            theirs = model(ids[None, :-1]).logits[0]
        self.assertLess((ours - theirs).abs().max().item(), TOLERANCE)
        expected = torch.nn.functional.cross_entropy(theirs, ids[1:]).item()
        self.assertLess(abs(loss / expected - 1), TOLERANCE)

    def test_one_file_several_files_and_bf16_are_computed_as_transformers_does(self):
        for name, config in models():
            with self.subTest(name):
                model = make(config)
                model.save_pretrained(self.folder / name, max_shard_size="20KB")
                self.assertTrue((self.folder / name / "model.safetensors.index.json").exists())
                self.assert_same_logits(self.folder / name, model)
                model.save_pretrained(self.folder / (name + "-one"))
                self.assertTrue((self.folder / (name + "-one") / "model.safetensors").exists())
                self.assert_same_logits(self.folder / (name + "-one"), model)
                half = self.folder / (name + "-bf16")
                make(config).to(torch.bfloat16).save_pretrained(half)
                self.assert_same_logits(half, load(half))

    def test_a_bare_model_is_read_too(self):
        config = next(config for name, config in models() if name == "gpt2")
        model = make(config)
        model.transformer.save_pretrained(self.folder / "bare")
        # As openai-community/gpt2 is published: the config of the whole, the names of the bare one.
        model.config.architectures = ["GPT2LMHeadModel"]
        model.config.save_pretrained(self.folder / "bare")
        with safe_open(self.folder / "bare" / "model.safetensors", "pt") as file:
            self.assertIn("wte.weight", file.keys())
        self.assert_same_logits(self.folder / "bare", model)

    def test_what_offstage_saves_in_many_files_is_the_same_model(self):
        for name, config in models():
            with self.subTest(name):
                model = make(config)
                model.save_pretrained(self.folder / name)
                make_tokens(SEQUENCE + 1).tofile(self.folder / "probe.bin")
                copy = self.folder / (name + "-copy")
                run(LOGITS, self.folder / name, self.folder / "probe.bin",
                    self.folder / "logits", copy)
                self.assertTrue((copy / "model.safetensors.index.json").exists())
                state = load(copy).state_dict()
                for key, tensor in model.state_dict().items():
                    self.assertTrue(torch.equal(tensor, state[key]), key)

    def write_config(self, checkpoint, saved, kind):
        """A run of 20 steps over consecutive sequences, on two virtual GPUs."""
        (self.folder / "run.yaml").write_text(json.dumps({
            "platform": {"name": "host", "virtual_gpus": 2, "gpu_memory_bytes": "16MiB"},
            "workload": {"model": str(checkpoint / "config.json"), "sequence_length": SEQUENCE,
                         "global_batch": BATCH, "precision": "f32", "optimizer": "adamw"},
            "strategy": {"layers_per_submodel": 1, "micro_batch": 1},
            "train": {"data": "text.bin", "order": "sequential", "steps": STEPS,
                      "learning_rate": RATE, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8,
                      "weight_decay": 0.0, "initialise_from": str(checkpoint),
                      "save": {"directory": str(saved), "type": kind}}}))

    def reference_losses(self, model, tokens):
        optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), eps=1e-8,
                                      weight_decay=0.0)
        ids = torch.from_numpy(tokens.astype(numpy.int64))
        losses = []
        for step in range(STEPS):
            begins = [(step * BATCH + i) * SEQUENCE for i in range(BATCH)]
            inputs = torch.stack([ids[b:b + SEQUENCE] for b in begins])
            targets = torch.stack([ids[b + 1:b + 1 + SEQUENCE] for b in begins])
            loss = torch.nn.functional.cross_entropy(
                model(inputs).logits.view(-1, VOCABULARY), targets.view(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    def test_training_follows_pytorchs_and_is_loaded_back(self):
        tokens = make_tokens(STEPS * BATCH * SEQUENCE + 1)
        tokens.tofile(self.folder / "text.bin")
        for name, config in models():
            with self.subTest(name):
                model = make(config)
                checkpoint, saved = self.folder / name, self.folder / (name + "-trained")
                model.save_pretrained(checkpoint, max_shard_size="20KB")
                self.write_config(checkpoint, saved, "f32")
                ours = json.loads(run(OFFSTAGE, "train", self.folder / "run.yaml", "--json"))["loss"]
                theirs = self.reference_losses(model, tokens)
                self.assertEqual(len(ours), STEPS)
                # Training has to do something for its losses to show anything.
                self.assertLess(theirs[-1], theirs[0] - 0.1)
                for a, b in zip(ours, theirs):
                    self.assertLess(abs(a / b - 1), TOLERANCE)
                self.assert_loaded_back(saved, model)

    def assert_loaded_back(self, saved, reference):
        loaded = load(saved)
        self.assertEqual(type(loaded), type(reference))
        state = loaded.state_dict()
        # What offstage wrote (its weights bit for bit: pretrained_test.cpp) is what transformers has.
        with safe_open(saved / "model.safetensors", "pt") as file:
            for name in file.keys():
                self.assertTrue(torch.equal(file.get_tensor(name), state[name]), name)
        self.assertEqual(loaded.num_parameters(), reference.num_parameters())
        for name, parameter in reference.named_parameters():
            # 20 steps of at most RATE each, in the same directions but where gradients are next to 0.
            self.assertLess((parameter - state[name]).abs().max().item(), 0.1 * STEPS * RATE, name)
        self.assert_same_logits(saved, loaded)

    def test_a_trained_model_saved_in_bf16_has_that_type(self):
        make_tokens(STEPS * BATCH * SEQUENCE + 1).tofile(self.folder / "text.bin")
        name, config = next(models())
        checkpoint, saved = self.folder / name, self.folder / "trained"
        make(config).save_pretrained(checkpoint)
        self.write_config(checkpoint, saved, "bf16")
        run(OFFSTAGE, "train", self.folder / "run.yaml", "--json")
        loaded = transformers.AutoModelForCausalLM.from_pretrained(saved)
        self.assertEqual(loaded.dtype, torch.bfloat16)
        self.assert_same_logits(saved, load(saved))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
