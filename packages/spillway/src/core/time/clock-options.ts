/** The options for injected time and randomness that every mechanism has. */

import { func, having, optional } from '../options/checks.js'
import { type Random, systemRandom } from '../random.js'
import { type Clock, systemClock } from './clock.js'

export const clockOption = optional(
  having<Clock>('a clock', 'now', 'wallMs', 'schedule', 'pollTurn'),
  systemClock,
)

export const randomOption = optional(func<Random>(), systemRandom)
