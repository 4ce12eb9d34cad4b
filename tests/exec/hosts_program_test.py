#!/usr/bin/env python3
"""Hosts that train together, as processes: offstage train as torchrun starts it, and torchrun itself.

    hosts_program_test.py PROGRAM CASE      CASE: a function of this file, case_CASE

Each host has a folder of its own, as computers without a shared one have. Exit status 77: skipped.
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

CONFIG = """\
platform: {{name: host, virtual_gpus: {gpus}, gpu_memory_bytes: 16MiB, cores: 2{hosts}}}
workload:
  model: {{model_type: gpt2, architectures: [GPT2LMHeadModel], n_layer: 2, n_head: 2, n_embd: 16,
          n_positions: 16, vocab_size: 256}}
  sequence_length: 16
  global_batch: 8
  precision: f32
  optimizer: adamw
strategy: {{micro_batch: 2, layers_per_submodel: 1, resident_state: 0, resident_weights: 0,
           kept_activations: 0, activations: {activations}, clipping: {clipping}}}
train: {{data: text.txt, steps: {steps}, seed: 3, learning_rate: {learning_rate}{clip},
        checkpoint: {{directory: run, every: 5}}, peer_timeout_s: 20}}
"""
SKIPPED = 77
ENDLESS = 1000000000
LONGEST_S = 120  # any step of a test takes a hundredth of this


def fail(text):
    print("FAILED:", text)
    sys.exit(1)


def check(true, text):
    if not true:
        fail(text)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Test:
    def __init__(self, program, folder):
        self.program = str(pathlib.Path(program).resolve())  # hosts have folders of their own
        self.folder = pathlib.Path(folder)
        self.started = []

    def place(self, name, gpus=1, hosts=2, steps=12, activations="gpu", clipping="none",
              learning_rate=1e-3):
        """A folder with text and config; written anew when it is there."""
        place = self.folder / name
        place.mkdir(exist_ok=True)
        (place / "text.txt").write_text("to be or not to be, that is the question: " * 500)
        more = f", hosts: {hosts}, network_bytes_per_s: 1e9" if hosts > 1 else ""
        clip = ", clip_norm: 0.5" if clipping == "exact" else ""
        (place / "run.yaml").write_text(CONFIG.format(
            gpus=gpus, hosts=more, steps=steps, activations=activations, clipping=clipping,
            clip=clip, learning_rate=learning_rate))
        return place

    def start(self, place, rank=None, port=None, size=2, address="127.0.0.1", prefix=(),
              arguments=("--json",)):
        variables = dict(os.environ)
        if rank is not None:
            variables.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR=address,
                             MASTER_PORT=str(port))
        with open(place / "out", "w") as out, open(place / "err", "w") as err:
            process = subprocess.Popen(
                [*prefix, self.program, "train", "run.yaml", *arguments], cwd=place, stdout=out,
                stderr=err, env=variables, start_new_session=True)
        self.started.append(process)
        return process

    def end(self):
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def finish(self, places, processes, expected):
        """Waits for all; exit status as expected, by process."""
        for place, process, status in zip(places, processes, expected):
            process.wait(timeout=LONGEST_S)
            check(process.returncode == status,
                  f"{place.name}: status {process.returncode}, not {status}\n" +
                  (place / "err").read_text())

    def train_alone(self, **options):
        place = self.place("alone", gpus=2, hosts=1, **options)
        self.finish([place], [self.start(place)], [0])
        return place

    def train_on_two(self, prefixes=((), ()), address="127.0.0.1", **options):
        port = free_port()
        places = [self.place(name, **options) for name in ("a", "b")]
        processes = [self.start(place, rank, port, address=address, prefix=prefixes[rank])
                     for rank, place in enumerate(places)]
        self.finish(places, processes, [0, 0])
        return places

    def status(self, place):
        if not (place / "run" / "control.sock").exists():
            return {}
        result = subprocess.run([self.program, "status", "run", "--json"], cwd=place,
                                capture_output=True, text=True, check=False)
        return json.loads(result.stdout) if result.returncode == 0 else {}

    def tell(self, place, command):
        result = subprocess.run([self.program, command, "run"], cwd=place, capture_output=True,
                                text=True, check=False)
        check(result.returncode == 0, command + ": " + result.stderr)

    def wait_until(self, what, true):
        end = time.monotonic() + LONGEST_S
        while not true():
            check(time.monotonic() < end, "waited in vain until " + what)
            time.sleep(0.02)

    def endless(self):
        """Two hosts that train until they are stopped, some steps on."""
        port = free_port()
        places = [self.place(name, steps=ENDLESS) for name in ("a", "b")]
        processes = [self.start(place, rank, port) for rank, place in enumerate(places)]
        self.wait_until("they train", lambda: self.status(places[0]).get("step", 0) > 6)
        return places, processes


def state_of(place, step):
    folder = place / "run" / f"step-{step:010}"
    return {part: (folder / part).read_bytes() for part in ("master.f32", "m.f32", "v.f32")}


def losses(place):
    return json.loads((place / "out").read_text())["loss"]


def check_equal(test, alone, together, step):
    check(state_of(alone, step) == state_of(together[0], step), "the states differ")
    check(losses(alone) == losses(together[0]), "the losses differ")
    check(not (together[1] / "run").exists(), "host 1 keeps a folder")
    check((together[1] / "out").read_text() == "", "host 1 reports, too")


def case_bits(test):
    """Two processes have the bits of one with two GPUs, and goes on from host 0's checkpoint."""
    for knobs in ({}, {"activations": "cpu"}, {"clipping": "exact"}):
        check_equal(test, test.train_alone(**knobs), test.train_on_two(**knobs), 12)
        check_equal(test, test.train_alone(steps=17, **knobs),
                    test.train_on_two(steps=17, **knobs), 17)
        for place in ("alone", "a", "b"):
            subprocess.run(["rm", "-r", test.folder / place], check=True)


