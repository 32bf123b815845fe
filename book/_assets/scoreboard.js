/* Filters for the scoreboard. Without this script the page is a plain list of tables. */
(() => {
  "use strict";

  function select(label, values) {
    const chosen = document.createElement("select");
    for (const value of ["all", ...values]) {
      chosen.add(new Option(value, value));
    }
    const named = document.createElement("label");
    named.append(`${label} `, chosen);
    return [named, chosen];
  }

  function start() {
    const tables = [...document.querySelectorAll("table.claims-table")];
    if (tables.length === 0) return;
    const rows = tables.flatMap((table) => {
      const section = table.closest("section");
      const paper = section.querySelector("h2").firstChild.textContent.trim();
      return [...table.tBodies[0].rows].map((row) => ({
        row,
        section,
        paper,
        verdict: row.cells[1].textContent.trim(),
        words: row.textContent.toLowerCase(),
      }));
    });
    const unique = (key) => [...new Set(rows.map((each) => each[key]))];
    const [paperLabel, paper] = select("Paper", unique("paper"));
    const [verdictLabel, verdict] = select("Verdict", unique("verdict"));
    const words = document.createElement("input");
    words.type = "search";
    const wordsLabel = document.createElement("label");
    wordsLabel.append("Words ", words);
    const count = document.createElement("output");
    count.setAttribute("aria-live", "polite");

    function filter() {
      const wanted = words.value.toLowerCase().trim();
      let shown = 0;
      const sections = new Map();
      for (const each of rows) {
        const keep =
          (paper.value === "all" || each.paper === paper.value) &&
          (verdict.value === "all" || each.verdict === verdict.value) &&
          each.words.includes(wanted);
        each.row.hidden = !keep;
        shown += keep ? 1 : 0;
        sections.set(each.section, (sections.get(each.section) ?? 0) + (keep ? 1 : 0));
      }
      for (const [section, left] of sections) section.hidden = left === 0;
      count.textContent = `${shown} of ${rows.length} claims`;
    }

    const form = document.createElement("form");
    form.className = "claims-filter";
    form.setAttribute("aria-label", "Filter the claims");
    form.append(paperLabel, verdictLabel, wordsLabel, count);
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    rows[0].section.before(form);
    filter();
  }

  if (document.readyState === "loading") {
    document.addEventListener("DOMContentLoaded", start);
  } else {
    start();
  }
})();
