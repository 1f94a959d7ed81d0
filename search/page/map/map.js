// The market map: a neighbourhood as a scatter plot, to look around in and to walk on from.

import { isolated, make, makeSvg, unseen } from "../shared/dom.js";
import { placed } from "./labels.js";
import { legend } from "./legend.js";
import { nearestTowards, nearestWithin } from "./compass.js";
import { mark } from "./palette.js";
import { HOME, moved, onScreen, showing, zoomed } from "./zoom.js";

const STEP = 1.5;
const MARGIN = 28;
const LABELS = 12;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const HELP = "The closer two companies are, the more alike; the larger a mark, the more like what is asked. Pick one to go on.";
const KEYS = " Arrow keys walk from company to company, Enter picks one, + and − zoom, 0 shows all.";
const SMALLEST = 4.5; // pixels, the radius of the mark least like what is asked
const LARGEST = 8;
const OWN = 10;
const RING = 16; // around the company asked for
const REACH = 16; // pixels from a mark that still mean it
const DRAG = 4; // pixels; less than that is a click

export class MarketMap {
  /** `points` as the API gives them; `pick` gets the id of a company to go on from. */
  constructor({ points, anchor }, pick) {
    this.anchor = anchor;
    this.pick = pick;
    this.view = HOME;
    this.told = null; // the node that the tip is about
    this.dragged = false;
    this.size = { width: 640, height: 480 };
    const scores = points.filter(({ id }) => id !== anchor).map(({ score }) => score);
    this.scores = { least: Math.min(...scores), most: Math.max(...scores) };
    this.nodes = [...points]
      .sort((one, other) => (other.id === anchor) - (one.id === anchor) || other.score - one.score)
      .map((point) => this.node(point));
    this.labels = makeSvg("g", { class: "labels", "aria-hidden": "true" });
    this.svg = makeSvg("svg", { role: "group", "aria-label": this.summary(), "aria-describedby": "map-help" });
    // Drawn from the last to the first: what matters most lies on top.
    this.svg.append(...this.nodes.map(({ element }) => element).reverse(), this.labels);
    this.tip = make("div", { class: "tip", "aria-hidden": "true", hidden: true });
    this.frame = make("div", { class: "frame" }, this.svg, this.tip, this.buttons());
    this.element = make(
      "section",
      { class: "map", "aria-label": "Market map" },
      make("p", { id: "map-help", class: "quiet" }, HELP, unseen(KEYS)),
      this.frame,
      legend(points, (sector) => this.highlight(sector)),
    );
    this.focused = this.nodes[0];
    this.focused?.element.setAttribute("tabindex", "0");
    this.listen();
  }

  summary() {
    return `${this.nodes.length} companies on the map`;
  }

  /** A company on the map: its mark, and the room that takes in pixels from the middle. */
  node(point) {
    const radius = point.id === this.anchor ? OWN : this.radius(point.score);
    const node = { point, name: point.name || point.id, room: point.id === this.anchor ? RING : radius };
    return { ...node, element: this.mark(node, radius) };
  }

  mark({ name, point: { id, sector, score } }, radius) {
    const own = id === this.anchor;
    const label = [name, sector, own ? "the company asked for" : `score ${score.toFixed(2)}`];
    const traits = { role: "button", tabindex: "-1", "aria-label": label.filter(Boolean).join(", "), "data-id": id };
    return makeSvg(
      "g",
      { ...traits, class: own ? "point own" : "point" },
      makeSvg("circle", { class: "halo", r: own ? RING : 12 }), // room for a fingertip, and the ring of the focus
      mark(sector, radius),
    );
  }

  radius(score) {
    const { least, most } = this.scores;
    return most > least ? SMALLEST + ((LARGEST - SMALLEST) * (score - least)) / (most - least) : LARGEST;
  }

  buttons() {
    const button = (words, label, click) =>
      make("button", { type: "button", "aria-label": label, title: label, onclick: click }, words);
    return make(
      "div",
      { class: "zoom" },
      button("+", "Zoom in", () => this.zoom(STEP)),
      button("−", "Zoom out", () => this.zoom(1 / STEP)),
      button("⤢", "Show all", () => this.look(HOME)),
    );
  }

  listen() {
    new ResizeObserver(() => this.measure()).observe(this.frame);
    this.svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.svg.addEventListener("pointerdown", (event) => this.grab(event));
    this.svg.addEventListener("pointermove", (event) => this.tell(this.under(event)));
    this.svg.addEventListener("pointerleave", () => this.tell(null));
    this.svg.addEventListener("click", (event) => this.click(event));
    for (const node of this.nodes) {
      node.element.addEventListener("focus", () => this.stand(node));
      node.element.addEventListener("blur", () => this.tell(null));
    }
  }

  /** The node nearest to the pointer, not the one drawn on top: in a crowd they differ. */
  under({ clientX, clientY }) {
    const { left, top } = this.svg.getBoundingClientRect();
    return nearestWithin(REACH, clientX - left, clientY - top, this.nodes);
  }

