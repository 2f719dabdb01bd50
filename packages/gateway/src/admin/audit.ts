/** A line in the log for whatever is tried over the admin port. */
import type { FastifyRequest } from 'fastify'
import type { SpillwayEvent } from 'spillway'

export function attempt(
  { method, routeOptions, ip }: FastifyRequest,
  result: 'done' | 'refused',
  message: string,
  by = '',
): SpillwayEvent {
  return {
    type: 'operator.acted',
    name: '',
    action: `${method} ${routeOptions.url ?? ''}`,
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
