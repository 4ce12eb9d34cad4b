#!/usr/bin/env python3
"""The pages of --report, made by the program and opened in a browser without a screen.

    report_pages_test.py PROGRAM [--train] [--screenshots FOLDER]      --train: the build can train

Every page must draw itself without a complaint on the console and without asking any server; the
timelines must answer to the pointer. Exit status 77: skipped, there is no browser.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.actions.action_builder import ActionBuilder
except ImportError:
    webdriver = None

SKIPPED = 77
BROWSER = pathlib.Path("/usr/bin/chromium")
DRIVER = pathlib.Path("/usr/bin/chromedriver")

CONFIG = """\
platform: {name: host, virtual_gpus: 2, gpu_memory_bytes: 64MiB, cores: 2}
workload:
  model: {model_type: gpt2, architectures: [GPT2LMHeadModel], n_layer: 4, n_head: 2, n_embd: 32,
          n_positions: 32, vocab_size: 256}
  sequence_length: 32
  global_batch: 8
  precision: f32
  optimizer: adamw
strategy: {micro_batch: 2, layers_per_submodel: 1, resident_state: 0, resident_weights: 0,
           kept_activations: 0, activations: cpu}
train: {data: text.txt, steps: 6, seed: 3}
"""
SYSTEM = """\
platform: dgx-a100-40
workload: {model: gpt2, sequence_length: 512, global_batch: 32, precision: bf16, optimizer: adamw}
strategy: {system: zero3_offload}
"""
STUDY = """\
base: run.yaml
vary:
  - workload.global_batch: [4, 8, 16]
  - strategy.policy: [fifo, planned]
"""
# A whole row of micro-batches on every GPU: 109,155 tasks in three steps.
LARGE = """\
platform: dgx-a100-40
workload: {model: gpt2, sequence_length: 256, global_batch: 704, precision: bf16, optimizer: adamw}
strategy: {split: batch, tensor_ways: 1, layers_per_submodel: 1, micro_batch: 1, weight_slots: 2,
           gradient_slots: 1, host_gradient_slots: 2, activations: cpu, spare_activation_slots: 2,
           host_memory: near, resident_state: 0, resident_weights: 0, kept_activations: 0,
           nvme_state: 0, nvme_slots: 3, policy: planned, submit_ahead: 4}
"""


def check(true, text):
    if not true:
        print("FAILED:", text)
        sys.exit(1)


class Maker:
    def __init__(self, program, folder):
        self.program = str(pathlib.Path(program).resolve())
        self.folder = pathlib.Path(folder)

    def run(self, *arguments, status=0):
        result = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True,
                                text=True, check=False)
        check(result.returncode == status,
              f"offstage {' '.join(arguments)}: status {result.returncode}\n{result.stderr}")
        return result

    def pages(self, train):
        """The pages' names, and how many timelines are on each."""
        (self.folder / "run.yaml").write_text(CONFIG)
        (self.folder / "system.yaml").write_text(SYSTEM)
        (self.folder / "text.txt").write_text("to be or not to be, that is the question: " * 500)
        made = self.run("simulate", "run.yaml", "--report", "simulate.html", "--trace", "a.json",
                        "--json")
        check("step_s" in json.loads(made.stdout), "--report leaves --json as it is")
        self.run("plan", "run.yaml", "--report", "plan.html")
        self.run("simulate", "system.yaml", "--report", "system.html")
        pages = {"simulate.html": 1, "plan.html": 1, "system.html": 1, "compare.html": 2}
        if train:
            self.run("train", "run.yaml", "--report", "train.html", "--trace", "b.json")
            pages["train.html"] = 1
        self.run("compare", "a.json", "b.json" if train else "a.json", "--report", "compare.html")
        self.run("capacity", "run.yaml", "--report", "capacity.html")
        self.run("validate", "--set", "mosaic", "--report", "validate.html")
        (self.folder / "study.yaml").write_text(STUDY)
        self.run("study", "study.yaml", "--report", "study.html")
        (self.folder / "large.yaml").write_text(LARGE)
        self.run("simulate", "large.yaml", "--report", "large.html")
        self.run("plan", "run.yaml", "--report", "none/report.html", status=3)
        return pages | {"capacity.html": 1, "validate.html": 0, "study.html": 0, "large.html": 1}


def open_browser():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1400,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service(str(DRIVER)), options=options)


def requests_of(browser):
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [event["params"]["request"]["url"] for event in events
            if event["method"] == "Network.requestWillBeSent"]


class Timeline:
    """The first timeline of the page that is open."""

    def __init__(self, browser):
        self.browser = browser

    def ask(self, script):
        return self.browser.execute_script("const view = offstage.timelines[0];" + script)

    def point(self, task, click=False):
        """Moves the pointer into the middle of a task."""
        x, y = self.ask(f"""
            const {{data, scale}} = view;
            view.canvas.scrollIntoView({{block: "start"}});
            window.scrollBy(0, -60);
            const box = view.canvas.getBoundingClientRect();
            return [box.left + scale((data.start[{task}] + data.end[{task}]) / 2),
                    box.top + 24 + (data.row[{task}] + 0.4) * view.rowHeight];""")
        actions = ActionBuilder(self.browser)
        actions.pointer_action.move_to_location(int(x), int(y))
        if click:
            actions.pointer_action.click()
        actions.perform()

    def text(self, selector):
        return self.browser.find_element("css selector", selector).text


