import { oneOf, validate } from './checks.js'

/** From the most important to the least. */
export const PRIORITIES = ['critical', 'high', 'normal', 'low'] as const
/** Importance of a call. `critical` calls are never shed. */
export type Priority = (typeof PRIORITIES)[number]

export const NORMAL_IMPORTANCE = PRIORITIES.indexOf('normal')

/** A priority. */
export const readPriority = oneOf(...PRIORITIES)

/** 0 is the most important. */
export function importanceOf(priority: unknown): number {
  const importance = (PRIORITIES as readonly unknown[]).indexOf(priority)
  if (importance >= 0) return importance
  return PRIORITIES.indexOf(validate('priority', priority, readPriority))
}
