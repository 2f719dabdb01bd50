/** How calls end: durations, outcomes, retries and fallbacks. */
import { countOf, formatCount, formatMs, formatShare } from '../format'
import { guardsTick, rates } from '../model/live'
import type { GuardCard, GuardTick, Percentiles } from '../wire'
import { Empty, Fact, Meter, Name, Panel } from './elements'
import { wordsOfCode } from './stage-text'

export function LatencyPanel({ tick }: { tick: GuardTick }) {
  const outcomes = Object.entries(rates.of(tick.name)?.outcomes ?? {})
  return (
    <Panel title="Latency and outcomes" note="last 10 s, this pod">
      <table class="percentiles">
        <thead>
          <tr>
            <th scope="col">
              <span class="visually-hidden">what</span>
            </th>
            <th scope="col" class="number">
              p50
            </th>
            <th scope="col" class="number">
              p90
            </th>
            <th scope="col" class="number">
              p99
            </th>
          </tr>
        </thead>
        <tbody>
          <PercentileRow label="call" of={tick.latency} />
          <PercentileRow label="queue wait" of={tick.queueWait} />
        </tbody>
      </table>
      <dl class="outcomes">
        {outcomes
          .filter(([, rate]) => rate > 0)
          .map(([outcome, rate]) => (
            <Fact key={outcome} label={OUTCOME_WORDS[outcome] ?? outcome}>
              {formatCount(rate)}/s
            </Fact>
          ))}
      </dl>
    </Panel>
  )
}

const OUTCOME_WORDS: Record<string, string> = {
  success: 'successful attempts',
  failure: 'failed attempts',
  slow: 'slow attempts',
  throttled: 'throttled attempts',
  ignored: 'ignored attempts (such as 4xx)',
}

function PercentileRow({ label, of }: { label: string; of: Percentiles | undefined }) {
  const words = (ms: number | undefined) => (ms === undefined ? '–' : formatMs(ms))
  return (
    <tr>
      <th scope="row">{label}</th>
      <td class="number">{words(of?.p50Ms)}</td>
      <td class="number">{words(of?.p90Ms)}</td>
      <td class="number">{words(of?.p99Ms)}</td>
    </tr>
  )
}

export function RetryPanel({ card, tick }: { card: GuardCard; tick: GuardTick }) {
  const { retry, hedges } = tick
  return (
    <Panel
      title="Retries"
      note={`at most ${countOf(card.retry?.attempts ?? 1, 'attempt')} per call`}
    >
      {retry === undefined ? (
        <p class="note">No retries.</p>
      ) : (
        <Meter
          label={`retries per call, budget ${formatShare(retry.budget)}`}
          value={retry.ratio}
          most={retry.budget}
          tone={retry.ratio >= retry.budget ? 'refused' : 'flow'}
          words={formatShare(retry.ratio)}
          hint={
            retry.ratio >= retry.budget
              ? 'The budget is used up: no further retries now.'
              : `${countOf(Math.floor(retry.allowed), 'retry', 'retries')} allowed now`
          }
        />
      )}
      {hedges !== undefined && (
        <dl>
          <Fact label="hedges">{formatCount(hedges.made)}</Fact>
          <Fact label="hedges that answered first">{formatCount(hedges.won)}</Fact>
        </dl>
      )}
    </Panel>
  )
}

export function FallbackPanel({ card }: { card: GuardCard }) {
  // The rates are of this tick.
  guardsTick.value
  const rows = Object.entries(rates.of(card.name)?.fallbacks ?? {}).map(([key, rate]) => {
    const [step = '', reason = ''] = JSON.parse(key) as string[]
    return { key, step, reason, rate }
  })
  // The gateway's fallbacks belong to routes; the guard counts only those that have answered.
  if (card.fallbacks.length === 0 && rows.length === 0) return null
  return (
    <Panel title="Fallback answers" note={<Name text={card.fallbacks.join(', then ')} />}>
      {rows.length === 0 ? (
        <Empty title="No fallback answered" />
      ) : (
        <dl>
          {rows.map(({ key, step, reason, rate }) => (
            <Fact key={key} label={`${step}: ${wordsOfCode(reason)}`}>
              {formatCount(rate)}/s
            </Fact>
          ))}
        </dl>
      )}
    </Panel>
  )
}
