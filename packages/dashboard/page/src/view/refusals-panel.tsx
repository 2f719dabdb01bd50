/** Refusals by stage and code, in the order of the stages. */
import { formatCount, formatShare } from '../format'
import { NO_FILTER } from '../model/decision-log'
import { guardsTick, hello, rates } from '../model/live'
import { pairKey } from '../model/rates'
import { hrefOf } from '../model/route'
import { Empty, Panel } from './elements'
import { titleOf, wordsOfCode } from './stage-text'

export function RefusalsPanel({ guard, lane }: { guard: string; lane: string | undefined }) {
  // The rates are of this tick.
  guardsTick.value
  const own = rates.of(lane === undefined ? guard : pairKey(guard, lane))
  const order = (hello.value?.stages ?? []).map(({ stage }) => stage as string)
  const rows = Object.entries(own?.refused ?? {})
    .map(([key, rate]) => {
      const [stage = '', code = ''] = key.split(' ')
      return { stage, code, rate }
    })
    .sort((a, b) => order.indexOf(a.stage) - order.indexOf(b.stage) || b.rate - a.rate)
  return (
    <Panel title="Refused" note="per second and share of decided calls, this pod">
      {rows.length === 0 ? (
        <Empty title="No refusals">All calls of the last seconds were admitted.</Empty>
      ) : (
        <ul class="refusals">
          {rows.map(({ stage, code, rate }) => (
            <li key={`${stage} ${code}`}>
              <a href={hrefOf({ page: 'why', filter: { ...NO_FILTER, guard, stage, code } })}>
                {code}
              </a>
              <span class="quiet">
                {titleOf(stage)}: {wordsOfCode(code)}
              </span>
              <span class="figure">
                {formatCount(rate)}/s{' '}
                <span class="quiet">{formatShare(rate / (own?.decided ?? rate))}</span>
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}
