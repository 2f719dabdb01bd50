/** A number with its noun: `1 vendor`, `2 vendors`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
