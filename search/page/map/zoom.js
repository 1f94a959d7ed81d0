// The arithmetic of looking closer: a view is a scale and an offset in pixels, screen = place * scale + offset.

export const HOME = { scale: 1, x: 0, y: 0 };
const CLOSEST = 16;

/** Closer or further by a factor, with the place under (x, y) staying where it is. */
export function zoomed(view, factor, x, y, size) {
  const scale = Math.min(CLOSEST, Math.max(1, view.scale * factor));
  const grown = scale / view.scale;
  return held({ scale, x: x - (x - view.x) * grown, y: y - (y - view.y) * grown }, size);
}

export function moved(view, dx, dy, size) {
  return held({ ...view, x: view.x + dx, y: view.y + dy }, size);
}

/** So that a place comes into sight, where it is out of it. */
export function showing(view, place, size) {
  const { x, y } = onScreen(view, place);
  const inside = x >= 0 && x <= size.width && y >= 0 && y <= size.height;
  return inside ? view : moved(view, size.width / 2 - x, size.height / 2 - y, size);
}

export const onScreen = (view, place) => ({ x: place.x * view.scale + view.x, y: place.y * view.scale + view.y });

/** The map always fills its frame. */
function held({ scale, x, y }, { width, height }) {
  const within = (offset, length) => Math.min(0, Math.max(length * (1 - scale), offset));
  return { scale, x: within(x, width), y: within(y, height) };
}
