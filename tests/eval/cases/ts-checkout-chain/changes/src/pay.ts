import { cart } from "./cart";

export function pay(): Promise<void> {
  return fetch("/pay", { method: "POST", body: JSON.stringify(cart) }).then(() => undefined);
}