def steer(browser):
    """Zoom, hover and click on the page of `simulate`."""
    timeline = Timeline(browser)
    # The task with the most predecessors, in the middle of its own stretch of time.
    task = timeline.ask("""
        const {data} = view;
        let most = 0;
        for (let task = 0; task < data.count; ++task) {
          const longer = data.predecessors(task).length > data.predecessors(most).length;
          if (longer && data.end[task] > data.start[task]) most = task;
        }
        const length = data.end[most] - data.start[most];
        view.link.showTime(data.start[most] - length, data.end[most] + length);
        return most;""")
    name = timeline.ask(f"return view.data.label({task})")
    before = timeline.ask("return view.scale.domain()")
    timeline.point(task)
    check(timeline.ask("return view.hovered") == task, f"the pointer is on {name}")
    check(timeline.text(".tip").startswith(name), "the tip names the task")
    check("waited for" in timeline.text(".tip"), "the tip says what it waited for")
    timeline.point(task, click=True)
    details = timeline.text(".details")
    count = timeline.ask(f"return view.data.predecessors({task}).length")
    check(details.startswith(name) and f"needs ({count})" in details, f"details: {details}")
    browser.find_element("css selector", ".details a").click()
    check(timeline.ask("return view.chosen") == timeline.ask(f"return view.data.predecessors({task})[0]"),
          "a click on a needed task shows that one")
    # With Ctrl the wheel zooms, without it the page scrolls.
    timeline.ask("""
        const box = view.canvas.getBoundingClientRect();
        const wheel = (ctrlKey) => view.canvas.dispatchEvent(new WheelEvent("wheel", {
          deltaY: -300, ctrlKey, clientX: box.left + 500, clientY: box.top + 60, bubbles: true,
          cancelable: true}));
        view.link.showTime(...arguments.length ? arguments : view.data.middle);
        window.before = view.scale.domain();
        wheel(false);
        window.unchanged = view.scale.domain();
        wheel(true);""")
    before, unchanged, after = timeline.ask("return [window.before, window.unchanged, view.scale.domain()]")
    check(before == unchanged, "the wheel alone does not zoom")
    check(after[1] - after[0] < 0.99 * (before[1] - before[0]), f"zoomed: {before} to {after}")
    box = browser.find_element("css selector", ".tools input")
    browser.execute_script("window.scrollTo(0, 0)")  # from under the list of sections
    box.click()
    shown = timeline.ask("return [view.showsChain, view.data.chain.length, view.isFaint(view.data.chain[0])]")
    check(shown[0] and shown[1] > 0 and not shown[2], f"critical path: {shown}")


def find_in_crowd(browser):
    """More tasks than pixels: the pointer still finds one in the middle, and all of it is drawn."""
    timeline = Timeline(browser)
    check(timeline.ask("return view.data.count") > 100_000, "100,000 tasks")
    timeline.ask("view.link.showTime(view.link.first, view.link.last)")
    task = timeline.ask("return Math.floor(view.data.count / 2)")
    timeline.point(task)
    found = timeline.ask("return view.hovered")
    same_row = timeline.ask(f"return view.hovered >= 0 && view.data.row[{task}] === view.data.row[view.hovered]")
    check(same_row, f"task {found} is in the row of {task}")
    inked = timeline.ask("""
        const {lines, data} = view;
        return data.rows.every((unused, row) =>
          lines.pixels.subarray(row * lines.width, (row + 1) * lines.width).some((pixel) => pixel !== 0));""")
    check(inked, "every row has tasks in sight")


def linked(browser):
    """Both timelines of `compare` show the same time."""
    browser.execute_script("""
        const [a, b] = offstage.timelines;
        const [from, to] = a.scale.domain();
        a.link.showTime(from, from + (to - from) / 7);
        a.link.zoomBy(2);""")
    browser.execute_async_script("setTimeout(arguments[0], 400)")
    a, b = browser.execute_script("return offstage.timelines.map((view) => view.scale.domain())")
    check(all(abs(x - y) <= 1 + 1e-9 * abs(x) for x, y in zip(a, b)), f"linked: {a} and {b}")


def look_at(browser, page, timelines):
    browser.get(page.as_uri())
    check(browser.execute_script("return document.body.dataset.ready") == "yes", f"{page.name} is drawn")
    complaints = browser.get_log("browser")
    check(not complaints, f"{page.name}: {complaints}")
    drawn = browser.execute_script(
        "return [offstage.timelines.length, document.querySelectorAll('section').length, "
        "document.documentElement.scrollWidth <= window.innerWidth]")
    check(drawn[0] == timelines, f"{page.name}: {drawn[0]} timelines")
    check(drawn[1] > 2 and drawn[2], f"{page.name}: {drawn}")


ACT = {"simulate.html": steer, "compare.html": linked, "large.html": find_in_crowd}


def keep_picture(browser, page, folder):
    """As much of the page as a tall window shows."""
    browser.set_window_size(1400, 2400)
    browser.execute_script("window.scrollTo(0, 0)")
    browser.execute_async_script("setTimeout(arguments[0], 400)")
    browser.save_screenshot(str(folder / f"{page.stem}.png"))
    browser.set_window_size(1400, 900)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--screenshots", type=pathlib.Path)
    arguments = parser.parse_args()
    if webdriver is None or not (BROWSER.exists() and DRIVER.exists()):
        print("there is no chromium, chromedriver or selenium here (scripts/setup.sh --tests)")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        pages = Maker(arguments.program, folder).pages(arguments.train)
        browser = open_browser()
        try:
            for name, timelines in pages.items():
                page = pathlib.Path(folder) / name
                look_at(browser, page, timelines)
                if arguments.screenshots:
                    keep_picture(browser, page, arguments.screenshots)
                if name in ACT:
                    ACT[name](browser)
            complaints = browser.get_log("browser")
            check(not complaints, f"{complaints}")
            asked = [url for url in requests_of(browser) if not url.startswith(("file:", "data:"))]
            check(not asked, f"the pages asked for {asked}")
        finally:
            browser.quit()
    print(f"{len(pages)} pages")


if __name__ == "__main__":
    main()
