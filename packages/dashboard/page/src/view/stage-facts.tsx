/** The most important figures of a stage, in a few words. */
import type { ComponentChildren } from 'preact'
import { formatCount, formatMs, formatSeconds, formatShare } from '../format'
import { now } from '../model/clock'
import { guardsTick } from '../model/live'
import type { GuardCard, GuardTick, LaneTick } from '../wire'
import { BreakerBadge } from './breaker-badge'
import { lookOf } from './breaker-text'
import { Badge, type Tone } from './elements'
import { leftTone, tightestOf } from './limit-text'
import type { StageName } from './stage-text'

interface StageFactsProps {
  stage: StageName
  card: GuardCard
  tick: GuardTick
  lane: string | undefined
  /** Per second. */
  retries: number
}

/** Time since the tick that is shown, for countdowns between ticks. */
export function sinceTick(): number {
  return Math.max(0, now.value - (guardsTick.value?.at ?? now.value))
}

export function StageFacts({ stage, card, tick, lane, retries }: StageFactsProps) {
  const lanes = lane === undefined ? tick.lanes : tick.lanes.filter((each) => each.lane === lane)
  switch (stage) {
    case 'shed':
      return tick.shed === undefined ? null : (
        <Mini
          share={tick.shed.pressure}
          tone={tick.shed.pressure >= 1 ? 'refused' : tick.shed.pressure > 0.7 ? 'warn' : 'good'}
        >
          {formatShare(tick.shed.pressure)} pressure
        </Mini>
      )
    case 'user-limit':
      return (
        <>
          {(card.userLimits ?? []).slice(0, 3).map(({ per, limit, windowMs, sliding }) => (
            <div key={per}>
              {limit === undefined ? 'limits' : formatCount(limit)} per {per} in{' '}
              {sliding === true ? 'any ' : ''}
              {formatMs(windowMs)}
            </div>
          ))}
        </>
      )
    case 'queue':
      return (
        <Mini
          share={tick.queue.waiting / Math.max(1, tick.queue.size)}
          tone={tick.queue.codel ? 'refused' : 'warn'}
        >
          {formatCount(tick.queue.waiting)} of {formatCount(tick.queue.size)} waiting
          {tick.queue.waiting > 0 && (
            <div class="quiet">oldest {formatMs(tick.queue.oldestMs)}</div>
          )}
        </Mini>
      )
    case 'breaker':
      return <BreakerFact lanes={lanes} />
    case 'vendor-limit':
      return <LimitFact lanes={lanes} />
    case 'pace':
      return card.pace === undefined ? null : (
        <>
          {formatCount(card.pace.limit)} in {formatMs(card.pace.windowMs)}
        </>
      )
    case 'concurrency': {
      const { active, limit } = tick.slots
      if (limit === undefined) return <>{formatCount(active)} in use</>
      return (
        <Mini share={active / limit} tone={active >= limit ? 'warn' : 'flow'}>
          {formatCount(active)} of {formatCount(limit)} slots
        </Mini>
      )
    }
    case 'timeout': {
      const { callMs, firstByteMs, idleMs } = card.timeout ?? {}
      return (
        <>
          {callMs !== undefined && <div>call {formatMs(callMs)}</div>}
          {firstByteMs !== undefined && <div>first byte {formatMs(firstByteMs)}</div>}
          {idleMs !== undefined && <div>idle {formatMs(idleMs)}</div>}
        </>
      )
    }
    case 'call':
      return tick.latency === undefined ? (
        <>no answers</>
      ) : (
        <>
          <div>p50 {formatMs(tick.latency.p50Ms)}</div>
          <div>p99 {formatMs(tick.latency.p99Ms)}</div>
        </>
      )
    case 'retry':
      return (
        <>
          <div>{formatCount(retries)}/s retries</div>
          {tick.retry !== undefined && (
            <div class="quiet">
              {formatShare(tick.retry.ratio)} of {formatShare(tick.retry.budget)} budget
            </div>
          )}
        </>
      )
    case 'hedge':
      return tick.hedges === undefined ? null : (
        <>
          {formatCount(tick.hedges.won)} of {formatCount(tick.hedges.made)} answered first
        </>
      )
    default:
      return null
  }
}

function BreakerFact({ lanes }: { lanes: readonly LaneTick[] }) {
  const counts = new Map<ReturnType<typeof lookOf>, number>()
  let untilMs = 0
  for (const { breaker } of lanes) {
    const look = lookOf(breaker)
    if (look !== 'none') counts.set(look, (counts.get(look) ?? 0) + 1)
    untilMs = Math.max(untilMs, breaker?.untilMs ?? 0)
  }
  return (
    <>
      {[...counts].map(([look, count]) => (
        <BreakerBadge key={look} look={look} {...(lanes.length > 1 && { count })} />
      ))}
      {untilMs > 0 && <div class="quiet">for {formatSeconds(untilMs - sinceTick())}</div>}
    </>
  )
}

function LimitFact({ lanes }: { lanes: readonly LaneTick[] }) {
  const tightest = tightestOf(lanes)
  const pausedMs = Math.max(0, ...lanes.map((each) => each.pausedMs ?? 0)) - sinceTick()
  return (
    <>
      {tightest !== undefined && (
        <Mini share={tightest.left} tone={leftTone(tightest.left)}>
          {formatCount(tightest.limit.remaining ?? 0)} {tightest.limit.label} left
        </Mini>
      )}
      {pausedMs > 0 && (
        <Badge tone="iso" icon="pause">
          {formatSeconds(pausedMs)}
        </Badge>
      )}
    </>
  )
}

function Mini({
  share,
  tone,
  children,
}: {
  share: number
  tone: Tone
  children: ComponentChildren
}) {
  const width = Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0))
  return (
    <div class={`tone-${tone}`}>
      <div class="bar bar-thin" aria-hidden="true">
        <div class="bar-fill" style={{ transform: `scaleX(${width.toFixed(4)})` }} />
      </div>
      {children}
    </div>
  )
}
