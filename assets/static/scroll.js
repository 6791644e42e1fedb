// What scrolls sideways within the page, as a wide formula on a phone, can be reached with Tab and
// then scrolled with the arrow keys.
(() => {
  "use strict";

  const WIDE = ".bd-content :is(mjx-container[display='true'], div.cell_output, div.output, pre, table)";

  function update() {
    for (const element of document.querySelectorAll(WIDE)) {
      const scrolls = element.scrollWidth > element.clientWidth + 1
        && getComputedStyle(element).overflowX !== "visible";
      if (scrolls) element.tabIndex = 0;
      else if (element.matches("mjx-container, div")) element.removeAttribute("tabindex");
    }
  }

  window.addEventListener("load", async () => {
    // Formulas get their width when MathJax has set them.
    await window.MathJax?.startup?.promise;
    update();
    window.addEventListener("resize", update);
  });
})();
