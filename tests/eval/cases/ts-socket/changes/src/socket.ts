import type { State } from "./state";

export function connect(url: string, told: (state: State) => void): WebSocket {
  const socket = new WebSocket(url);
  socket.onclose = () => told("waiting");
  return socket;
}
