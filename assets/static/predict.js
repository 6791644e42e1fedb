// "Predict" blocks: the list of an admonition of class `predict` becomes a group of radio buttons,
// and its Answer dropdown opens once one of them is chosen, not before. Without this script the
// block stays a plain list with a plain dropdown.
//
// What counts as choosing: a click or tap, and on the keyboard Space or Enter. The arrow keys only
// go from choice to choice, though browsers select the radio button they come to: who reads all the
// choices that way must not be shown the answer. The dropdown itself can be opened from then on.
// The answer stands below the choices, and the line between keeps its height: opening moves nothing
// above it. The focus stays where it is; the line, a status, says that the answer is open.
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
    const unlock = (text) => {
      summary.removeAttribute("aria-disabled");
      hint.textContent = text;
    };
    const open = () => {
      unlock("The answer is open.");
      answer.open = true;
    };
    // Arrow keys arrive as clicks on the next radio button.
    let byArrow = false;
    group.addEventListener("keydown", (event) => {
      byArrow = event.key.startsWith("Arrow");
      // Enter does nothing to a radio button, and Space nothing to one that is chosen already.
      if (["Enter", " "].includes(event.key) && event.target.type === "radio") {
        event.preventDefault();
        event.target.checked = true;
        open();
      }
    });
    for (const end of ["keyup", "pointerdown"]) {
      group.addEventListener(end, () => { byArrow = false; });
    }
    group.addEventListener("click", (event) => {
      if (event.target.type !== "radio") return; // a label sends a second click to its radio
      if (!byArrow) open();
      else if (!answer.open) unlock("Enter opens the answer.");
    });
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".admonition.predict").forEach(arm);
  });
})();