def case_namespaces(test):
    """The same in two network namespaces, with nothing but a cable between them."""
    names = [f"offstage-{os.getpid()}-{rank}" for rank in range(2)]
    ends = [f"off{os.getpid() % 100000}{letter}" for letter in "ab"]

    def ip(*arguments):
        return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)

    made = ip("netns", "add", names[0]) if os.path.exists("/usr/sbin/ip") else None
    if made is None or made.returncode != 0:
        print("skipped: network namespaces can't be made here:",
              made.stderr if made else "no iproute2")
        sys.exit(SKIPPED)
    try:
        commands = [("netns", "add", names[1]),
                    ("link", "add", ends[0], "netns", names[0], "type", "veth", "peer", "name",
                     ends[1], "netns", names[1])]
        for rank in range(2):
            inside = ("-n", names[rank])
            commands += [(*inside, "addr", "add", f"10.77.0.{rank + 1}/24", "dev", ends[rank]),
                         (*inside, "link", "set", ends[rank], "up"),
                         (*inside, "link", "set", "lo", "up")]
        for command in commands:
            result = ip(*command)
            if result.returncode != 0:
                print("skipped: no cable between namespaces:", result.stderr)
                sys.exit(SKIPPED)
        prefixes = [("ip", "netns", "exec", name) for name in names]
        together = test.train_on_two(prefixes=prefixes, address="10.77.0.1")
        check_equal(test, test.train_alone(), together, 12)

        # A cable that is cut says nothing: the time-out does.
        port = free_port()
        places = [test.place(name, steps=ENDLESS) for name in ("a", "b")]
        for place in places:
            text = (place / "run.yaml").read_text()
            (place / "run.yaml").write_text(text.replace("peer_timeout_s: 20", "peer_timeout_s: 2"))
        processes = [test.start(place, rank, port, address="10.77.0.1", prefix=prefixes[rank])
                     for rank, place in enumerate(places)]
        test.wait_until("they go on", lambda: test.status(places[0]).get("step", 0) > 16)
        ip("-n", names[0], "link", "set", ends[0], "down")
        test.finish(places, processes, [3, 3])
        check("host 1 is lost" in (places[0] / "err").read_text(), (places[0] / "err").read_text())
        check("host 0 is lost" in (places[1] / "err").read_text(), (places[1] / "err").read_text())
    finally:
        test.end()
        for name in names:
            ip("netns", "del", name)


