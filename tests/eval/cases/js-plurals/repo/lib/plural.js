export function plural(count, one, other) {
  return count === 1 ? one : other;
}
