// Tables: numbers right, fractions as bars, sorted by a click on a column's name.
"use strict";

(function () {
  const {element, text} = offstage;

  function isNumber(table, column) {
    return table.rows.some((row) => typeof row[column] === "number");
  }

  function barCell(value) {
    const cell = element("td", "bar");
    if (typeof value !== "number") return cell;
    const fill = element("span", value > 1.0005 ? "fill full" : "fill");
    fill.style.width = 100 * Math.min(Math.max(value, 0), 1) + "%";
    cell.append(element("span", "track", fill), element("span", "value", text(value, "fraction")));
    return cell;
  }

  function compare(a, b) {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", {numeric: true});
  }

  offstage.showTable = function (table, into) {
    const body = element("tbody");
    const fill = (rows) => body.replaceChildren(...rows.map((row) =>
      element("tr", "", row.map((value, column) => {
        const {format, bar} = table.columns[column];
        if (bar) return barCell(value);
        return element("td", typeof value === "number" ? "number" : "", text(value, format));
      }))));
    const heads = table.columns.map((column, index) => {
      const head = element("th", isNumber(table, index) ? "number" : "", column.name);
      head.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const sign = up ? 1 : -1;
        fill([...table.rows].sort((a, b) => sign * compare(a[index], b[index])));
      });
      return head;
    });
    fill(table.rows);
    const whole = element("table", "", [element("thead", "", element("tr", "", heads)), body]);
    into.append(element("div", "scroll", whole));
  };
})();
