/** The breaker of each lane: state and cause, countdown, counts, probes, and the changes of the last hour. */
import { countOf, formatCount, formatMs, formatSeconds, formatShare, formatTime } from '../format'
import { now } from '../model/clock'
import { range } from '../model/preferences'
import type { BreakerTick, GuardCard, LaneTick } from '../wire'
import { BreakerBadge } from './breaker-badge'
import { BREAKER_LOOKS, lookOf } from './breaker-text'
import { Empty, Meter, Name, Panel } from './elements'
import type { GuardInView } from './guard-in-view'
import { Icon } from './icons'
import { sinceTick } from './stage-facts'

/** Lanes that are not closed first; all lanes are in the table of lanes. */
const MOST_LANES = 4
const MOST_IDLE_NAMES = 8
const MOST_CHANGES = 6

export function BreakerPanel({ card, tick, lane }: GuardInView) {
  const lanes = tick.lanes.filter(
    (each) => each.breaker !== undefined && (lane === undefined || each.lane === lane),
  )
  // The only lane, or the selected one, is always shown.
  const idle = lanes.length === 1 ? [] : lanes.filter(isIdle)
  const busy = lanes.filter((each) => !idle.includes(each))
  const shown = [...busy].sort((a, b) => gravity(b) - gravity(a)).slice(0, MOST_LANES)
  const note =
    card.breaker?.shadow === true ? 'shadow mode: never refuses' : 'one state for all pods'
  return (
    <Panel title="Circuit breaker" note={note}>
      {lanes.length === 0 && <Empty title="No call yet">The breaker is closed.</Empty>}
      <div class="stack">
        {shown.map((each) => (
          <LaneBreaker key={each.lane} lane={each} card={card} named={lanes.length > 1} />
        ))}
      </div>
      {busy.length > shown.length && (
        <p class="note">{countOf(busy.length - shown.length, 'more lane')} in the table below</p>
      )}
      <IdleLanes lanes={idle} />
    </Panel>
  )
}

/** Closed, without failures, and without a change in the last hour. */
function isIdle({ breaker, waiting, flow }: LaneTick): boolean {
  if (breaker === undefined || breaker.state !== 'closed' || breaker.selfIsolated) return false
  const isQuiet = breaker.failures + breaker.slow + breaker.consecutiveFailures === 0
  return isQuiet && breaker.timeline.length === 0 && waiting === 0 && (flow?.calls ?? 0) === 0
}

function IdleLanes({ lanes }: { lanes: readonly LaneTick[] }) {
  if (lanes.length === 0) return null
  const more = lanes.length - MOST_IDLE_NAMES
  return (
    <details class="idle-lanes" data-testid="idle-lanes">
      <summary>{countOf(lanes.length, 'idle lane')}, closed</summary>
      <ul>
        {lanes.slice(0, MOST_IDLE_NAMES).map(({ lane }) => (
          <li key={lane}>
            <Name text={lane} />
          </li>
        ))}
        {more > 0 && <li class="quiet">{countOf(more, 'more lane')}</li>}
      </ul>
    </details>
  )
}

function gravity({ breaker }: LaneTick): number {
  return ['closed', 'half-open', 'open', 'isolated'].indexOf(breaker?.state ?? 'closed')
}

function LaneBreaker({ lane, card, named }: { lane: LaneTick; card: GuardCard; named: boolean }) {
  const breaker = lane.breaker as BreakerTick
  const look = lookOf(breaker)
  const leftMs = breaker.untilMs === undefined ? undefined : breaker.untilMs - sinceTick()
  const changes = breaker.timeline.slice(-MOST_CHANGES).reverse()
  return (
    <div class={`breaker tone-${BREAKER_LOOKS[look].tone}`} data-lane={lane.lane}>
      <div class="spread">
        <span class="row">
          {named && <Name text={lane.lane} />}
          <BreakerBadge look={look} />
        </span>
        {leftMs !== undefined && breaker.state !== 'closed' && (
          <span class="figure" data-testid="countdown">
            {formatSeconds(leftMs)}{' '}
            <span class="quiet">{breaker.state === 'open' ? 'until probes' : 'left'}</span>
          </span>
        )}
      </div>
      {breaker.cause !== undefined && (
        <p class="cause" data-testid="cause">
          Opened after: <bdi>{breaker.cause}</bdi>
        </p>
      )}
      <Tripping breaker={breaker} card={card} />
      {breaker.state === 'half-open' && (
        <p class="probes">
          <Dots filled={breaker.probes} of={card.breaker?.probes ?? 0} />{' '}
          {formatCount(breaker.probes)} of {card.breaker?.probes} probes running in the fleet;{' '}
          {breaker.successes} of {card.breaker?.successes} successes
        </p>
      )}
      {breaker.selfIsolated && (
        <p class="note">Only this pod sees failures, so only this pod stops calling.</p>
      )}
      <Timeline breaker={breaker} />
      {changes.length > 0 && (
        <ol class="changes">
          {changes.map(({ at, from, to }) => (
            <li key={`${at}${to}`} class={`tone-${BREAKER_LOOKS[to].tone}`}>
              <span class="mono quiet">{formatTime(at)}</span>
              <Icon name={BREAKER_LOOKS[to].icon} size={12} /> <b>{to}</b>{' '}
              <span class="quiet">after {from}</span>
            </li>
          ))}
        </ol>
      )}
      <p class="note">state received {formatMs(breaker.ageMs)} ago</p>
    </div>
  )
}

