/** Events about jobs. */
import { emit, listening } from '../../core/events.js'
import type { Finished, JobEnd } from '../../store/queue-port.js'

/** How a turn of a job ended; `lost`: another worker has it, or the result is unknown. */
export type JobOutcome = 'done' | 'retried' | 'dead' | 'released' | 'cancelled' | 'lost'

/** From the worker's report and the store's reply. */
export function jobOutcomeOf({ kind }: JobEnd, finished: Finished | undefined): JobOutcome {
  if (finished === undefined || finished === 'stale') return 'lost'
  if (finished !== 'again') return finished
  return kind === 'released' || kind === 'returned' ? 'released' : 'retried'
}

export function emitJobOutcome(
  name: string,
  { id, text, delayUs }: JobEnd,
  outcome: JobOutcome,
): void {
  if (!listening()) return
  const delayMs = delayUs / 1_000
  if (outcome === 'done' || outcome === 'lost' || outcome === 'cancelled')
    emit({ type: `job.${outcome}`, name, id })
  else if (outcome === 'dead') emit({ type: 'job.dead', name, id, error: text })
  else emit({ type: `job.${outcome}`, name, id, delayMs, error: text })
}
