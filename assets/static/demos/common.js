// What the demos share. A demo is a custom element in one file of this folder:
//
//   customElements.define("ln-name", class extends HTMLElement {
//     connectedCallback() { const { make, slider, svg } = window.lnDemo; this.replaceChildren(...); }
//   });
//
// and stands in a lesson as raw HTML, <ln-name></ln-name>, always beside a static figure that says
// the same: JupyterLab and print show only that one. Rules: native inputs with visible labels; the
// picture in inline SVG with `currentColor`, never told apart by color alone, and hidden from
// screen readers; the same numbers as text in an <output>, which is announced. Classic scripts
// without imports: pages also work when opened from a file.
window.lnDemo = (() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  let count = 0;

  const fill = (element, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  /** An HTML element with attributes and children. */
  const make = (tag, attributes = {}, ...children) =>
    fill(document.createElement(tag), attributes, children);

  /** An SVG element with attributes and children. */
  const svg = (tag, attributes = {}, ...children) =>
    fill(document.createElementNS(SVG, tag), attributes, children);

  /** A labeled range input that shows its value. Returns {row, input}. */
  function slider(label, { min, max, step, value, format = (number) => String(number) }, onChange) {
    const id = `ln-demo-${++count}`;
    const input = make("input", { type: "range", id, min, max, step, value });
    const shown = make("span", { class: "ln-demo-value", "aria-hidden": "true" });
    const update = () => {
      shown.textContent = format(input.valueAsNumber);
      input.setAttribute("aria-valuetext", shown.textContent);
    };
    input.addEventListener("input", () => { update(); onChange(); });
    update();
    return { row: make("div", { class: "ln-demo-row" }, make("label", { for: id }, label), input, shown), input };
  }

  /** A number with a fixed count of digits and a real minus sign. */
  const number = (value, digits = 2) => {
    const text = value.toFixed(digits);
    return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
  };

  return { make, svg, slider, number };
})();
