// Numbers as text: the rules of platform/format.h, so that a page says what the program says.
"use strict";
const offstage = {};

(function () {
  const decimal = ["", "k", "M", "G", "T", "P"];
  const counts = ["", "k", "M", "B", "T"];
  const binary = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

  function threeDigits(value) {
    const size = Math.abs(value);
    return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
  }

  function inMultiples(value, base, names, unit) {
    let power = 0;
    while (power + 1 < names.length && Math.abs(value) >= base - 0.5) {
      value /= base;
      ++power;
    }
    const digits = power === 0 && Number.isInteger(value) ? String(value) : threeDigits(value);
    return (digits + " " + names[power] + unit).trim();
  }

  function seconds(time) {
    const size = Math.abs(time);
    if (size === 0) return "0 s";
    if (size < 0.9995e-6) return threeDigits(time * 1e9) + " ns";
    if (size < 0.9995e-3) return threeDigits(time * 1e6) + " us";
    if (size < 0.9995) return threeDigits(time * 1e3) + " ms";
    if (size < 120) return threeDigits(time) + " s";
    const minutes = Math.round(time / 60);
    if (size < 7200) return (time / 60).toFixed(1) + " min";
    return Math.floor(minutes / 60) + " h " + String(minutes % 60).padStart(2, "0") + " min";
  }

  function plain(value) {
    if (Number.isInteger(value)) return value.toLocaleString("en").replace(/,/g, "\u2009");
    return String(Number(value.toPrecision(4)));
  }

  const formats = {
    plain: plain,
    count: (value) => inMultiples(value, 1000, counts, ""),
    seconds: seconds,
    bytes: (value) => inMultiples(value, 1024, binary, ""),
    fraction: (value) => (100 * value).toFixed(1) + " %",
    per_second: (value) => inMultiples(value, 1000, decimal, "/s"),
  };

  // A cell or a tick: null is nothing, a text is itself.
  offstage.text = function (value, format) {
    if (value === null || value === undefined) return "";
    return typeof value === "string" ? value : formats[format](value);
  };

  // Moments on an axis, which all have the unit of the distance between two of them.
  offstage.moment = function (time, distance) {
    const units = [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]];
    const [unit, name] = units.find(([size]) => distance >= 0.099 * size) || units[3];
    const digits = Math.max(0, Math.ceil(-Math.log10(distance / unit) - 1e-9));
    return (time / unit).toFixed(digits) + " " + name;
  };

  // A moment as seconds, to the hundredth of a length.
  offstage.preciseTime = function (time, length) {
    const digits = Math.min(9, Math.max(2, 2 - Math.floor(Math.log10(length || 1e-9))));
    return time.toFixed(digits) + " s";
  };

  // An element with a class and a text or children.
  offstage.element = function (name, className, content) {
    const element = document.createElement(name);
    if (className) element.className = className;
    for (const part of Array.isArray(content) ? content : [content]) {
      if (part !== undefined && part !== null) element.append(part);
    }
    return element;
  };

  // One colour for each kind of work, on the timeline and in every chart.
  const named = {
    forward: "#4a86cf", backward: "#27508c", compute: "#3a6fb5",
    "fetch weights": "#3f9d63", "fetch activations": "#8cc59d", fetch: "#3f9d63",
    "exposed weight fetch": "#3f9d63", "exposed activation copy": "#8cc59d",
    "offload gradients": "#dd8a2e", "offload activations": "#f0bd74", offload: "#dd8a2e",
    "exposed gradient offload": "#dd8a2e",
    all_gather: "#8a63b8", "all_gather weights": "#8a63b8", collective: "#8a63b8",
    reduce_scatter: "#c0589b", "reduce_scatter gradients": "#c0589b",
    all_reduce: "#a04fa0", "all_reduce gradients": "#a04fa0",
    "all_reduce activations": "#d79ad0",
    update: "#b5473c", "exposed optimizer update": "#b5473c", norm: "#8f7a66",
    "exposed gradient norm": "#8f7a66", read: "#2f9c9c", write: "#7cc7c2",
    "exposed NVMe": "#2f9c9c", send: "#6d6ab8", "waiting for another GPU": "#9db4cf",
    idle: "#dfe5eb", "order of work": "#dfe5eb", free: "#eef2f6",
  };
  const others = ["#4a86cf", "#dd8a2e", "#3f9d63", "#b5473c", "#8a63b8", "#8f7a66", "#c0589b",
                  "#6b7785", "#a5a536", "#2f9c9c", "#8cc59d", "#f0bd74", "#b9a3d6", "#e09a93"];
  offstage.colour = (name, index) => named[name] || others[index % others.length];
})();
