// Charts, drawn by Chart.js.
"use strict";

(function () {
  const {element, text, colour} = offstage;
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.color = "#4b5763";
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.font.size = 12;

  // Of a logarithmic axis the 1, 2 and 5 of each power of ten; fewer where it is long.
  function logarithmicTick(value, ticks) {
    const decades = Math.log10(ticks[ticks.length - 1].value / ticks[0].value);
    const first = Number(String(value.toExponential()).charAt(0));
    const clean = Math.abs(value / 10 ** Math.floor(Math.log10(value) + 1e-9) - first) < 1e-6;
    return clean && (first === 1 || (decades < 4 && (first === 2 || first === 5)));
  }

  function scaleOf(axis, extra) {
    const scale = {
      type: axis.logarithmic ? "logarithmic" : "linear",
      title: {display: axis.label !== "", text: axis.label},
      grid: {color: "#e8edf2"},
      ticks: {
        maxRotation: 0,
        autoSkipPadding: 14,
        precision: axis.format === "count" ? 0 : undefined,
        callback: (value, index, ticks) =>
          axis.logarithmic && !logarithmicTick(value, ticks) ? "" : text(value, axis.format),
      },
    };
    return Object.assign(scale, extra);
  }

  // Chart.js has room for one line of a tooltip per point.
  function tipLine(chart, context) {
    const {x, y} = chart.kind === "stacks" ? {x: context.parsed.y, y: context.parsed.x} : context.parsed;
    const label = context.raw.label;
    const name = context.dataset.label;
    if (chart.categories.length > 0) {
      return `${name}: ${text(y, chart.kind === "stacks" ? chart.x.format : chart.y.format)}` +
             (label ? ` (${label})` : "");
    }
    return `${label || name}: ${text(x, chart.x.format)}, ${text(y, chart.y.format)}`;
  }

  function datasetOf(chart, series, index) {
    const ink = colour(series.name, index);
    const points = series.points.map(([x, y, label]) => chart.kind === "stacks"
      ? {x: y, y: chart.categories[x], label}
      : {x: chart.kind === "bars" ? chart.categories[x] : x, y, label});
    const data = {label: series.name, data: points, backgroundColor: ink, borderColor: ink};
    if (series.guide) {
      return {...data, type: "line", borderColor: "#8a95a1", backgroundColor: "#8a95a1",
              borderWidth: 1, borderDash: [5, 4], pointRadius: 0, pointHitRadius: 0};
    }
    if (chart.kind === "lines") return {...data, borderWidth: 2, pointRadius: 3.5, tension: 0};
    if (chart.kind === "scatter") return {...data, backgroundColor: ink + "b0", borderWidth: 0, pointRadius: 3.5};
    return {...data, borderWidth: 0, maxBarThickness: 26};
  }

  function scalesOf(chart) {
    if (chart.kind === "stacks") {
      return {x: scaleOf(chart.x, {stacked: true}),
              y: {type: "category", stacked: true, grid: {display: false}}};
    }
    if (chart.kind === "bars") {
      return {x: {type: "category", grid: {display: false}, title: {display: chart.x.label !== "", text: chart.x.label}},
              y: scaleOf(chart.y, {})};
    }
    return {x: scaleOf(chart.x, {}), y: scaleOf(chart.y, {})};
  }

  offstage.showChart = function (chart, into) {
    const canvas = element("canvas");
    const box = element("div", "chart", canvas);
    if (chart.kind === "stacks") box.style.height = 90 + 27 * chart.categories.length + "px";
    into.append(box);
    const named = chart.series.length > 1 || chart.kind === "stacks";
    const drawn = new Chart(canvas, {
      type: {lines: "line", scatter: "scatter"}[chart.kind] || "bar",
      data: {labels: chart.categories.length > 0 ? chart.categories : undefined,
             datasets: chart.series.map((series, index) => datasetOf(chart, series, index))},
      options: {
        indexAxis: chart.kind === "stacks" ? "y" : "x",
        responsive: true,
        parsing: true,
        interaction: {mode: chart.kind === "bars" ? "index" : "nearest", intersect: chart.kind !== "bars"},
        scales: scalesOf(chart),
        plugins: {
          legend: {display: named, position: "bottom", labels: {boxWidth: 12, boxHeight: 12, padding: 12}},
          tooltip: {callbacks: {
            title: (items) => chart.categories.length > 0 && items.length > 0 ? items[0].label : "",
            label: (context) => tipLine(chart, context)}},
        },
      },
    });
    (offstage.charts = offstage.charts || []).push(drawn);
  };
})();
