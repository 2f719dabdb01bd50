/** The lanes of a guard, one row each. */
import { formatCount, formatSeconds, formatShare } from '../format'
import { rates } from '../model/live'
import { pairKey } from '../model/rates'
import { hrefOf } from '../model/route'
import type { GuardTick, LaneTick } from '../wire'
import { BreakerBadge } from './breaker-badge'
import { lookOf } from './breaker-text'
import { Name, Panel } from './elements'
import { tightestOf } from './limit-text'
import { type Column, Table } from './table'

export function LanesPanel({ guard, tick }: { guard: string; tick: GuardTick }) {
  return (
    <Panel title="Lanes" note="each with its own breaker and limits">
      <Table
        label="Lanes"
        rows={tick.lanes}
        keyOf={({ lane }) => lane}
        columns={columnsOf(guard)}
      />
    </Panel>
  )
}

function columnsOf(guard: string): Column<LaneTick>[] {
  const ratesOf = ({ lane }: LaneTick) => rates.of(pairKey(guard, lane))
  const refusedOf = (lane: LaneTick) =>
    Object.values(ratesOf(lane)?.refused ?? {}).reduce((sum, each) => sum + each, 0)
  return [
    {
      title: 'lane',
      of: ({ lane }) => (
        <a href={hrefOf({ page: 'guards', guard, lane })}>
          <Name text={lane} />
        </a>
      ),
    },
    { title: 'breaker', of: ({ breaker }) => <BreakerBadge look={lookOf(breaker)} /> },
    { title: 'calls', number: true, of: (lane) => `${formatCount(ratesOf(lane)?.calls ?? 0)}/s` },
    { title: 'refused', number: true, of: (lane) => `${formatCount(refusedOf(lane))}/s` },
    { title: 'waiting', number: true, of: ({ waiting }) => formatCount(waiting) },
    { title: 'tightest limit', of: (lane) => <Tightest lane={lane} /> },
  ]
}

function Tightest({ lane }: { lane: LaneTick }) {
  const tightest = tightestOf([lane])
  const pausedMs = lane.pausedMs ?? 0
  return (
    <>
      {tightest === undefined ? (
        <span class="quiet">none</span>
      ) : (
        `${formatShare(tightest.left)} of ${tightest.limit.label} left`
      )}
      {pausedMs > 0 && `, paused for ${formatSeconds(pausedMs)}`}
    </>
  )
}
