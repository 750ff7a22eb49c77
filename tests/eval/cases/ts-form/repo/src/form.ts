export interface Draft {
  name: string;
}

export function load(): Draft {
  return { name: "" };
}
