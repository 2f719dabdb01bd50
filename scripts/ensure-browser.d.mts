/** For tests in TypeScript. */
export function findBrowser(): string | undefined
