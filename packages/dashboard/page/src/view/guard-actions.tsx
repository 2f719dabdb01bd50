/** Operator actions on a guard. */
import { may, openActDialog } from './act-dialog'
import type { GuardInView } from './guard-in-view'

const MINUTE_MS = 60_000

export function GuardActions({ card, tick, lane }: GuardInView) {
  const where = { guard: card.name, ...(lane !== undefined && { lane }) }
  const breaker = card.breaker !== undefined
  const isolated = tick.lanes.some((each) => each.breaker?.state === 'isolated')
  const limit = card.limits?.[0]
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be a frame with a legend
    <div class="row guard-actions" role="group" aria-label="Actions on this guard">
      {breaker && may('isolate') && !isolated && (
        <button
          type="button"
          onClick={() => openActDialog({ act: 'isolate', ...where, forMs: 10 * MINUTE_MS })}
        >
          Isolate …
        </button>
      )}
      {breaker && may('release') && isolated && (
        <button type="button" onClick={() => openActDialog({ act: 'release', ...where })}>
          Release …
        </button>
      )}
      {breaker && may('reset') && (
        <button type="button" onClick={() => openActDialog({ act: 'reset', ...where })}>
          Reset …
        </button>
      )}
      {limit !== undefined && may('pause') && (
        <button
          type="button"
          onClick={() => openActDialog({ act: 'pause', ...where, forMs: 5 * MINUTE_MS })}
        >
          Pause vendor …
        </button>
      )}
    </div>
  )
}
