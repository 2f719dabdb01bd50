/** The options every mechanism has for time and chance. */
import { type Clock, systemClock } from './clock.js'
import { func, having, optional } from './options.js'
import { type Random, systemRandom } from './random.js'

export const clockOption = optional(
  having<Clock>('a clock', 'now', 'wallMs', 'schedule', 'pollTurn'),
  systemClock,
)

export const randomOption = optional(func<Random>(), systemRandom)
