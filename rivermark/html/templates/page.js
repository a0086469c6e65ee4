// What a page can do beyond being read: find, sort, save itself, and go on where it is served.
// Without scripts it lacks just these.
"use strict";
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  const findable = () => {
    const box = document.getElementById("find");
    if (!box) return;
    const rows = all("main tbody tr, main li");
    // Inner ones before those around them.
    const folds = all("main details").reverse();
    const wasOpen = new Map(folds.map((fold) => [fold, fold.open]));
    const text = (element) => element.textContent.toLowerCase();
    const find = () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = (element) => words.every((word) => text(element).includes(word));
      for (const row of rows) row.hidden = !fits(row);
      for (const fold of folds) {
        const named = words.length > 0 && fits(fold.querySelector("summary"));
        if (named) for (const inner of all("[hidden]", fold)) inner.hidden = false;
        const any = named || fold.querySelector("tbody tr:not([hidden]), li:not([hidden])") !== null;
        fold.hidden = words.length > 0 && !any;
        fold.open = words.length > 0 ? any : wasOpen.get(fold);
      }
      const shown = rows.filter((row) => !row.hidden).length;
      document.getElementById("finds").textContent = words.length ? `${shown} of ${rows.length} rows` : "";
    };
    box.closest("[hidden]")?.removeAttribute("hidden");
    box.addEventListener("input", find);
    if (box.value) find();
  };

  const key = (row, column) => {
    const cell = row.cells[column];
    const raw = cell.dataset.v || cell.textContent.trim();
    const number = Number(raw.replace(/[,%]| of .*/g, ""));
    return raw === "" || Number.isNaN(number) ? raw : number;
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  const sort = (table, column, up) => {
    const headers = [...table.tHead.rows[0].cells];
    for (const other of headers) other.removeAttribute("aria-sort");
    headers[column].setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => [key(row, column), row]);
    keyed.sort((a, b) => {
      // Last in both directions.
      const empty = (a[0] === "") - (b[0] === "");
      return empty || (up ? 1 : -1) * compare(a[0], b[0]);
    });
    body.append(...keyed.map((pair) => pair[1]));
  };
  const sortable = () => {
    for (const table of all("table.sortable")) {
      for (const [column, header] of [...table.tHead.rows[0].cells].entries()) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = header.textContent;
        header.replaceChildren(button);
        button.addEventListener("click", () =>
          sort(table, column, header.getAttribute("aria-sort") !== "ascending"));
      }
    }
  };

  // The page as it is looked at: what is open, found and sorted stays so in the file.
  const save = () => {
    const copy = document.documentElement.cloneNode(true);
    const box = document.getElementById("find");
    if (box) copy.querySelector("#find").setAttribute("value", box.value);
    for (const link of all("a[href]", copy)) {
      const to = link.getAttribute("href");
      if (!/^(#|data:)/.test(to)) link.href = new URL(to, location.href).href;
    }
    copy.querySelector("#live").textContent = "";
    const file = new Blob(["<!doctype html>\n", copy.outerHTML], { type: "text/html" });
    const link = document.createElement("a");
    const at = document.querySelector("time")?.dateTime.slice(0, 16).replace(":", "") ?? "";
    const name = location.pathname.split("/").pop().replace(/\.html$/, "") || "page";
    link.href = URL.createObjectURL(file);
    link.download = [name, at].filter(Boolean).join("-") + ".html";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const tools = () => {
    const button = document.getElementById("save");
    if (!button) return;
    button.closest("[hidden]")?.removeAttribute("hidden");
    button.addEventListener("click", save);
  };
  const start = () => {
    sortable();
    findable();
    tools();
  };

  // A served page takes up a newer one where the reader is: folds, search, order, focus and place.
  const reached = "a, button, summary, input, [tabindex]";
  const name = (fold) => fold.id || fold.querySelector("summary h3, summary h4")?.textContent ||
    `${fold.closest("section")?.id} ${all("details", fold.closest("section") ?? document).indexOf(fold)}`;
  const take = (newer) => {
    const open = new Map(all("main details").map((fold) => [name(fold), fold.open]));
    const sorted = all("table.sortable").map((table) => {
      const headers = [...table.tHead.rows[0].cells];
      return [headers.findIndex((h) => h.hasAttribute("aria-sort")),
        headers.some((h) => h.getAttribute("aria-sort") === "ascending"), table.caption.textContent];
    });
    const words = document.getElementById("find")?.value ?? "";
    const focus = all(reached).indexOf(document.activeElement);
    const y = scrollY;
    document.body.replaceWith(document.adoptNode(newer.body));
    for (const fold of all("main details")) fold.open = open.get(name(fold)) ?? fold.open;
    const box = document.getElementById("find");
    if (box) box.value = words;
    start();
    for (const [column, up, caption] of sorted) {
      const same = all("table.sortable").find((table) => table.caption.textContent === caption);
      if (column >= 0 && same) sort(same, column, up);
    }
    if (focus >= 0) all(reached)[focus]?.focus({ preventScroll: true });
    scrollTo(0, y);
  };
  let drawn = null;
  const tell = (text, lost = false) => {
    const place = document.getElementById("live");
    if (!place) return;
    place.textContent = text;
    place.classList.toggle("lost", lost);
  };
  const look = async () => {
    // Nobody draws for a page that nobody looks at.
    if (document.hidden) return;
    try {
      const head = await fetch(location.pathname, { method: "HEAD", cache: "no-store" });
      if (!head.ok) throw new Error(`the server answers ${head.status}`);
      const newest = head.headers.get("Last-Modified");
      if (drawn !== null && newest !== drawn) {
        const page = await (await fetch(location.pathname, { cache: "no-store" })).text();
        take(new DOMParser().parseFromString(page, "text/html"));
      }
      drawn = newest;
      const problem = head.headers.get("Rivermark-Problem");
      const seconds = Math.max(0, Math.round((Date.now() - Date.parse(newest)) / 1000));
      const age = seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
      tell(problem ? `Not drawn again: ${problem}` : `Refreshes by itself; drawn ${age} ago`, problem !== null);
    } catch (error) {
      tell(`Stands still: ${error.message}`, true);
    }
  };

  start();
  if (location.protocol.startsWith("http")) {
    look();
    setInterval(look, 5000);
    document.addEventListener("visibilitychange", look);
  }
})();
