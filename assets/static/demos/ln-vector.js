// <ln-vector>: four features on sliders; their mean, variance and normalized values.
customElements.define("ln-vector", class extends HTMLElement {
  connectedCallback() {
    const { make, slider, svg, number } = window.lnDemo;
    const start = [1, 2, 3, -2];
    const eps = 1e-5;
    const sliders = start.map((value, i) => slider(`feature ${i + 1}`,
      { min: -3, max: 3, step: 0.1, value, format: (x) => number(x, 1) }, () => this.draw()));
    this.picture = svg("svg", { viewBox: "0 0 400 214", "aria-hidden": "true" });
    this.text = make("output", { class: "ln-demo-text", for: sliders.map(({ input }) => input.id).join(" ") });
    this.state = { eps, inputs: sliders.map(({ input }) => input) };
    this.className = "ln-demo";
    this.setAttribute("role", "group");
    this.setAttribute("aria-label", "Layer normalization of four features");
    this.replaceChildren(make("div", { class: "ln-demo-controls" }, ...sliders.map(({ row }) => row)),
      this.picture, this.text);
    this.draw();
  }

  draw() {
    const { number } = window.lnDemo;
    const { eps, inputs } = this.state;
    const x = inputs.map((input) => input.valueAsNumber);
    const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
    const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
    const std = Math.sqrt(variance);
    const y = x.map((value) => (value - mean) / Math.sqrt(variance + eps));
    this.picture.replaceChildren(
      ...this.bars("input x", x, 14, { fill: "none" }, mean, std),
      ...this.bars("normalized", y, 214, { fill: "currentColor", "fill-opacity": 0.75 }, 0,
        std / Math.sqrt(variance + eps)),
      ...this.legend());
    // Four digits: a variance near epsilon must not read as zero.
    this.text.textContent = `mean ${number(mean)}, variance ${number(variance, 4)}, epsilon 0.00001; ` +
      `normalized: ${y.map((value) => number(value)).join(", ")}`;
  }

  // Outlined or filled bars from a zero line, a dashed line at the mean and a band of one standard
  // deviation to either side. Features up to 3 reach with it up to 4.1.
  bars(title, values, left, style, mean, std) {
    const { svg, number } = window.lnDemo;
    const unit = 18;
    const height = (value) => 100 - value * unit;
    const line = (y, extra) => svg("line", {
      x1: left + 10, x2: left + 184, y1: y, y2: y, stroke: "currentColor", ...extra });
    const label = (x, y, text, anchor = "middle") => svg("text", {
      x, y, "text-anchor": anchor, "font-size": 12, fill: "currentColor" }, text);
    return [
      label(left + 97, 14, title),
      svg("rect", { x: left + 10, width: 174, y: height(mean + std), height: 2 * std * unit, ...this.band }),
      ...[-4, -2, 2, 4].map((value) => line(height(value), { "stroke-opacity": 0.2 })),
      ...[-4, -2, 0, 2, 4].map((value) => label(left + 6, height(value) + 4, number(value, 0), "end")),
      ...values.map((value, i) => svg("rect", {
        x: left + 20 + 42 * i, width: 28, y: Math.min(height(value), 100),
        height: Math.abs(value) * unit, stroke: "currentColor", ...style })),
      ...values.map((value, i) => label(left + 34 + 42 * i, 190, number(value))),
      line(100, { "stroke-width": 1 }),
      line(height(mean), { "stroke-width": 1.5, ...this.dashes }),
    ];
  }

  band = { fill: "currentColor", "fill-opacity": 0.15 };
  dashes = { "stroke-dasharray": "5 4" };

  legend() {
    const { svg } = window.lnDemo;
    const label = (x, text) => svg("text", { x, y: 210, "font-size": 12, fill: "currentColor" }, text);
    return [
      svg("line", { x1: 122, x2: 148, y1: 206, y2: 206, stroke: "currentColor", "stroke-width": 1.5,
        ...this.dashes }),
      label(154, "mean"),
      svg("rect", { x: 206, width: 26, y: 199, height: 12, ...this.band }),
      label(238, "mean ± std"),
    ];
  }
});
