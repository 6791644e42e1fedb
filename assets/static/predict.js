// "Predict" blocks: the list of an admonition of class `predict` becomes a group of radio buttons,
// and its Answer dropdown opens only once one of them is chosen. Without this script the block
// stays a plain list with a plain dropdown.
(() => {
  "use strict";

  function arm(block, index) {
    const list = block.querySelector(":scope > ul, :scope > ol");
    const answer = block.querySelector(":scope > details");
    if (!list || !answer) return;
    const summary = answer.querySelector("summary");
    const question = list.previousElementSibling;
    const name = `predict-${index}`;
    if (!question.id) question.id = `${name}-question`;

    const group = document.createElement("div");
    group.className = "predict-choices";
    group.setAttribute("role", "radiogroup");
    group.setAttribute("aria-labelledby", question.id);
    for (const item of list.children) {
      const label = document.createElement("label");
      const radio = document.createElement("input");
      const text = document.createElement("span");
      radio.type = "radio";
      radio.name = name;
      // A label holds running text only, so the paragraph around a choice goes.
      const inner = item.children.length === 1 && item.firstElementChild.tagName === "P"
        ? item.firstElementChild : item;
      text.append(...inner.childNodes);
      label.append(radio, text);
      group.append(label);
    }
    list.replaceWith(group);

    const hint = document.createElement("p");
    hint.className = "predict-hint";
    hint.id = `${name}-hint`;
    hint.setAttribute("role", "status");
    hint.textContent = "Choose one to open the answer.";
    answer.before(hint);
    summary.setAttribute("aria-disabled", "true");
    summary.setAttribute("aria-describedby", hint.id);

    const locked = () => summary.getAttribute("aria-disabled") === "true";
    // Enter and Space on a summary arrive as clicks too.
    summary.addEventListener("click", (event) => {
      if (locked()) event.preventDefault();
    });
    // The browser's own search opens a dropdown without a click.
    answer.addEventListener("toggle", () => {
      if (locked()) answer.open = false;
    });
    group.addEventListener("change", () => {
      summary.removeAttribute("aria-disabled");
      hint.textContent = "Now open the answer.";
    });
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".admonition.predict").forEach(arm);
  });
})();
