// <ln-orders>: one transformer block, attention and feed-forward, by where its norms stand.
customElements.define("ln-orders", class Orders extends HTMLElement {
  static count = 0;

  connectedCallback() {
    const { make, svg } = window.lnDemo;
    this.order = Orders.orders[0];
    this.className = "ln-demo ln-orders";
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", "A transformer block by the place of its norms");
    this.picture = svg("svg", { viewBox: "0 0 300 420", "aria-hidden": "true" });
    this.status = make("div", { class: "ln-demo-text", role: "status" });
    this.replaceChildren(this.choices(),
      make("div", { class: "ln-orders-halves" }, this.picture, this.status));
    this.draw();
  }

  // `before`, `after`: norms on the branch; `on`: norms on the stream. The formulas are those of
  // `PLACEMENTS` in lnres_utils/blocks.
  static orders = [
    { name: "post", formula: "norm(x + f(x))", on: true,
      norms: "Two norms, both on the stream: what they rescale is the sum, and x with it.",
      path: "No path carries x itself through the block.",
      end: "The stream leaves each block normalized, so no final norm follows." },
    { name: "pre", formula: "x + f(norm(x))", before: true, final: true,
      norms: "Two norms, both on the branches: what a sublayer reads is normalized, the stream is not.",
      path: "The stream carries x itself through all blocks, plus their updates.",
      end: "It grows with depth, so one final norm follows the last block." },
    { name: "sandwich", formula: "x + norm_out(f(norm(x)))", before: true, after: true, final: true,
      norms: "Four norms, all on the branches: each sublayer has one before it and one behind it.",
      path: "The stream carries x itself through all blocks, plus updates of a known size.",
      end: "It grows with depth, so one final norm follows the last block." },
    { name: "res-post", formula: "x + norm_out(f(x))", after: true, final: true,
      norms: "Two norms, both on the branches, behind the sublayers, which read the stream as it is.",
      path: "The stream carries x itself through all blocks, plus updates of a known size.",
      end: "It grows with depth, so one final norm follows the last block." },
    { name: "parallel", formula: "x + f(norm(x)) + g(norm(x))", before: true, final: true, beside: true,
      norms: "Two norms, one on each branch. Both sublayers, f and g, read the same x.",
      path: "The stream carries x itself through all blocks, plus their updates.",
      end: "It grows with depth, so one final norm follows the last block." },
    { name: "deepnorm", formula: "norm(alpha * x + f(x))", on: true, alpha: true,
      norms: "Two norms, both on the stream, as in post; the factor alpha, above 1, gives x more weight in the sum.",
      path: "No path carries x itself through the block.",
      end: "The stream leaves each block normalized, so no final norm follows." },
  ];

  choices() {
    const { make } = window.lnDemo;
    const name = `ln-orders-${++Orders.count}`;
    return make("fieldset", {}, make("legend", {}, "Order"), ...Orders.orders.map((order) => {
      const input = make("input", { type: "radio", name });
      input.checked = order === this.order;
      input.addEventListener("change", () => { this.order = order; this.draw(); });
      return make("label", {}, input, order.name);
    }));
  }

  draw() {
    const { make } = window.lnDemo;
    const { order } = this;
    this.status.replaceChildren(make("p", {}, make("code", {}, order.formula)),
      ...[order.norms, order.path, order.end].map((text) => make("p", {}, text)));
    this.picture.replaceChildren(...(order.beside ? this.parallel() : this.sequence()),
      ...this.legend());
  }

  // From top to bottom, the stream on the left and one branch after the other on its right.
  sequence() {
    const x = 84;
    const top = this.text(x, 14, "x");
    const first = this.stage(x, 204, 20, "attention", true);
    const second = this.stage(x, 204, first.end, "feed-forward", first.whole);
    return [top, ...first.parts, ...second.parts, ...this.end(x, second.end, second.whole)];
  }

  // One sublayer: its branch leaves the stream below `y` and joins it again. `whole` says whether
  // what comes in is x itself, plus updates.
  stage(x, side, y, name, whole) {
    const { before, after, on, alpha } = this.order;
    const join = y + 126;
    const end = y + 164;
    const scaled = alpha ? y + 66 : join - 9;
    const parts = [
      this.stream(x, y, scaled, whole), this.stream(x, scaled, join - 9, whole && !alpha),
      ...this.branch(x, side, y + 6, join, name, before, after),
      ...(alpha ? this.box(x, scaled, 56, "× alpha", "ln-orders-scale") : []),
      ...this.plus(x, join), this.stream(x, join + 9, end, whole && !on && !alpha)];
    if (on) parts.push(...this.norm(x, join + 24, "stream"));
    return { parts, end, whole: whole && !on };
  }

  parallel() {
    const [x, y, join] = [150, 110, 236];
    return [this.text(x, 14, "x"), this.stream(x, 20, join - 9, true),
      ...this.branch(x, 246, y + 6, join, "attention", true, false),
      ...this.branch(x, 54, y + 6, join, "feed-forward", true, false),
      ...this.plus(x, join), this.stream(x, join + 9, 348, true), ...this.end(x, 348, true)];
  }

  branch(x, side, y, join, name, before, after) {
    const { svg } = window.lnDemo;
    const edge = side > x ? 10 : -10; // the arrow ends at the circle of the sum
    const line = { fill: "none", stroke: "currentColor", "stroke-width": 1.6 };
    return [
      svg("path", { d: `M${x} ${y}H${side}V${join}H${x + edge}`, ...line }),
      svg("path", { d: `M${x + edge} ${join}l${edge * 0.8} -5v10z`, fill: "currentColor" }),
      ...this.box(side, y + 54, 92, name, "ln-orders-sublayer"),
      ...(before ? this.norm(side, y + 22, "branch") : []),
      ...(after ? this.norm(side, y + 88, "branch") : [])];
  }

  end(x, y, whole) {
    const { final } = this.order;
    const dots = { "stroke-dasharray": "2 4" };
    return [this.stream(x, y, y + 18, whole, dots), this.text(x + 12, y + 13, "more blocks", "start"),
      ...(final ? [...this.norm(x, y + 31, "end", "final norm", 78)] : [])];
  }

  legend() {
    const y = 412;
    return [this.key(4, y - 4, true), this.text(38, y, "x itself, plus updates", "start"),
      this.key(192, y - 4, false), this.text(226, y, "rescaled", "start")];
  }

  // Whether the stream carries x itself is told by the width and the dashes, and by color.
  look(whole) {
    return whole ? { class: "ln-orders-whole", "stroke-width": 6 }
      : { class: "ln-orders-rescaled", stroke: "currentColor", "stroke-width": 3, "stroke-dasharray": "6 5" };
  }

  stream(x, y1, y2, whole, more = {}) {
    return window.lnDemo.svg("line", { x1: x, x2: x, y1, y2, ...this.look(whole), ...more });
  }

  key(x, y, whole) {
    return window.lnDemo.svg("line", { x1: x, x2: x + 28, y1: y, y2: y, "data-on": "key", ...this.look(whole) });
  }

  norm(x, y, on, name = "norm", width = 56) {
    const parts = this.box(x, y, width, name, "ln-orders-norm");
    parts[0].dataset.on = on;
    return parts;
  }

  // A box whose middle is at (x, y).
  box(x, y, width, name, kind) {
    const { svg } = window.lnDemo;
    return [svg("rect", { x: x - width / 2, y: y - 12, width, height: 24, rx: 4, class: kind }),
      this.text(x, y + 4, name, "middle", kind === "ln-orders-norm" ? { fill: "#000" } : {})];
  }

  plus(x, y) {
    const { svg } = window.lnDemo;
    return [svg("circle", { cx: x, cy: y, r: 9, class: "ln-orders-sum" }),
      svg("path", { d: `M${x - 5} ${y}H${x + 5}M${x} ${y - 5}V${y + 5}`, stroke: "currentColor",
        "stroke-width": 1.6 })];
  }

  text(x, y, words, anchor = "middle", more = {}) {
    return window.lnDemo.svg("text", { x, y, "text-anchor": anchor, "font-size": 12.5,
      fill: "currentColor", ...more }, words);
  }
});
