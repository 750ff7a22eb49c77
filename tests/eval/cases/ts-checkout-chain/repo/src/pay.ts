export function pay(): void {
  throw new Error("not yet");
}
