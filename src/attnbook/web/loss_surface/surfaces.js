// Losses over a plane as surfaces: how they are stored, how high they are, and where a camera sees their points.
// No DOM, so Node tests can import this file as it is.

const TALL = 1.2, WIDEST = 1.56; // the height of a surface and half a canvas, in units of half the plane's side
const REACH = 24; // pixels: points further from the pointer are not read

// Unpacks losses, stored as 16-bit floats.
export function unpackHalf(view) {
  return Float64Array.from({ length: view.byteLength / 2 }, (_, i) => {
    const bits = view.getUint16(2 * i, true), exponent = (bits >> 10) & 31, fraction = bits & 1023;
    return (bits >> 15 ? -1 : 1) * (exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction);
  });
}

// A point of the plane (x, y in -1..1) at height z (0..1) as seen from far away: how far right, up and behind it is.
export function projected(x, y, z, azimuth, elevation) {
  const [a, e] = [azimuth, elevation].map((degrees) => (degrees * Math.PI) / 180);
  const right = x * Math.cos(a) - y * Math.sin(a), behind = x * Math.sin(a) + y * Math.cos(a), up = (z - 0.5) * TALL;
  return [right, behind * Math.sin(e) + up * Math.cos(e), behind * Math.cos(e) - up * Math.sin(e)];
}

// Maps losses to heights 0..1, with one scale for all surfaces.
export function scaleOf(losses, log) {
  const f = log ? Math.log : (x) => x;
  let low = Infinity, high = -Infinity;
  for (const loss of losses) [low, high] = [Math.min(low, loss), Math.max(high, loss)];
  const span = f(high) - f(low) || 1;
  return { low, high, height: (loss) => (f(loss) - f(low)) / span };
}

export const around = (degrees) => ((((degrees + 180) % 360) + 360) % 360) - 180;

// The coordinate, in -1..1, of row or column i of n.
export const along = (i, n) => (2 * i) / (n - 1) - 1;

// A camera maps a point of the plane and its height to a square canvas: pixels right and down, and how far behind.
export function camera(width, azimuth, elevation) {
  const unit = width / 2 / WIDEST;
  return (x, y, z) => {
    const [right, up, behind] = projected(x, y, z, azimuth, elevation);
    return [width / 2 + right * unit, width / 2 - up * unit, behind];
  };
}

// The point [i, j] of an n x n grid that the camera `look` sees nearest to pixel [px, py], with a preference for points
// in front; null if none is near. `height(i, j)` is a point's height.
export function nearest(look, n, height, [px, py]) {
  let best = REACH, point = null;
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      const [x, y, behind] = look(along(i, n), along(j, n), height(i, j));
      const far = Math.hypot(x - px, y - py) + 6 * behind;
      if (far < best) [best, point] = [far, [i, j]];
    }
  }
  return point;
}

// Rows and columns of the mesh from the back to the front, so that a near cell covers a far one.
export function backToFront(n, azimuth) {
  const radians = (azimuth * Math.PI) / 180;
  const order = (backwards) => Array.from({ length: n - 1 }, (_, step) => (backwards ? n - 2 - step : step));
  return [order(Math.sin(radians) > 0), order(Math.cos(radians) > 0)];
}
