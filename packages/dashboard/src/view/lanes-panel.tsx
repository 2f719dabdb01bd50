/** The lanes of a guard side by side: one model's trouble is not another's. */
import { formatCount, formatSeconds, formatShare } from '../format'
import { rates } from '../model/live'
import { laneKey } from '../model/rates'
import { hrefOf } from '../model/route'
import type { GuardTick, LaneTick } from '../wire'
import { Badge, Name, Panel, Scroller } from './bits'
import { BREAKER_LOOKS, lookOf } from './breaker-words'
import { tightestOf } from './limit-words'

export function LanesPanel({ guard, tick }: { guard: string; tick: GuardTick }) {
  return (
    <Panel title="Lanes" note="each with its own breaker, limits and line">
      <Scroller label="Lanes">
        <table>
          <thead>
            <tr>
              <th scope="col">lane</th>
              <th scope="col">breaker</th>
              <th scope="col" class="number">
                calls
              </th>
              <th scope="col" class="number">
                refused
              </th>
              <th scope="col" class="number">
                waiting
              </th>
              <th scope="col">tightest limit</th>
            </tr>
          </thead>
          <tbody>
            {tick.lanes.map((lane) => (
              <Row key={lane.lane} guard={guard} lane={lane} />
            ))}
          </tbody>
        </table>
      </Scroller>
    </Panel>
  )
}

function Row({ guard, lane }: { guard: string; lane: LaneTick }) {
  const own = rates.of(laneKey(guard, lane.lane))
  const refused = Object.values(own?.refused ?? {}).reduce((sum, each) => sum + each, 0)
  const look = BREAKER_LOOKS[lookOf(lane.breaker)]
  const tightest = tightestOf([lane])
  return (
    <tr>
      <th scope="row">
        <a href={hrefOf({ page: 'guards', guard, lane: lane.lane })}>
          <Name text={lane.lane} />
        </a>
      </th>
      <td>
        <Badge tone={look.tone} icon={look.icon}>
          {look.word}
        </Badge>
      </td>
      <td class="number">{formatCount(own?.calls ?? 0)}/s</td>
      <td class="number">{formatCount(refused)}/s</td>
      <td class="number">{formatCount(lane.waiting)}</td>
      <td>
        {tightest === undefined ? (
          <span class="quiet">none</span>
        ) : (
          `${formatShare(tightest.left)} of ${tightest.limit.id} left`
        )}
        {(lane.pausedMs ?? 0) > 0 && `, paused for ${formatSeconds(lane.pausedMs ?? 0)}`}
      </td>
    </tr>
  )
}
