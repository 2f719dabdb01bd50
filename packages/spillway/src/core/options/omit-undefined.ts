/** The same without what is undefined: an option that is not given and one that is nothing are one. */
export function definedOf<T extends object>(
  options: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as never
}
