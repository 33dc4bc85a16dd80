// A min-heap of numbers: `pop` takes the least.
export class Heap {
  #all = [];

  get size() {
    return this.#all.length;
  }
  push(x) {
    const all = this.#all;
    let at = all.length;
    for (let up; at > 0 && all[(up = (at - 1) >> 1)] > x; at = up) all[at] = all[up];
    all[at] = x;
  }
  pop() {
    const all = this.#all, least = all[0], x = all.pop(), size = all.length;
    if (size === 0) return least;
    let at = 0;
    for (let down; (down = 2 * at + 1) < size; at = down) {
      if (down + 1 < size && all[down + 1] < all[down]) down += 1;
      if (all[down] >= x) break;
      all[at] = all[down];
    }
    all[at] = x;
    return least;
  }
}