function Tripping({ breaker, card }: { breaker: BreakerTick; card: GuardCard }) {
  const { calls, failures, slow, consecutiveFailures } = breaker
  const { failureRate, slowRate, consecutiveFailures: most, minimumCalls } = card.breaker ?? {}
  const few =
    minimumCalls !== undefined && calls < minimumCalls
      ? `; has an effect from ${minimumCalls} calls on`
      : ''
  return (
    <>
      {failureRate !== undefined && (
        <Meter
          label={`failure rate, opens at ${formatShare(failureRate)}`}
          value={calls === 0 ? 0 : failures / calls}
          most={failureRate}
          tone={calls > 0 && failures / calls > failureRate / 2 ? 'bad' : 'flow'}
          words={formatShare(calls === 0 ? 0 : failures / calls)}
          hint={`${formatCount(failures)} of ${countOf(calls, 'call')} in the window, all pods${few}`}
        />
      )}
      {slowRate !== undefined && (
        <Meter
          label={`slow-call rate, opens at ${formatShare(slowRate)}`}
          value={calls === 0 ? 0 : slow / calls}
          most={slowRate}
          tone="warn"
          words={formatShare(calls === 0 ? 0 : slow / calls)}
        />
      )}
      {most !== undefined && (
        <Meter
          label={`failures in a row, opens at ${formatCount(most)}`}
          value={consecutiveFailures}
          most={most}
          tone={consecutiveFailures > most / 2 ? 'bad' : 'flow'}
          words={formatCount(consecutiveFailures)}
        />
      )}
    </>
  )
}

function Dots({ filled, of }: { filled: number; of: number }) {
  return (
    <span class="dots" aria-hidden="true">
      {Array.from({ length: Math.min(10, of) }, (_, index) => (
        <i key={index} class={index < filled ? 'dot-on' : ''} />
      ))}
    </span>
  )
}

/** A strip of time: open is a block, half-open is striped, closed is a line. */
function Timeline({ breaker }: { breaker: BreakerTick }) {
  const to = now.value
  const from = to - range.value.ms
  const changes = breaker.timeline
  const pieces: { state: BreakerTick['state']; from: number; to: number }[] = []
  let state: BreakerTick['state'] = changes[0]?.from ?? breaker.state
  let at = from
  for (const change of changes) {
    if (change.at > from) pieces.push({ state, from: at, to: Math.min(to, change.at) })
    at = Math.max(from, change.at)
    state = change.to
  }
  // The last piece has the current state: time may have passed without a message.
  pieces.push({ state: breaker.state, from: at, to })
  const place = (time: number) => `${(((time - from) / (to - from)) * 100).toFixed(2)}%`
  return (
    <div class="timeline" role="img" aria-label={timelineWords(breaker)}>
      {pieces.map((each) => (
        <span
          key={`${each.from}${each.state}`}
          class={`timeline-${each.state} tone-${BREAKER_LOOKS[each.state].tone}`}
          style={{
            left: place(each.from),
            right: `${(100 - Number.parseFloat(place(each.to))).toFixed(2)}%`,
          }}
        />
      ))}
      <span class="timeline-from">{range.value.label} ago</span>
      <span class="timeline-to">now</span>
    </div>
  )
}

function timelineWords({ timeline, state }: BreakerTick): string {
  const opened = timeline.filter(({ to }) => to === 'open').length
  const words = opened === 0 ? 'did not open' : `opened ${countOf(opened, 'time')}`
  return `In the last hour it ${words}; now it is ${state}.`
}
