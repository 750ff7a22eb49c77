export interface Item {
  id: string;
  count: number;
}

export const cart: Item[] = [];
