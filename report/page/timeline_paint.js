// Paints the rows of a timeline into a canvas. Tasks of a few pixels are not drawn one by one: each
// pixel of a row gets the colour of the kind that fills most of it, as pale as it is empty, and a
// row of pixels is painted at once. So the cost of a picture hardly depends on the number of tasks.
"use strict";

(function () {
  const {colour, moment} = offstage;
  const axisHeight = 24;
  offstage.timelineSizes = {axisHeight, labelWidth: 132};

  // Text of a task, once it has the room; a canvas measures too slowly to ask it each time.
  const letterWidth = 5.7;

  // Rectangles of one colour are painted together: a change of colour is what costs.
  class Strokes {
    constructor() { this.lists = new Map(); }
    add(style, x, y, width, height) {
      let list = this.lists.get(style);
      if (list === undefined) this.lists.set(style, list = []);
      list.push(x, y, width, height);
    }
    paint(context) {
      for (const [style, list] of this.lists) {
        context.fillStyle = style;
        for (let i = 0; i < list.length; i += 4) context.fillRect(list[i], list[i + 1], list[i + 2], list[i + 3]);
      }
    }
  }

  const paleness = 0.16;  // of what is not looked at

  function shadesOf(kinds) {
    return kinds.map((kind, index) => {
      const ink = d3.rgb(colour(kind, index));
      const faint = d3.interpolateRgb("#ffffff", ink)(paleness);
      return {ink, full: ink.hex(), faint: d3.rgb(faint).hex(), text: d3.lab(ink).l > 62 ? "#1f2933" : "#ffffff"};
    });
  }

  // As a canvas keeps it in memory: red first, opaque.
  function pixelOf({r, g, b}, strength) {
    const mix = (part) => Math.round(255 + (part - 255) * strength);
    return ((255 << 24) | (mix(b) << 16) | (mix(g) << 8) | mix(r)) >>> 0;
  }

  // A picture as wide as the plot with a line of pixels for each row of the timeline.
  class Lines {
    constructor(width, rows) {
      this.canvas = document.createElement("canvas");
      this.canvas.width = this.width = Math.max(1, width);
      this.canvas.height = Math.max(1, rows);
      this.context = this.canvas.getContext("2d");
      this.image = this.context.createImageData(this.canvas.width, this.canvas.height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    clear() { this.pixels.fill(0); }
    paint(context, view) {
      this.context.putImageData(this.image, 0, 0);
      context.imageSmoothingEnabled = false;
      view.data.rows.forEach((unused, row) => {
        context.drawImage(this.canvas, 0, row, this.width, 1, view.left, axisHeight + row * view.rowHeight,
                          view.width - view.left, view.barHeight);
      });
    }
  }

  function paintAxis(context, view) {
    const {left, width, height, scale} = view;
    const ticks = scale.ticks(Math.max(2, Math.floor((width - left) / 110)));
    const distance = (ticks[1] - ticks[0]) * 1e-9 || 1;
    context.fillStyle = "#616e7c";
    context.textAlign = "center";
    for (const tick of ticks) {
      const x = Math.round(scale(tick)) + 0.5;
      context.fillStyle = "#e8edf2";
      context.fillRect(x, axisHeight - 4, 1, height);
      const name = moment(tick * 1e-9, distance);
      const half = 3 * name.length;
      context.fillStyle = "#616e7c";
      if (x - half > left - 8 && x + half < width) context.fillText(name, x, 11);
    }
    context.textAlign = "left";
  }

  function paintStepMarks(context, view, height) {
    const {data, scale, left} = view;
    for (const edge of data.middle) {
      const x = scale(edge);
      if (x < left) continue;
      context.fillStyle = "#1f2933";
      for (let y = axisHeight; y < height; y += 7) context.fillRect(Math.round(x), y, 1, 3);
    }
  }

  // Fills the pixels of one row of Lines, from left to right.
  class Line {
    constructor(view, row) {
      this.view = view;
      this.offset = row * view.lines.width;
      this.at = -1;
    }
    // `from`, `to`: in pixels of the line.
    add(task, from, to) {
      for (let pixel = Math.floor(from); pixel < to; ++pixel) {
        if (pixel !== this.at) {
          this.flush();
          this.at = pixel;
          this.filled = this.most = 0;
          this.mostTask = task;
        }
        const part = Math.min(to, pixel + 1) - Math.max(from, pixel);
        this.filled += part;
        // A task that is looked at is not hidden by a longer one that isn't.
        const weight = this.view.isFaint(task) ? part * 1e-3 : part;
        if (weight > this.most) {
          this.most = weight;
          this.mostTask = task;
        }
      }
    }
    flush() {
      if (this.at < 0 || this.at >= this.view.lines.width) return;
      const {data, shades, isFaint, lines} = this.view;
      const faint = isFaint(this.mostTask) ? paleness : 1;
      const strength = Math.max(0.35, Math.min(1, this.filled)) * faint;
      lines.pixels[this.offset + this.at] = pixelOf(shades[data.kind[this.mostTask]].ink, strength);
    }
  }

  // One row: tasks of some width as they are, smaller ones into the row's line.
  function gatherRow(view, row, top, strokes, labels) {
    const {data, shades, isFaint, barHeight} = view;
    const {start, end, kind} = data;
    const tasks = data.rows[row].tasks;
    const [from, to] = view.scale.domain();
    const plot = view.width - view.left;
    const factor = plot / (to - from);
    const dense = view.lines.width / plot;
    const line = new Line(view, row);
    for (let i = data.firstAfter(row, from); i < tasks.length; ++i) {
      const task = tasks[i];
      if (start[task] >= to) break;
      const x = Math.max(0, (start[task] - from) * factor);
      const right = Math.min(plot, (end[task] - from) * factor);
      if (right - x < 4) {
        line.add(task, x * dense, Math.max(right, x + 1e-3) * dense);
        continue;
      }
      const faint = isFaint(task);
      strokes.add(faint ? shades[kind[task]].faint : shades[kind[task]].full, view.left + x, top, right - x - 0.6, barHeight);
      if (right - x > 24 && barHeight > 11 && !faint) labels.push(task, view.left + x, right - x, top);
    }
    line.flush();
  }

  function paintLabels(context, view, labels) {
    for (let i = 0; i < labels.length; i += 4) {
      const [task, x, width, top] = labels.slice(i, i + 4);
      const whole = view.data.label(task);
      const short = view.data.shortLabel(task);
      const name = whole.length * letterWidth < width - 6 ? whole : short;
      if (name.length * letterWidth > width - 4) continue;
      context.fillStyle = view.shades[view.data.kind[task]].text;
      context.fillText(name, x + 3, top + view.barHeight / 2);
    }
  }

  function paintRowNames(context, view) {
    context.fillStyle = "#ffffff";
    context.fillRect(0, 0, view.left, view.height);
    let device = "";
    view.data.rows.forEach(({name}, row) => {
      const y = axisHeight + row * view.rowHeight;
      const owner = name.split(".")[0];
      if (owner !== device) {
        context.fillStyle = "#dde3ea";
        context.fillRect(0, y - 1.5, view.width, 1);
        device = owner;
      }
      context.fillStyle = "#3b4754";
      context.fillText(name, 0, y + view.barHeight / 2);
    });
  }

  // An arrow from the end of one task to the start of another.
  function paintArrow(context, view, from, to, style) {
    const {data, scale, rowHeight, barHeight} = view;
    const x0 = Math.max(view.left, scale(data.end[from]));
    const x1 = Math.max(view.left, scale(data.start[to]));
    const y0 = axisHeight + data.row[from] * rowHeight + barHeight / 2;
    const y1 = axisHeight + data.row[to] * rowHeight + barHeight / 2;
    const bend = Math.max(8, Math.min(40, Math.abs(x1 - x0) / 2));
    context.strokeStyle = style;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    context.stroke();
    context.fillStyle = style;
    context.beginPath();
    context.arc(x1, y1, 2.2, 0, 2 * Math.PI);
    context.fill();
  }

  function outline(context, view, task, style) {
    const {data, scale, rowHeight, barHeight} = view;
    const x = Math.max(view.left, scale(data.start[task]));
    const width = Math.max(2, scale(data.end[task]) - x);
    context.strokeStyle = style;
    view.data.rows.forEach(({tasks}, row) => {
      // A collective stands on several rows.
      const first = data.firstAfter(row, data.start[task]);
      for (let i = Math.max(0, first - 1); i < tasks.length && data.start[tasks[i]] <= data.start[task]; ++i) {
        if (tasks[i] === task) context.strokeRect(x, axisHeight + row * rowHeight - 0.5, width, barHeight + 1);
      }
    });
  }

  function paintMarks(context, view) {
    const {data, chosen, scale} = view;
    context.save();
    context.beginPath();
    context.rect(view.left, 0, view.width - view.left, view.height);
    context.clip();
    context.lineWidth = 1.2;
    const [from, to] = scale.domain();
    if (view.showsChain) {
      for (let i = 1; i < data.chain.length; ++i) {
        const [a, b] = [data.chain[i - 1], data.chain[i]];
        // Thousands of arrows to the same row would be a line.
        if (data.end[b] < from || data.start[a] > to || data.row[a] === data.row[b]) continue;
        paintArrow(context, view, a, b, "#1f2933");
      }
    }
    if (chosen >= 0) {
      context.lineWidth = 1.4;
      for (const task of data.predecessors(chosen)) paintArrow(context, view, task, chosen, "#c0262d");
      for (const task of data.successors(chosen)) paintArrow(context, view, chosen, task, "#1f6f43");
      context.lineWidth = 2;
      outline(context, view, chosen, "#111111");
    }
    if (view.hovered >= 0) {
      context.lineWidth = 1.5;
      outline(context, view, view.hovered, "#111111");
    }
    context.restore();
  }

  offstage.shadesOf = shadesOf;
  offstage.TimelineLines = Lines;
  const font = (size) => `${size}px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif`;

  offstage.paintTimeline = function (context, view) {
    context.clearRect(0, 0, view.width, view.height);
    context.font = font(11);
    context.textBaseline = "middle";
    paintAxis(context, view);
    const strokes = new Strokes();
    const labels = [];
    view.lines.clear();
    view.data.rows.forEach((unused, row) => gatherRow(view, row, axisHeight + row * view.rowHeight, strokes, labels));
    view.lines.paint(context, view);
    strokes.paint(context);
    context.font = font(10);
    paintLabels(context, view, labels);
    const rowsEnd = axisHeight + view.data.rows.length * view.rowHeight;
    paintStepMarks(context, view, rowsEnd);
    offstage.paintGauges(context, view, rowsEnd);
    context.font = font(Math.min(11, view.rowHeight - 1));
    paintRowNames(context, view);
    context.font = font(11);
    offstage.nameGauges(context, view, rowsEnd);
    paintMarks(context, view);
  };
})();