  click(event) {
    if (this.dragged) return;
    // A screen reader's click has no place of its own, only an element.
    const meant = this.nodes.find(({ element }) => event.detail === 0 && element.contains(event.target));
    const node = meant ?? this.under(event);
    if (node) this.choose(node);
  }

  measure() {
    const { width, height } = this.svg.getBoundingClientRect();
    if (!width) return;
    this.size = { width, height };
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    for (const node of this.nodes) {
      const across = (width / 2 - MARGIN) * node.point.x;
      const up = (height / 2 - MARGIN) * node.point.y;
      node.place = { x: width / 2 + across, y: height / 2 - up };
    }
    this.look(moved(this.view, 0, 0, this.size));
  }

  /** Marks keep their size: what grows is the distance between them. */
  look(view) {
    this.view = view;
    this.frame.classList.toggle("close", view.scale > 1);
    for (const node of this.nodes) {
      Object.assign(node, onScreen(view, node.place));
      node.element.setAttribute("transform", `translate(${node.x} ${node.y})`);
    }
    const inside = this.nodes.filter(({ x, y }) => x >= 0 && x <= this.size.width && y >= 0 && y <= this.size.height);
    const most = this.size.width < 480 ? LABELS / 2 : LABELS;
    const labels = placed(inside, this.size, most);
    this.labels.replaceChildren(
      ...labels.map(({ point: { point }, text, x, y, anchor }) => {
        const traits = { x, y, "text-anchor": anchor, class: point.id === this.anchor ? "own" : null };
        return makeSvg("text", traits, text);
      }),
    );
    this.tell(this.told);
  }

  zoom(factor, x = this.size.width / 2, y = this.size.height / 2) {
    this.look(zoomed(this.view, factor, x, y, this.size));
  }

  wheel(event) {
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE;
    const factor = Math.exp((-event.deltaY * (lines ? 20 : 1)) / 300);
    if (factor < 1 && this.view.scale === 1) return; // all is in sight: the page scrolls on
    event.preventDefault();
    const { left, top } = this.svg.getBoundingClientRect();
    this.zoom(factor, event.clientX - left, event.clientY - top);
  }

  grab(start) {
    let { clientX: x, clientY: y } = start;
    const drag = (event) => {
      if (Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY) > DRAG) this.dragged = true;
      if (!this.dragged || this.view.scale === 1) return;
      this.look(moved(this.view, event.clientX - x, event.clientY - y, this.size));
      ({ clientX: x, clientY: y } = event);
    };
    const drop = () => {
      window.removeEventListener("pointermove", drag);
      window.removeEventListener("pointerup", drop);
      window.removeEventListener("pointercancel", drop);
      setTimeout(() => (this.dragged = false)); // after the click that ends a drag, which is none
    };
    window.addEventListener("pointermove", drag);
    window.addEventListener("pointerup", drop);
    window.addEventListener("pointercancel", drop);
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (ARROWS[event.key]) this.walk(ARROWS[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.choose(this.focused);
    else if (event.key === "+" || event.key === "=") this.zoom(STEP, this.focused.x, this.focused.y);
    else if (event.key === "-") this.zoom(1 / STEP, this.focused.x, this.focused.y);
    else if (event.key === "0" || event.key === "Home") this.look(HOME);
    else return;
    event.preventDefault();
  }

  /** One stop for the tab key; the arrows go from company to company. */
  walk(direction) {
    const next = nearestTowards(this.focused, this.nodes, direction);
    if (!next) return;
    this.look(showing(this.view, next.place, this.size));
    next.element.focus({ preventScroll: true });
  }

  stand(node) {
    this.focused.element.setAttribute("tabindex", "-1");
    this.focused = node;
    node.element.setAttribute("tabindex", "0");
    this.tell(node);
  }

  choose({ point }) {
    if (point.id !== this.anchor) this.pick(point.id);
  }

  tell(node) {
    this.told?.element.classList.remove("told");
    this.told = node ?? null;
    node?.element.classList.add("told");
    this.tip.hidden = !node?.place;
    if (this.tip.hidden) return;
    const { sector, score, id } = node.point;
    const parts = [sector ? isolated(sector) : "", id === this.anchor ? "asked for" : score.toFixed(2)].filter(Boolean);
    const rest = parts.flatMap((part, place) => (place ? [" · ", part] : [part]));
    this.tip.replaceChildren(make("strong", {}, isolated(node.name)), make("span", {}, ...rest));
    this.tip.classList.toggle("below", node.y < 70);
    const edge = Math.min(110, this.size.width / 2);
    this.tip.style.left = `${Math.min(this.size.width - edge, Math.max(edge, node.x))}px`;
    this.tip.style.top = `${node.y}px`;
  }

  highlight(sector) {
    for (const { point, element } of this.nodes) {
      element.classList.toggle("dim", sector !== null && (point.sector ?? "") !== sector && point.id !== this.anchor);
    }
  }

  focus() {
    this.focused?.element.focus({ preventScroll: true });
  }
}
