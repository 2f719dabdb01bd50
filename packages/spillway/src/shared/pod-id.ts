import type { Random } from '../core/random.js'

/** A pod's name with a random part, so that a restarted pod has another name. */
export function createPodId(name: string, random: Random): string {
  return `${name}-${Math.floor(random() * 2 ** 48).toString(36)}`
}