def case_killed(test):
    """A host that is killed is named by the other, and both go on from the last checkpoint."""
    for victim in (1, 0):
        places, processes = test.endless()
        os.killpg(processes[victim].pid, signal.SIGKILL)
        other = 1 - victim
        processes[other].wait(timeout=20)  # peer_timeout_s
        said = (places[other] / "err").read_text()
        check(processes[other].returncode == 3, f"status {processes[other].returncode}\n{said}")
        check(f"host {victim} is lost" in said, said)
        newest = max(int(folder.name[5:]) for folder in (places[0] / "run").glob("step-*")
                     if (folder / "manifest.json").exists())
        check(newest > 0 and newest % 5 == 0, f"the newest checkpoint is of step {newest}")
        end = newest + 2
        together = test.train_on_two(steps=end)
        check(f"goes on after step {newest}" in (together[0] / "err").read_text(), "no resume")
        alone = test.train_alone(steps=end)
        check(state_of(alone, end) == state_of(together[0], end), "resumed to other bits")
        for place in ("alone", "a", "b"):
            subprocess.run(["rm", "-r", test.folder / place], check=True)


def case_refused(test):
    """Hosts that do not fit together are told why before the first step."""
    port = free_port()
    places = [test.place("a"), test.place("b", learning_rate=2e-3)]
    processes = [test.start(place, rank, port) for rank, place in enumerate(places)]
    test.finish(places, processes, [2, 2])
    for place in places:
        check("learning_rate is [0.001" in (place / "err").read_text(),
              (place / "err").read_text())
    places = [test.place("a"), test.place("b", activations="cpu")]
    processes = [test.start(place, rank, port) for rank, place in enumerate(places)]
    test.finish(places, processes, [2, 2])
    check("plan_hash is " in (places[1] / "err").read_text(), (places[1] / "err").read_text())

    three = test.start(places[0], 0, port, size=3)
    test.finish(places[:1], [three], [2])
    check("2 hosts (platform.hosts), WORLD_SIZE says 3" in (places[0] / "err").read_text(),
          (places[0] / "err").read_text())
    test.finish(places[:1], [test.start(places[0])], [2])
    check("was started alone" in (places[0] / "err").read_text(), (places[0] / "err").read_text())


def case_stopped(test):
    """A signal to one host, or a command to host 0, steers both."""
    for victim in (1, 0):
        places, processes = test.endless()
        processes[victim].send_signal(signal.SIGTERM)
        test.finish(places, processes, [0, 0])
        report = json.loads((places[0] / "out").read_text())
        check(report["stopped"] and report["checkpoint"]["step"] == report["steps"]
              if isinstance(report.get("checkpoint"), dict) else report["stopped"], str(report))
        check((places[0] / "run" / f"step-{report['steps']:010}" / "manifest.json").exists(),
              "no checkpoint of the last step: " + str(report))
        for place in places:
            subprocess.run(["rm", "-r", place], check=True)
    places, processes = test.endless()
    test.tell(places[0], "pause")
    test.wait_until("it rests", lambda: test.status(places[0])["state"] == "paused")
    step = test.status(places[0])["step"]
    time.sleep(1)
    check(test.status(places[0])["step"] == step, "a paused training goes on")
    test.tell(places[0], "resume")
    test.wait_until("it goes on", lambda: test.status(places[0])["step"] > step)
    test.tell(places[0], "stop")
    test.finish(places, processes, [0, 0])


def case_torchrun(test):
    """torchrun starts them."""
    if subprocess.run([sys.executable, "-c", "import torch.distributed.run"], capture_output=True,
                      check=False).returncode != 0:
        print("skipped: this Python has no torch.distributed.run")
        sys.exit(SKIPPED)
    place = test.place("a")
    result = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port",
         str(free_port()), "--no-python", test.program, "train", "run.yaml"], cwd=place,
        capture_output=True, text=True, timeout=LONGEST_S, check=False)
    check(result.returncode == 0, result.stderr)
    check(state_of(place, 12) == state_of(test.train_alone(), 12), "the states differ")


def main():
    program, case = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="offstage-hosts-") as folder:
        test = Test(program, folder)
        try:
            globals()["case_" + case](test)
        finally:
            test.end()
    print("as it should be")


if __name__ == "__main__":
    main()
