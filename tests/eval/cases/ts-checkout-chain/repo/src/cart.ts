export const cart: string[] = [];
