/** The API keys that calls of a guard use: which are quarantined, why, and for how long. */
import { formatSeconds } from '../format'
import type { GuardTick, KeyTick } from '../wire'
import { may, openActDialog } from './act-dialog'
import { Badge, Name, Panel } from './elements'
import { sinceTick } from './stage-facts'

const REASONS: Record<NonNullable<KeyTick['reason']>, string> = {
  'quota-exhausted': 'quota exhausted',
  'invalid-key': 'invalid key',
  operator: 'by an operator',
}

export function KeysPanel({ guard, keys }: { guard: string; keys: GuardTick['keys'] }) {
  if (keys === undefined || keys.length === 0) return null
  return (
    <Panel title="API keys" note="calls use the first usable key; shared by all pods">
      <div class="stack">
        {keys.map((each) => (
          <Key key={each.key} guard={guard} tick={each} />
        ))}
      </div>
    </Panel>
  )
}

function Key({ guard, tick }: { guard: string; tick: KeyTick }) {
  const { key, state, reason } = tick
  const isUsable = state === 'usable'
  return (
    <div class="row" data-key={key}>
      <Name text={key} />
      <State tick={tick} />
      {reason !== undefined && <span class="note">{REASONS[reason]}</span>}
      {!isUsable && may('release-key') && (
        <button
          type="button"
          class="small"
          onClick={() => openActDialog({ act: 'release-key', guard, key })}
        >
          Release …<bdi class="visually-hidden"> {key}</bdi>
        </button>
      )}
    </div>
  )
}

function State({ tick: { state, untilMs } }: { tick: KeyTick }) {
  if (state === 'usable') {
    return (
      <Badge tone="good" icon="closed">
        usable
      </Badge>
    )
  }
  if (state === 'probing') {
    return (
      <Badge tone="warn" icon="half-open">
        being tested
      </Badge>
    )
  }
  const leftMs = Math.max(0, (untilMs ?? 0) - sinceTick())
  return (
    <Badge tone="bad" icon="open">
      quarantined for {formatSeconds(leftMs)}
    </Badge>
  )
}
