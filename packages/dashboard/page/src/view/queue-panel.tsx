/** The queue of a guard by priority and age, and the pressure on this pod. */
import { formatCount, formatMs, formatShare, spellOut } from '../format'
import type { GuardCard, GuardTick } from '../wire'
import { Badge, Meter, Panel } from './elements'
import { Priorities } from './priorities'

export function QueuePanel({ card, tick }: { card: GuardCard; tick: GuardTick }) {
  const { waiting, size, oldestMs, byPriority, codel } = tick.queue
  const timeoutMs = card.queue?.timeoutMs ?? 0
  return (
    <Panel title="Queue" note="this pod">
      <div class="stack">
        <Meter
          label="queue length"
          value={waiting}
          most={size}
          tone={waiting >= size * 0.8 ? 'refused' : 'warn'}
          words={`${formatCount(waiting)} of ${formatCount(size)}`}
        />
        <Meter
          label={`longest wait, timeout ${formatMs(timeoutMs)}`}
          value={oldestMs}
          most={timeoutMs}
          tone={oldestMs > timeoutMs / 2 ? 'refused' : 'warn'}
          words={waiting === 0 ? 'empty' : formatMs(oldestMs)}
        />
        <div class="priorities">
          <Priorities of={byPriority} waiting={waiting} />
        </div>
        {codel && (
          <Badge tone="refused" icon="warning">
            delay above target: newest first, with drops
          </Badge>
        )}
      </div>
    </Panel>
  )
}

export function ShedPanel({ tick }: { tick: GuardTick }) {
  const signals = Object.entries(tick.shed?.signals ?? {})
  return (
    <Panel title="Pressure on this pod" note="100 % is the limit">
      <div class="stack">
        {signals.map(([name, value]) => (
          <Meter
            key={name}
            label={spellOut(name)}
            value={value}
            most={1}
            tone={value >= 1 ? 'refused' : value > 0.7 ? 'warn' : 'good'}
            words={formatShare(value)}
          />
        ))}
        {signals.length === 0 && <p class="note">No signal is measured.</p>}
      </div>
    </Panel>
  )
}
