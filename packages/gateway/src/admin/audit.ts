/** One line in the log for each attempt to act over the admin port. */
import type { SpillwayEvent } from 'spillway'
import type { AdminRequest } from './http.js'

export function attempt(
  { method, route = '', ip }: AdminRequest,
  result: 'done' | 'refused',
  message: string,
  by = '',
): SpillwayEvent {
  return {
    type: 'operator.acted',
    name: '',
    action: `${method} ${route}`,
    by: by.slice(0, 100),
    from: ip,
    lane: undefined,
    unit: undefined,
    limit: undefined,
    forMs: undefined,
    result,
    message,
  }
}
