// Puts a page together: what is on top, the list of sections, and each section by its type.
"use strict";

(function () {
  const {element} = offstage;
  offstage.timelines = [];  // the views of all timelines, for tests and measurements

  function showHeader(report) {
    const header = document.querySelector("header");
    header.append(element("h1", "", report.title), element("p", "subtitle", report.subtitle));
    if (report.facts.length === 0) return;
    const facts = element("dl", "facts");
    for (const fact of report.facts) {
      const value = element("dd", "", fact.value);
      if (fact.note) value.append(element("div", "note", fact.note));
      facts.append(element("div", "fact " + fact.tone, [element("dt", "", fact.name), value]));
    }
    header.append(facts);
  }

  function showList(section, into) {
    const long = section.items.length > 6 && !section.half;
    const list = element("ul", long ? "columns" : "", section.items.map((item) => element("li", "", item)));
    into.append(list);
  }

  const show = {
    table: (section, into) => offstage.showTable(section, into),
    chart: (section, into) => offstage.showChart(section, into),
    timeline: (section, into) => offstage.showTimelines(section, into),
    list: showList,
  };

  offstage.showPage = function (report) {
    showHeader(report);
    const main = document.querySelector("main");
    const nav = document.querySelector("nav");
    report.sections.forEach((section, index) => {
      const into = element("section", section.half ? "half" : "", element("h2", "", section.title));
      into.id = "section" + index;
      if (section.text) into.append(element("p", "", section.text));
      main.append(into);
      show[section.type](section, into);
      const link = element("a", "", section.title);
      link.href = "#" + into.id;
      nav.append(link);
    });
    // A last half section alone in its row takes all of it.
    let left = false;
    let last = null;
    for (const into of main.children) {
      if (!into.classList.contains("half")) {
        if (left && last) last.classList.remove("half");
        left = false;
      } else {
        left = !left;
        last = into;
      }
    }
    if (left && last) last.classList.remove("half");
    document.querySelector("footer").append(...report.footer.map((text) => element("span", "", text)));
    window.dispatchEvent(new Event("resize"));
    document.body.dataset.ready = "yes";
  };
})();
