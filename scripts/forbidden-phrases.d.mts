/** For tests in TypeScript. */
export const FORBIDDEN_PHRASES: RegExp
