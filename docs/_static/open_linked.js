// Open the method that a link, the search or the list of the page leads to.
const openLinked = () => {
  const closed = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest("details:not([open])");
  if (!closed) return;
  closed.open = true;
  closed.scrollIntoView();
};
addEventListener("hashchange", openLinked);
document.addEventListener("DOMContentLoaded", openLinked);
