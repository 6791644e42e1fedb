// What is too wide for the page, as a formula on a phone, scrolls within itself. It can be reached
// with Tab and then scrolled with the arrow keys, and a shadow at an edge (course.css) says that it
// goes on there. Short code in a line of text is kept in one piece.
(() => {
  "use strict";

  const WIDE = ".bd-content :is(mjx-container[display='true'], mjx-container.wide, div.cell_output,"
    + " div.output, .live-output, .pst-scrollable-table-container, pre, table)";
  const SHORT = 28; // characters that fit beside any margin, on any phone

  function markEdges(element, scrolls = true) {
    const left = element.scrollLeft;
    const right = element.scrollWidth - element.clientWidth - left;
    const edges = [left > 1 && "left", right > 1 && "right"].filter(Boolean).join(" ");
    if (scrolls && edges) element.dataset.more = edges;
    else delete element.dataset.more;
  }

  // A formula in a line of text is not a box that could scroll until it has to be one.
  function markWideFormulas() {
    for (const formula of document.querySelectorAll("mjx-container:not([display])")) {
      formula.classList.remove("wide");
      const block = formula.closest("p, li, dd, td, th, figcaption, h1, h2, h3, summary");
      const width = formula.getBoundingClientRect().width;
      if (block && block.clientWidth && width > block.clientWidth) formula.classList.add("wide");
    }
  }

  function update() {
    markWideFormulas();
    for (const element of document.querySelectorAll(WIDE)) {
      const scrolls = element.scrollWidth > element.clientWidth + 1
        && getComputedStyle(element).overflowX !== "visible";
      if (scrolls) element.tabIndex = 0;
      else if (!element.matches("pre, table")) element.removeAttribute("tabindex");
      markEdges(element, scrolls);
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const code of document.querySelectorAll(".bd-content :not(pre, h1, h2, h3) > code")) {
      code.classList.toggle("short", code.textContent.length <= SHORT);
    }
  });

  window.addEventListener("load", async () => {
    // Formulas get their width when MathJax has set them.
    await window.MathJax?.startup?.promise;
    update();
    document.addEventListener("scroll", ({ target }) => {
      if (target.matches?.(WIDE)) markEdges(target);
    }, { capture: true, passive: true });
    // The page changes its size with the window, when something opens, and with a run's output.
    const article = document.querySelector(".bd-article");
    if (article) new ResizeObserver(update).observe(article);
  });
})();
