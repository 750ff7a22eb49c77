export type State = "open" | "closed" | "waiting";
