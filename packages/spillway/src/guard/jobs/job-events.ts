/** Events about jobs. */
import { emit, listening } from '../../core/events.js'
import type { Finished, JobEnd } from '../../store/queue-port.js'

/** How a turn of a job ended; `lost`: another worker has it, or the result is unknown. */
export type JobFate = 'done' | 'retried' | 'dead' | 'released' | 'cancelled' | 'lost'

/** By what its worker said, and what the store made of it. */
export function fateOf({ kind }: JobEnd, finished: Finished | undefined): JobFate {
  if (finished === undefined || finished === 'stale') return 'lost'
  if (finished !== 'again') return finished
  return kind === 'released' || kind === 'returned' ? 'released' : 'retried'
}

export function tellFate(name: string, { id, text, delayUs }: JobEnd, fate: JobFate): void {
  if (!listening()) return
  const delayMs = delayUs / 1_000
  if (fate === 'done' || fate === 'lost' || fate === 'cancelled')
    emit({ type: `job.${fate}`, name, id })
  else if (fate === 'dead') emit({ type: 'job.dead', name, id, error: text })
  else emit({ type: `job.${fate}`, name, id, delayMs, error: text })
}
