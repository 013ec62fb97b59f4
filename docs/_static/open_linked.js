// Open the method that a link, the search or the list of the page leads to.
const openLinked = () => {
  const linked = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  let closed = linked?.closest("details:not([open])");
  while (closed) {
    closed.open = true;
    closed = linked.closest("details:not([open])");
    linked.closest("details").scrollIntoView();
  }
};
addEventListener("hashchange", openLinked);
document.addEventListener("DOMContentLoaded", openLinked);
