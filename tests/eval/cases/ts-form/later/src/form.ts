export interface Draft {
  name: string;
  at: number;
}

export function load(): Draft {
  const text = localStorage.getItem("draft");
  return text ? JSON.parse(text) : { name: "", at: 0 };
}
