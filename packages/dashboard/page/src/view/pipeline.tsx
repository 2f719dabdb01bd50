/**
 * The stages of a guard in order, drawn as a river: calls that enter, refusals by code, and calls that pass. Side by
 * side on a wide page, one below the other on a narrow one.
 */
import { formatCount } from '../format'
import { NO_FILTER } from '../model/decision-log'
import { hello, rates } from '../model/live'
import { pairKey, type Rates } from '../model/rates'
import { hrefOf } from '../model/route'
import type { GuardCard, GuardTick } from '../wire'
import type { GuardInView } from './guard-in-view'
import { Icon } from './icons'
import { StageFacts } from './stage-facts'
import { type StageFlow, stageFlows } from './stage-flows'
import { titleOf, wordsOfCode } from './stage-text'

const NO_RATES: Rates = {
  calls: 0,
  decided: 0,
  attempts: 0,
  outcomes: {},
  refused: {},
  fallbacks: {},
}

export function Pipeline({ card, tick, lane }: GuardInView) {
  const stages = card.stages ?? hello.value?.stages ?? []
  const own = rates.of(lane === undefined ? card.name : pairKey(card.name, lane)) ?? NO_RATES
  const flows = stageFlows(
    stages.map(({ stage }) => stage),
    own,
  )
  return (
    <section class="panel pipe-panel" aria-label="Pipeline of stages">
      <h2 class="visually-hidden">Pipeline of stages</h2>
      <ol class="pipe">
        {flows.map((flow, index) => (
          <StageFlowView
            key={flow.stage}
            flow={flow}
            number={index + 1}
            scope={stages[index]?.scope ?? 'local'}
            all={Math.max(own.calls, own.decided)}
            card={card}
            tick={tick}
            lane={lane}
            attempts={own.attempts}
          />
        ))}
      </ol>
    </section>
  )
}

function StageFlowView(props: {
  flow: StageFlow
  number: number
  scope: 'local' | 'shared'
  all: number
  attempts: number
  card: GuardCard
  tick: GuardTick
  lane: string | undefined
}) {
  const { flow, number, scope, all, card } = props
  const { stage, entering, leaving, refusedRate, refused } = flow
  const on = stage === 'call' || card.on.includes(stage)
  const share = (rate: number) => (all > 0 ? Math.max(rate > 0 ? 0.05 : 0.015, rate / all) : 0.015)
  const water = {
    '--in': share(entering).toFixed(4),
    '--out': share(leaving).toFixed(4),
  }
  return (
    <li class={`gate ${on ? '' : 'gate-off'} ${all > 0 ? '' : 'gate-dry'}`} data-stage={stage}>
      <div class="gate-head">
        <span class="gate-number" aria-hidden="true">
          {number}
        </span>
        <h3>{titleOf(stage)}</h3>
        <span
          class="gate-scope"
          title={scope === 'shared' ? 'shared by all pods' : 'local to this pod'}
        >
          <Icon name={scope} size={12} /> {scope}
        </span>
      </div>
      <div class="gate-river" aria-hidden="true" style={water as preact.CSSProperties}>
        <div class="water" />
        {refusedRate > 0 && (
          <div
            class="spill"
            style={{ '--spill': share(refusedRate).toFixed(4) } as preact.CSSProperties}
          />
        )}
      </div>
      <div class="gate-flow">
        {on ? (
          <>
            <b>{formatCount(leaving)}</b>
            <span class="quiet">
              /s<span class="visually-hidden"> pass</span>
            </span>
          </>
        ) : (
          <span class="quiet">off</span>
        )}
      </div>
      <div class="gate-facts">
        {on && (
          <StageFacts
            stage={stage}
            card={card}
            tick={props.tick}
            lane={props.lane}
            retries={Math.max(0, props.attempts - entering)}
          />
        )}
      </div>
      <div class="gate-refused">
        {refused.map(({ code, rate }) => (
          <a
            key={code}
            class="refusal"
            title={wordsOfCode(code)}
            href={hrefOf({ page: 'why', filter: { ...NO_FILTER, guard: card.name, stage, code } })}
          >
            <span>
              <b>{formatCount(rate)}</b>/s
            </span>
            <span class="refusal-code">{code.replaceAll('_', '_\u200b')}</span>
          </a>
        ))}
      </div>
    </li>
  )
}
