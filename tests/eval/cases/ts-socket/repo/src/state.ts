export type State = "open" | "closed";
