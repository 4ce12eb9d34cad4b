// Timelines: one canvas for each run, zoomed and moved together.
"use strict";

(function () {
  const {element, timelineSizes} = offstage;

  // What all timelines of a section have in common.
  class Link {
    constructor(first, last) {
      this.first = first;
      this.last = last;
      this.views = [];
      this.transform = d3.zoomIdentity;
    }
    // Every canvas has its own width, the part of time in sight is the same.
    show(transform, from) {
      for (const view of this.views) {
        const scaled = from === undefined || view === from ? transform
          : d3.zoomIdentity.translate(transform.x * view.plotWidth() / from.plotWidth(), 0).scale(transform.k);
        d3.select(view.canvas).property("__zoom", scaled);
        view.transform = scaled;
        view.draw();
      }
    }
    // Shows [from, to] with a little room around it.
    showTime(from, to) {
      const room = 0.01 * (to - from);
      const whole = this.last - this.first;
      const k = Math.max(1, whole / (to - from + 2 * room));
      for (const view of this.views) {
        const width = view.plotWidth();
        const x = Math.min(0, Math.max(width * (1 - k), -((from - room - this.first) / whole) * width * k));
        const transform = d3.zoomIdentity.translate(x, 0).scale(k);
        d3.select(view.canvas).property("__zoom", transform);
        view.transform = transform;
        view.draw();
      }
    }
    zoomBy(factor) {
      const view = this.views[0];
      d3.select(view.canvas).call(view.zoom.scaleBy, factor);
    }
  }

  class View {
    // `compact`: with low rows, so that several timelines are in sight together.
    constructor(data, link, details, compact) {
      this.data = data;
      this.link = link;
      this.details = details;
      this.canvas = element("canvas");
      this.canvas.tabIndex = 0;
      this.context = this.canvas.getContext("2d");
      this.shades = offstage.shadesOf(data.kinds);
      this.left = timelineSizes.labelWidth;
      this.rowHeight = compact ? 12 : 19;
      this.barHeight = compact ? 9 : 15;
      this.transform = d3.zoomIdentity;
      this.showsMemory = true;
      this.showsLinks = false;
      this.showsChain = false;
      this.hidden = new Uint8Array(data.kinds.length);
      this.anyHidden = false;
      this.hovered = -1;
      this.chosen = -1;
      this.frames = 0;
      this.frameTime = 0;  // of the last picture, in milliseconds
      this.isFaint = (task) => (this.showsChain && !this.data.onChain[task]) || this.hidden[this.data.kind[task]] === 1;
      link.views.push(this);
    }

    plotWidth() { return Math.max(1, this.width - this.left); }

    resize() {
      const ratio = window.devicePixelRatio || 1;
      this.width = Math.max(320, this.canvas.parentElement.clientWidth);
      this.rowsEnd = timelineSizes.axisHeight + this.data.rows.length * this.rowHeight;
      this.height = this.rowsEnd + offstage.gaugesHeight(this) + 4;
      this.canvas.width = Math.round(this.width * ratio);
      this.canvas.height = Math.round(this.height * ratio);
      this.canvas.style.height = this.height + "px";
      this.lines = new offstage.TimelineLines(Math.round(this.plotWidth() * ratio), this.data.rows.length);
      this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.listen();
    }

    // d3's zoom of a plot that begins right of the names.
    listen() {
      const area = [[0, 0], [this.plotWidth(), this.height]];
      const shortest = 200;  // nanoseconds over the whole width
      this.zoom = d3.zoom()
        .extent(area)
        .translateExtent([[0, -Infinity], [this.plotWidth(), Infinity]])
        .scaleExtent([1, Math.max(1, (this.link.last - this.link.first) / shortest)])
        .filter(() => (d3.event.type === "wheel" ? d3.event.ctrlKey || d3.event.metaKey || d3.event.shiftKey : !d3.event.button))
        .wheelDelta(() => -(d3.event.deltaY || d3.event.deltaX) * (d3.event.deltaMode === 1 ? 0.05 : 0.002))
        .on("start", () => this.canvas.classList.toggle("dragging", d3.event.sourceEvent && d3.event.sourceEvent.type === "mousedown"))
        .on("zoom", () => this.link.show(d3.event.transform, this))
        .on("end", () => this.canvas.classList.remove("dragging"));
      d3.select(this.canvas).call(this.zoom);
    }

    draw() {
      const begin = performance.now();
      const whole = d3.scaleLinear([this.link.first, this.link.last], [this.left, this.width]);
      // The transform is of the plot, whose left edge is at `left`.
      const {k, x} = this.transform;
      const span = this.link.last - this.link.first;
      const from = this.link.first - (x / (k * this.plotWidth())) * span;
      this.scale = whole.domain([from, from + span / k]);
      offstage.paintTimeline(this.context, this);
      ++this.frames;
      this.frameTime = performance.now() - begin;
    }

    // Soon, and once for all events until then.
    redraw() {
      if (this.waiting) return;
      this.waiting = true;
      requestAnimationFrame(() => {
        this.waiting = false;
        this.draw();
      });
    }

    under(event) {
      const box = this.canvas.getBoundingClientRect();
      const x = event.clientX - box.left;
      const y = event.clientY - box.top;
      const moment = this.scale.invert(x);
      const row = Math.floor((y - timelineSizes.axisHeight) / this.rowHeight);
      if (x < this.left) return {task: -1, gauge: null, moment};
      if (y >= this.rowsEnd) return {task: -1, gauge: offstage.gaugeUnder(this, this.rowsEnd, y), moment};
      if (row < 0) return {task: -1, gauge: null, moment};
      const slack = this.scale.invert(3) - this.scale.invert(0);
      return {task: this.data.taskAt(row, moment, slack), gauge: null, moment};
    }

    hover(event) {
      const {task, gauge, moment} = this.under(event);
      if (task >= 0) offstage.tipOfTask(this.data, task, event);
      else if (gauge) offstage.tipOfGauge(gauge, moment, event);
      else offstage.hideTip();
      if (task === this.hovered) return;
      this.hovered = task;
      this.redraw();
    }

    choose(task) {
      this.chosen = task;
      offstage.showDetails(this.details, this.data, task, (other) => {
        const [from, to] = this.scale.domain();
        const inSight = this.data.end[other] > from && this.data.start[other] < to;
        if (!inSight) {
          const half = (to - from) / 2;
          const middle = (this.data.start[other] + this.data.end[other]) / 2;
          this.link.showTime(Math.max(this.link.first, middle - half), Math.min(this.link.last, middle + half));
        }
        this.choose(other);
      });
      this.redraw();
    }
  }

  function button(name, action) {
    const made = element("button", "", name);
    made.addEventListener("click", action);
    return made;
  }

  function checkbox(name, checked, action) {
    const box = element("input");
    box.type = "checkbox";
    box.checked = checked;
    box.addEventListener("change", () => action(box.checked));
    return element("label", "", [box, name]);
  }

  function tools(link) {
    const {views} = link;
    const all = (change, resizes) => (value) => {
      for (const view of views) {
        change(view, value);
        if (resizes) view.resize();
        view.draw();
      }
    };
    const middle = [views[0].data.middle[0], Math.max(...views.map((view) => view.data.middle[1]))];
    const bar = element("div", "tools", [
      button("One step", () => link.showTime(middle[0], middle[1])),
      button("Whole run", () => link.showTime(link.first, link.last)),
      button("+", () => link.zoomBy(2)),
      button("\u2212", () => link.zoomBy(0.5))]);
    const has = (test) => views.some((view) => test(view.data));
    if (has((data) => data.chain.length > 0)) {
      bar.append(checkbox("Critical path", false, all((view, on) => { view.showsChain = on; })));
    }
    if (has((data) => data.gauges.some((gauge) => gauge.memory))) {
      bar.append(checkbox("Memory", true, all((view, on) => { view.showsMemory = on; }, true)));
    }
    if (has((data) => data.gauges.some((gauge) => !gauge.memory))) {
      bar.append(checkbox("Links", false, all((view, on) => { view.showsLinks = on; }, true)));
    }
    bar.append(element("span", "hint", "Drag to move, Ctrl + wheel to zoom, click a task for what it needs"));
    return bar;
  }

  // A click on a kind takes it out of the picture, and back.
  function legend(views) {
    const kinds = [...new Set(views.flatMap((view) => view.data.kinds))];
    return element("div", "legend", kinds.map((kind, index) => {
      const patch = element("i");
      patch.style.background = offstage.colour(kind, index);
      const entry = element("button", "", [patch, kind]);
      entry.addEventListener("click", () => {
        const off = entry.classList.toggle("off");
        for (const view of views) {
          const number = view.data.kinds.indexOf(kind);
          if (number >= 0) view.hidden[number] = off ? 1 : 0;
          view.draw();
        }
      });
      return entry;
    }));
  }

  function steer(view) {
    const {canvas, link} = view;
    let pressed = null;
    canvas.addEventListener("mousemove", (event) => view.hover(event));
    canvas.addEventListener("mouseleave", () => {
      offstage.hideTip();
      view.hovered = -1;
      view.redraw();
    });
    canvas.addEventListener("mousedown", (event) => { pressed = [event.clientX, event.clientY]; }, true);
    canvas.addEventListener("click", (event) => {
      const moved = pressed && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) > 3;
      if (!moved) view.choose(view.under(event).task);
    });
    canvas.addEventListener("keydown", (event) => {
      const {x, k} = view.transform;
      const move = (part) => {
        const width = view.plotWidth();
        const to = Math.min(0, Math.max(width * (1 - k), x + part * width));
        link.show(d3.zoomIdentity.translate(to, 0).scale(k), view);
      };
      const keys = {ArrowLeft: () => move(0.1), ArrowRight: () => move(-0.1), "+": () => link.zoomBy(1.5),
                    "-": () => link.zoomBy(1 / 1.5), Escape: () => view.choose(-1)};
      if (!keys[event.key]) return;
      keys[event.key]();
      event.preventDefault();
    });
  }

  offstage.showTimelines = function (section, into) {
    const all = section.timelines.map((json) =>
      new offstage.TimelineData(json, section.timelines.length > 1 ? json.step[0] : 0));
    const link = new Link(Math.min(0, ...all.map((data) => data.first)), Math.max(...all.map((data) => data.last)));
    const details = element("div", "details");
    const compact = all.length > 1 && all.some((data) => data.rows.length > 16);
    const views = all.map((data) => new View(data, link, details, compact));
    into.append(tools(link), legend(views));
    for (const view of views) {
      const box = element("div", "view", views.length > 1 ? element("h3", "", view.data.name) : null);
      box.append(view.canvas);
      into.append(box);
      steer(view);
    }
    into.append(details);
    const resize = () => {
      for (const view of views) view.resize();
      const longest = Math.max(...all.map((data) => data.middle[1]));
      const [from, to] = views[0].scale ? views[0].scale.domain() : [views[0].data.middle[0], longest];
      link.showTime(from, to);
    };
    resize();
    window.addEventListener("resize", resize);
    offstage.timelines.push(...views);
  };
})();
