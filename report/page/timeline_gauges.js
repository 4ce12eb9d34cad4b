// What stands below a timeline's rows, on the same axis of time: memory of each pool against its
// capacity, and how busy each link is.
"use strict";

(function () {
  const memoryHeight = 46;
  const linkHeight = 26;
  const gap = 7;

  const heightOf = (gauge) => (gauge.memory ? memoryHeight : linkHeight);

  offstage.shownGauges = (view) =>
    view.data.gauges.filter((gauge) => (gauge.memory ? view.showsMemory : view.showsLinks));

  offstage.gaugesHeight = (view) =>
    offstage.shownGauges(view).reduce((sum, gauge) => sum + heightOf(gauge) + gap, 0);

  // The place in `at` of what holds at a moment.
  function placeAt(gauge, moment) {
    return Math.max(0, d3.bisectRight(gauge.at, moment) - 1);
  }
  offstage.gaugeAt = placeAt;

  // Calls draw(x0, x1, place of the highest value) for each pixel or longer stretch in sight.
  function walk(view, gauge, height, draw) {
    const [from, to] = view.scale.domain();
    const factor = (view.width - view.left) / (to - from);
    const end = Math.min(view.data.last, to);
    const {at} = gauge;
    let place = placeAt(gauge, from);
    while (place < at.length && at[place] < to) {
      const begin = Math.max(at[place], from);
      const pixel = begin + 1 / factor;
      let next = place + 1;
      let highest = place;
      // All that begins within this pixel is drawn at once.
      while (next < at.length && at[next] < pixel) {
        if (height[next] > height[highest]) highest = next;
        ++next;
      }
      const until = Math.min(next < at.length ? at[next] : end, to);
      draw(view.left + (begin - from) * factor, Math.max((until - begin) * factor, 0.5), highest);
      place = next;
    }
  }

  function paintMemory(context, view, gauge, top) {
    const factor = memoryHeight / gauge.capacity;
    const {constant, slots, used, working} = gauge;
    const bottom = top + memoryHeight;
    const right = Math.min(view.width, view.scale(view.data.last));
    const bar = (x, width, from, size) => context.fillRect(x, bottom - (from + size) * factor, width, size * factor);
    context.fillStyle = "#f4f6f9";
    context.fillRect(view.left, top, view.width - view.left, memoryHeight);
    context.fillStyle = "#aab5c1";
    bar(view.left, right - view.left, 0, constant);
    context.fillStyle = "#dbe7f6";
    bar(view.left, right - view.left, constant, slots);
    context.fillStyle = "#5b8fd6";
    walk(view, gauge, used, (x, width, i) => bar(x, width, constant, used[i]));
    context.fillStyle = "#dd8a2e";
    walk(view, gauge, working, (x, width, i) => {
      if (working[i] > 0) bar(x, width, constant + slots, working[i]);
    });
    context.fillStyle = "#b3261e";
    context.fillRect(view.left, top - 1, view.width - view.left, 1);
  }

  function paintLink(context, view, gauge, top) {
    context.fillStyle = "#f4f6f9";
    context.fillRect(view.left, top, view.width - view.left, linkHeight);
    context.fillStyle = "#2f8f8f";
    walk(view, gauge, gauge.used, (x, width, i) => {
      const size = Math.min(1, gauge.used[i] * 1e-6) * linkHeight;
      if (size > 0) context.fillRect(x, top + linkHeight - size, width, size);
    });
  }

  function eachGauge(view, top, draw) {
    top += gap;
    for (const gauge of offstage.shownGauges(view)) {
      draw(gauge, top);
      top += heightOf(gauge) + gap;
    }
  }

  offstage.paintGauges = function (context, view, top) {
    eachGauge(view, top, (gauge, y) => (gauge.memory ? paintMemory : paintLink)(context, view, gauge, y));
  };

  offstage.nameGauges = function (context, view, top) {
    eachGauge(view, top, (gauge, y) => {
      context.fillStyle = "#3b4754";
      const short = gauge.name.length > 21 ? gauge.name.slice(0, 20) + "\u2026" : gauge.name;
      context.fillText(short, 0, y + (gauge.memory ? 10 : linkHeight / 2));
      if (!gauge.memory) return;
      context.fillStyle = "#8a95a1";
      context.fillText("of " + offstage.text(gauge.capacity, "bytes"), 0, y + 25);
    });
  };

  // The gauge at a height of the canvas, if there is one.
  offstage.gaugeUnder = function (view, top, y) {
    let found = null;
    eachGauge(view, top, (gauge, at) => {
      if (y >= at && y < at + heightOf(gauge)) found = gauge;
    });
    return found;
  };
})();
