"""Shows how the loss fell, against the byte-unigram entropy of the text: what a model reaches that
knows how often each byte occurs and nothing else. Exits with 1 when training is not clearly below.

    demo_loss.py TRAIN.json TEXT       TRAIN.json: what `offstage train --json` printed
"""

import collections
import json
import math
import pathlib
import sys


def unigram_entropy(text):
    """In nats per byte, like the loss."""
    counts = collections.Counter(text)
    return -sum(n / len(text) * math.log(n / len(text)) for n in counts.values())


def main():
    result = json.loads(pathlib.Path(sys.argv[1]).read_text())
    entropy = unigram_entropy(pathlib.Path(sys.argv[2]).read_bytes())
    loss = result["loss"]
    for step in sorted({0, *range(24, len(loss), 25), len(loss) - 1}):
        print(f"step {step + 1:4d}   loss {loss[step]:.3f}  " + "#" * round(10 * loss[step]))
    last = loss[-10:]
    final = sum(last) / len(last)
    print(f"mean of the last {len(last)} steps: {final:.3f} nats a byte; byte-unigram entropy of the text: {entropy:.3f}")
    print(f"step time {result['step_s_median']:.3f} s, {result['tokens_per_s']:.0f} tokens/s")
    if final > 0.9 * entropy:
        sys.exit("demo: the loss is not clearly below the entropy")


if __name__ == "__main__":
    main()
