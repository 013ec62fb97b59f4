// A line under each page that the search finds, from SUMMARIES (summaries.js): Sphinx's own lines are fetched, which
// browsers refuse for files on a disk.
document.addEventListener("DOMContentLoaded", () => {
  const add = (item) => {
    const page = item.querySelector("a")?.getAttribute("href").split(".html")[0];
    if (item.querySelector("span, p") || !SUMMARIES[page]) return; // functions and classes have a line
    item.appendChild(document.createElement("p")).textContent = SUMMARIES[page];
  };
  const added = (changes) => changes.flatMap((change) => [...change.addedNodes]).filter((node) => node.nodeName === "LI");
  const observer = new MutationObserver((changes) => added(changes).forEach(add));
  observer.observe(document.getElementById("search-results"), { childList: true, subtree: true });
});
