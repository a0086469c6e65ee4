// What a page can do beyond being read: find, and sort. Without scripts it lacks just these.
"use strict";
(() => {
  const box = document.getElementById("find");
  const rows = [...document.querySelectorAll("main tbody tr, main li")];
  // Inner ones before those around them.
  const folds = [...document.querySelectorAll("main details")].reverse();
  const wasOpen = new Map(folds.map((fold) => [fold, fold.open]));
  const text = (element) => element.textContent.toLowerCase();

  const find = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (element) => words.every((word) => text(element).includes(word));
    for (const row of rows) row.hidden = !fits(row);
    for (const fold of folds) {
      const named = words.length > 0 && fits(fold.querySelector("summary"));
      if (named) for (const inner of fold.querySelectorAll("[hidden]")) inner.hidden = false;
      const any = named || fold.querySelector("tbody tr:not([hidden]), li:not([hidden])") !== null;
      fold.hidden = words.length > 0 && !any;
      fold.open = words.length > 0 ? any : wasOpen.get(fold);
    }
    const shown = rows.filter((row) => !row.hidden).length;
    document.getElementById("finds").textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  };
  if (box) {
    box.closest("[hidden]").hidden = false;
    box.addEventListener("input", find);
  }

  const key = (row, column) => {
    const cell = row.cells[column];
    const raw = cell.dataset.v || cell.textContent.trim();
    const number = Number(raw.replace(/[,%]| of .*/g, ""));
    return raw === "" || Number.isNaN(number) ? raw : number;
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const [column, header] of [...table.tHead.rows[0].cells].entries()) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = header.textContent;
      header.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = header.getAttribute("aria-sort") !== "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        header.setAttribute("aria-sort", up ? "ascending" : "descending");
        const body = table.tBodies[0];
        const keyed = [...body.rows].map((row) => [key(row, column), row]);
        keyed.sort((a, b) => {
          // Last in both directions.
          const empty = (a[0] === "") - (b[0] === "");
          return empty || (up ? 1 : -1) * compare(a[0], b[0]);
        });
        body.append(...keyed.map((pair) => pair[1]));
      });
    }
  }
})();
