"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const value = (cell) => cell.dataset.v ?? cell.textContent.trim();

  // ---- the heat map: what a cell says, by pointer, finger or arrow keys
  const heat = document.querySelector(".heat");
  const told = document.querySelector("figcaption output");
  const cells = all("tbody tr", heat).map((row) => all("td", row));
  const tell = (cell) => { told.textContent = cell.title; };
  let current = cells[0][0];
  current.tabIndex = 0;
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  for (const name of ["pointerover", "click", "focusin"]) {
    heat.addEventListener(name, (event) => {
      const cell = event.target.closest("td");
      if (cell) tell(cell);
    });
  }
  heat.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    const i = cells.findIndex((row) => row.includes(event.target));
    if (!step || i < 0) return;
    event.preventDefault();
    const next = cells[i + step[0]]?.[cells[i].indexOf(event.target) + step[1]];
    if (!next) return;
    current.tabIndex = -1;
    current = next;
    current.tabIndex = 0;
    current.focus();
  });

  // ---- sort by a click or a key on a heading
  const collator = new Intl.Collator(undefined, { numeric: true });
  const compare = (a, b) => {
    const [x, y] = [Number(a), Number(b)];
    return a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y) ? x - y : collator.compare(a, b);
  };
  for (const button of all(".sortable thead button")) {
    button.addEventListener("click", () => {
      const heading = button.closest("th");
      const table = heading.closest("table");
      const descending = heading.getAttribute("aria-sort") === "ascending";
      for (const other of all("th", table)) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const of = (row) => value(row.cells[heading.cellIndex]);
      const rows = all("tbody tr", table).sort((a, b) => (descending ? -1 : 1) * compare(of(a), of(b)));
      table.tBodies[0].append(...rows);
    });
  }

  // ---- filter the rows, and copy those that are shown
  const table = document.getElementById("rows");
  if (!table) return;
  const [filter, pair, copy, output] = ["filter", "pair", "copy", "told"].map((id) => document.getElementById(id));
  document.querySelector(".tools").hidden = false;
  const shown = () => all("tbody tr", table).filter((row) => !row.hidden);
  const text = (row) => [...row.cells].map((cell) => `${cell.textContent} ${cell.dataset.v ?? ""}`).join(" ").toLowerCase();
  const select = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of all("tbody tr", table)) {
      const fits = !pair.value || row.dataset.pair === pair.value;
      row.hidden = !(fits && words.every((word) => text(row).includes(word)));
    }
    output.textContent = `${shown().length} of ${table.tBodies[0].rows.length} rows`;
  };
  filter.addEventListener("input", select);
  pair.addEventListener("change", select);

  const quoted = (entry) => (/[",\n\r]/.test(entry) ? `"${entry.replaceAll('"', '""')}"` : entry);
  const csv = () => {
    const columns = all("thead th", table).filter((heading) => heading.dataset.csv);
    const lines = shown().map((row) => columns.map((heading) => quoted(value(row.cells[heading.cellIndex]))).join(","));
    return [columns.map((heading) => heading.dataset.csv).join(","), ...lines].join("\n") + "\n";
  };
  const byCommand = (content) => { // where the page may not use the clipboard's own interface
    const area = document.createElement("textarea");
    area.value = content;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  copy.addEventListener("click", async () => {
    const content = csv();
    const done = await navigator.clipboard?.writeText(content).then(() => true, () => byCommand(content)) ?? byCommand(content);
    output.textContent = done ? `${shown().length} rows copied` : "this browser did not let the page copy";
    copy.focus();
  });
})();
