/** How important a call is, from the most important down. */
export const PRIORITIES = ['critical', 'high', 'normal', 'low'] as const
export type Priority = (typeof PRIORITIES)[number]
