"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const value = (cell) => cell.dataset.v ?? cell.textContent.trim();

  // ---- the heat map: what a cell says, by pointer or finger
  const told = document.querySelector("figcaption output");
  for (const name of ["pointerover", "click"]) {
    document.querySelector(".heat").addEventListener(name, (event) => {
      const cell = event.target.closest("td");
      if (cell) told.textContent = cell.title;
    });
  }

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

  // ---- filter the rows
  const filter = document.getElementById("filter");
  if (!filter) return;
  const rows = all("#rows tbody tr");
  document.querySelector(".tools").hidden = false;
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const text = [...row.cells].map((cell) => `${cell.textContent} ${cell.dataset.v ?? ""}`).join(" ").toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    document.getElementById("told").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} samples`;
  });
})();
