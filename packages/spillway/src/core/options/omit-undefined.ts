/** A copy without the keys whose value is undefined, so that those options count as not given. */
export function omitUndefined<T extends object>(
  options: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as never
}
