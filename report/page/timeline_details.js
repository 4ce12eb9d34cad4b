// What is said about a task: beside the pointer, and below the timeline once it was clicked.
"use strict";

(function () {
  const {element, text} = offstage;
  const tip = element("div", "tip");
  tip.hidden = true;
  document.body.append(tip);

  const time = (nanoseconds) => text(nanoseconds * 1e-9, "seconds");
  const range = (data, task) => {
    const length = (data.end[task] - data.start[task]) * 1e-9;
    return `${offstage.preciseTime(data.start[task] * 1e-9, length)} to ` +
           offstage.preciseTime(data.end[task] * 1e-9, length);
  };

  function facts(data, task) {
    const bytes = data.bytes(task);
    return [`step ${data.step[task]}, ${time(data.end[task] - data.start[task])}` +
              (bytes > 0 ? `, ${text(bytes, "bytes")}` : ""),
            range(data, task)];
  }

  function place(event) {
    tip.hidden = false;
    const width = tip.offsetWidth;
    const height = tip.offsetHeight;
    const right = event.clientX + 16 + width < window.innerWidth;
    const below = event.clientY + 18 + height < window.innerHeight;
    tip.style.left = Math.max(4, right ? event.clientX + 16 : event.clientX - width - 12) + "px";
    tip.style.top = Math.max(4, below ? event.clientY + 18 : event.clientY - height - 12) + "px";
  }

  offstage.hideTip = () => { tip.hidden = true; };

  offstage.tipOfTask = function (data, task, event) {
    const lines = facts(data, task);
    const wait = data.wait(task);
    if (wait) lines.push(wait);
    tip.replaceChildren(element("b", "", data.label(task)), ...lines.map((line) => element("div", "row", line)));
    place(event);
  };

  offstage.tipOfGauge = function (gauge, moment, event) {
    const i = offstage.gaugeAt(gauge, moment);
    const lines = gauge.memory
      ? [`always there: ${text(gauge.constant, "bytes")}`,
         `slots: ${text(gauge.used[i], "bytes")} occupied of ${text(gauge.slots, "bytes")}`,
         `working: ${text(gauge.working[i], "bytes")}`,
         `capacity: ${text(gauge.capacity, "bytes")}`]
      : [`${(gauge.used[i] * 1e-4).toFixed(1)} % of its capacity`];
    tip.replaceChildren(element("b", "", `${gauge.name} at ${time(moment)}`),
                        ...lines.map((line) => element("div", "row", line)));
    place(event);
  };

  function list(title, data, tasks, choose) {
    const entries = Array.from(tasks).map((task) => {
      const link = element("a", "", data.label(task));
      link.addEventListener("click", () => choose(task));
      return element("li", "", [link, element("span", "when", "  " + range(data, task))]);
    });
    return element("div", "", [element("h4", "", `${title} (${entries.length})`), element("ol", "", entries)]);
  }

  // `choose(task)`: what a click on another task does.
  offstage.showDetails = function (into, data, task, choose) {
    if (task < 0) return into.replaceChildren();
    const lines = facts(data, task);
    const engine = data.rows[data.row[task]].name;
    const wait = data.wait(task);
    into.replaceChildren(
      element("h3", "", data.label(task)),
      element("div", "", `${lines.join("; ")}; on ${engine}` + (wait ? `; ${wait}` : "")));
    if (!data.hasEdges) return;
    into.append(element("div", "lists", [
      list("needs", data, data.predecessors(task), choose),
      list("needed by", data, data.successors(task), choose)]));
  };
})();
