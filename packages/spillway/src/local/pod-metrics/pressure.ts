/** A load figure from the application: 1 is as much as this pod can bear. */
import type { Check } from '../../core/options/checks.js'
import { described } from '../../core/options/schema.js'

/** Reports the pressure on this pod, for load shedding. */
export type PressureSource = (() => number) | { readonly pressure: number | (() => number) }

export const readPressure: Check<() => number> = (value, path, problems) => {
  if (typeof value === 'function') return value as () => number
  const source = value as Exclude<PressureSource, () => number> | undefined | null
  if (typeof source === 'object' && source !== null && 'pressure' in source) {
    return () => (typeof source.pressure === 'function' ? source.pressure() : source.pressure)
  }
  problems.push({
    path,
    message: 'must be a load shedder, or a function that returns a number',
  })
  return () => 0
}
described(readPressure, undefined)
