// The tasks of a run as typed arrays, a number for each task, and what can be asked of them.
// Times are nanoseconds.
"use strict";

(function () {
  const {text} = offstage;

  function summed(differences) {
    const values = new Float64Array(differences.length);
    let sum = 0;
    for (let i = 0; i < values.length; ++i) values[i] = sum += differences[i];
    return values;
  }

  // Where the part of each task begins in a list of them all.
  function begins(counts) {
    const begin = new Uint32Array(counts.length + 1);
    for (let i = 0; i < counts.length; ++i) begin[i + 1] = begin[i] + counts[i];
    return begin;
  }

  function turned(count, begin, targets) {
    const counts = new Uint32Array(count);
    for (const target of targets) ++counts[target];
    const turnedBegin = begins(counts);
    const at = turnedBegin.slice(0, count);
    const sources = new Uint32Array(targets.length);
    for (let source = 0; source < begin.length - 1; ++source) {
      for (let i = begin[source]; i < begin[source + 1]; ++i) sources[at[targets[i]]++] = source;
    }
    return {begin: turnedBegin, values: sources};
  }

  class TimelineData {
    // `origin`: what counts as time 0.
    constructor(json, origin) {
      const tasks = json.tasks;
      const count = tasks.start.length;
      this.name = json.name;
      this.kinds = json.kinds;
      this.count = count;
      this.start = summed(tasks.start).map((start) => start - origin);
      this.end = this.start.map((start, task) => start + tasks.length[task]);
      this.kind = Uint8Array.from(tasks.kind);
      this.step = Uint32Array.from(tasks.step);
      this.submodel = Uint32Array.from(tasks.submodel);
      this.microBatch = Int32Array.from(tasks.micro_batch);
      this.gpu = Int32Array.from(tasks.gpu);
      this.size = Uint32Array.from(tasks.size);
      this.sizes = json.sizes;
      this.middle = json.step.map((edge) => edge - origin);
      this.first = this.start.reduce((a, b) => Math.min(a, b), Infinity);
      this.last = this.end.reduce((a, b) => Math.max(a, b), 0);
      this.readRows(json.rows, begins(tasks.row_count), tasks.row);
      this.readEdges(begins(tasks.after_count), tasks.after, tasks.cause);
      this.chain = summed(json.chain);
      this.onChain = new Uint8Array(count);
      for (const task of this.chain) this.onChain[task] = 1;
      this.gauges = json.gauges.map((gauge) => ({...gauge, at: summed(gauge.at).map((at) => at - origin)}));
    }

    // Rows without any task are left out.
    readRows(names, rowBegin, rows) {
      const lists = names.map(() => []);
      for (let task = 0; task < this.count; ++task) {
        for (let i = rowBegin[task]; i < rowBegin[task + 1]; ++i) lists[rows[i]].push(task);
      }
      this.rows = [];
      names.forEach((name, row) => {
        if (lists[row].length === 0) return;
        const tasks = Uint32Array.from(lists[row]);
        tasks.sort((a, b) => this.start[a] - this.start[b] || this.end[a] - this.end[b]);
        this.rows.push({name, tasks});
      });
      this.row = new Uint16Array(this.count);  // the first of each task's rows
      for (let row = this.rows.length; row-- > 0;) {
        for (const task of this.rows[row].tasks) this.row[task] = row;
      }
    }

    readEdges(begin, after, cause) {
      const before = new Uint32Array(after.length);
      for (let task = 0; task < this.count; ++task) {
        for (let i = begin[task]; i < begin[task + 1]; ++i) before[i] = task - after[i];
      }
      this.before = {begin, values: before};
      this.next = turned(this.count, begin, before);
      this.cause = Int32Array.from(cause, (distance, task) => (distance === 0 ? -1 : task - distance));
      this.hasEdges = before.length > 0;
    }

    predecessors(task) { return this.before.values.subarray(this.before.begin[task], this.before.begin[task + 1]); }
    successors(task) { return this.next.values.subarray(this.next.begin[task], this.next.begin[task + 1]); }

    // The first task of a row, by place, that ends after a moment.
    firstAfter(row, moment) {
      const tasks = this.rows[row].tasks;
      let low = 0;
      let high = tasks.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.end[tasks[middle]] > moment) high = middle; else low = middle + 1;
      }
      return low;
    }

    // The task of a row at a moment, or the nearest one no farther than `slack`; -1: none.
    taskAt(row, moment, slack) {
      const tasks = this.rows[row].tasks;
      let found = -1;
      let distance = slack;
      const place = this.firstAfter(row, moment - slack);
      for (let i = place; i < tasks.length && this.start[tasks[i]] <= moment + slack; ++i) {
        const task = tasks[i];
        const away = Math.max(this.start[task] - moment, moment - this.end[task], 0);
        if (away < distance || found < 0) {
          found = task;
          distance = away;
        }
        if (away === 0) break;
      }
      return found;
    }

    label(task) {
      const microBatch = this.microBatch[task];
      const gpu = this.gpu[task];
      return this.kinds[this.kind[task]] + " S" + this.submodel[task] +
             (microBatch < 0 ? "" : " m" + microBatch) + (gpu < 0 ? " all gpus" : " gpu" + gpu);
    }

    shortLabel(task) {
      const microBatch = this.microBatch[task];
      return "S" + this.submodel[task] + (microBatch < 0 ? "" : " m" + microBatch);
    }

    bytes(task) { return this.sizes[this.size[task]]; }

    // "waited 3 ms for fetch weights S3 gpu0", as the tooltip says it.
    wait(task) {
      const cause = this.cause[task];
      if (cause < 0) return this.hasEdges ? "waited for nothing" : "";
      const onEngine = !this.predecessors(task).includes(cause);
      const late = this.start[task] - this.end[cause];
      return `waited for ${this.label(cause)}` + (onEngine ? " on its engine" : "") +
             (late > 500 ? `, then ${text(late * 1e-9, "seconds")} more` : "");
    }
  }

  offstage.TimelineData = TimelineData;
})();
