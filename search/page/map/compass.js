// Which company on the map is meant, by an arrow key or by the pointer.

/** The node nearest in a direction, preferring what lies straight ahead; undefined where there is none. */
export function nearestTowards(from, nodes, [right, down]) {
  let best;
  let least = Infinity;
  for (const node of nodes) {
    const dx = node.x - from.x;
    const dy = node.y - from.y;
    const ahead = dx * right + dy * down;
    const aside = Math.abs(dx * down) + Math.abs(dy * right);
    if (node === from || ahead <= 0 || aside > 2 * ahead) continue;
    const distance = ahead + 2 * aside;
    if (distance < least) [best, least] = [node, distance];
  }
  return best;
}

/** The node nearest to a place on the screen, unless none is that near. */
export function nearestWithin(reach, x, y, nodes) {
  let best;
  let least = reach;
  for (const node of nodes) {
    const distance = Math.hypot(node.x - x, node.y - y);
    if (distance < least) [best, least] = [node, distance];
  }
  return best;
}
