// <ln-axes>: hidden states (2, 4, 6) as a block of cells; which of them share one mean, by norm.
customElements.define("ln-axes", class Axes extends HTMLElement {
  static count = 0;

  connectedCallback() {
    const { make } = window.lnDemo;
    this.cells = [];
    this.at = [0, 1, 2];
    this.norm = Axes.norms[0];
    this.className = "ln-demo ln-axes";
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", "Which hidden-state features share one mean");
    this.status = make("p", { class: "ln-demo-text", role: "status" });
    this.replaceChildren(this.choices(),
      make("div", { class: "ln-axes-sheets" }, ...[0, 1].map((b) => this.sheet(b))), this.status);
    this.draw();
  }

  // Each norm: the coordinates that tell its means apart, and how to say them.
  static size = [2, 4, 6];
  static norms = [
    ["layer (over D)", ([b, t]) => [b, t],
      ([b, t]) => `the 6 features of token ${t + 1} in example ${b + 1}`, "one for each token"],
    ["batch (over B and T)", ([, , d]) => [d],
      ([, , d]) => `feature ${d + 1} of all 8 tokens, whatever their example`, "one for each feature"],
    ["instance (over T)", ([b, , d]) => [b, d],
      ([b, , d]) => `feature ${d + 1} of the 4 tokens of example ${b + 1}`,
      "one for each feature of each example"],
    ["group (over T and half of D)", ([b, , d]) => [b, d < 3],
      ([b, , d]) => `features ${d < 3 ? "1 to 3" : "4 to 6"} of the 4 tokens of example ${b + 1}`,
      "one for each half of each example"],
    ["slip: over T", ([b, , d]) => [b, d],
      ([b, , d]) => `feature ${d + 1} of the 4 tokens of example ${b + 1}`,
      "one for each feature of each example, as in instance norm"],
    ["slip: over T and D", ([b]) => [b],
      ([b]) => `all 6 features of all 4 tokens of example ${b + 1}`, "one for each example"],
  ].map(([label, key, says, each]) => ({ label, key: (cell) => String(key(cell)), says, each }));

  choices() {
    const { make } = window.lnDemo;
    const name = `ln-axes-${++Axes.count}`;
    return make("fieldset", {}, make("legend", {}, "Normalization"), ...Axes.norms.map((norm) => {
      const input = make("input", { type: "radio", name });
      input.checked = norm === this.norm;
      input.addEventListener("change", () => { this.norm = norm; this.draw(); });
      return make("label", {}, input, norm.label);
    }));
  }

  // One example: a row of cells a token. The arrow keys move through all cells of both sheets.
  sheet(b) {
    const { make, svg } = window.lnDemo;
    const [, tokens, width] = Axes.size;
    const label = (x, y, text, more = {}) => svg("text", {
      x, y, "font-size": 11, "text-anchor": "middle", fill: "currentColor", "aria-hidden": "true",
      ...more }, text);
    const rows = Array.from({ length: tokens }, (_, t) => svg("g", { role: "row" },
      ...Array.from({ length: width }, (_, d) => this.cell([b, t, d]))));
    return make("div", {}, svg("svg", { viewBox: "0 0 200 162", role: "grid",
      "aria-label": `Example ${b + 1}: a row for each token, a column for each feature`,
      "aria-multiselectable": "true" },
      label(108, 12, `example ${b + 1}`, { "font-weight": "bold" }),
      label(108, 28, "features →"), label(0, 0, "← tokens", { transform: "translate(11 94) rotate(-90)" }),
      ...rows));
  }

  cell(at) {
    const { svg } = window.lnDemo;
    const [b, t, d] = at;
    const [x, y] = [20 + 29.5 * d, 36 + 31 * t];
    const stroke = { stroke: "currentColor", "stroke-width": 1 };
    const element = svg("g", { role: "gridcell", "aria-label":
      `example ${b + 1}, token ${t + 1}, feature ${d + 1}` },
      svg("rect", { x, y, width: 26, height: 28, ...stroke }),
      // Shared or not is told by the stripes as well as by the color.
      svg("path", { d: `M${x} ${y + 14}L${x + 13} ${y}M${x} ${y + 28}L${x + 26} ${y}` +
        `M${x + 13} ${y + 28}L${x + 26} ${y + 14}`, stroke: "#000", "stroke-width": 1.2 }),
      svg("circle", { cx: x + 13, cy: y + 14, r: 7, fill: "#000", stroke: "#fff", "stroke-width": 2 }));
    const choose = () => { this.at = at; this.draw(); };
    element.addEventListener("pointerenter", choose);
    element.addEventListener("click", choose);
    element.addEventListener("focus", choose);
    element.addEventListener("keydown", (event) => this.onKey(event, at));
    this.cells.push({ at, element });
    return element;
  }

  // The arrows go where the eye goes: example 2 stands to the right of example 1 or, on a narrow
  // page, below it.
  onKey(event, [b, t, d]) {
    const [examples, tokens, width] = Axes.size;
    const clip = (value, end) => Math.min(Math.max(value, 0), end - 1);
    const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1],
      ArrowLeft: [0, -1], Home: [0, -d], End: [0, width - 1 - d] }[event.key] || [];
    if (down === undefined) return;
    event.preventDefault();
    const [first, second] = this.querySelectorAll("svg");
    let [example, token, feature] = [b, t + down, d + right];
    if (first.getBoundingClientRect().right <= second.getBoundingClientRect().left) {
      const across = clip(b * width + feature, examples * width);
      [example, feature] = [Math.floor(across / width), across % width];
    } else {
      const along = clip(b * tokens + token, examples * tokens);
      [example, token] = [Math.floor(along / tokens), along % tokens];
    }
    const row = example * tokens + clip(token, tokens);
    this.cells[row * width + clip(feature, width)].element.focus();
  }

  draw() {
    const key = this.norm.key(this.at);
    let together = 0;
    for (const { at, element } of this.cells) {
      const shared = this.norm.key(at) === key;
      const chosen = String(at) === String(this.at);
      const [rect, stripes, dot] = element.children;
      together += shared;
      rect.setAttribute("fill", shared ? "#56B4E9" : "transparent");
      rect.setAttribute("stroke-opacity", shared ? 1 : 0.45);
      stripes.setAttribute("visibility", shared ? "visible" : "hidden");
      dot.setAttribute("visibility", chosen ? "visible" : "hidden");
      element.setAttribute("aria-selected", shared);
      element.setAttribute("tabindex", chosen ? 0 : -1);
    }
    const means = new Set(this.cells.map(({ at }) => this.norm.key(at))).size;
    this.status.textContent = `One mean over ${this.norm.says(this.at)}: ${together} numbers share ` +
      `it. The block has ${means} such means, ${this.norm.each}.`;
  }
});
