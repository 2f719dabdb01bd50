/** One guard: its stages, and a panel for each mechanism. */
import { formatCount, formatMs } from '../format'
import { guardByName, guardCards, tracksOf } from '../model/live'
import { hrefOf, replaceRoute, route } from '../model/route'
import type { GuardCard, GuardTick } from '../wire'
import { BreakerBadge } from './breaker-badge'
import { BreakerPanel } from './breaker-panel'
import { lookOfGuard } from './breaker-text'
import { Chart, type Line } from './chart'
import { Badge, Empty, Name, Panel } from './elements'
import { GuardActions } from './guard-actions'
import { GuardPodsPanel } from './guard-pods-panel'
import { KeysPanel } from './keys-panel'
import { LanesPanel } from './lanes-panel'
import { LimitsPanel } from './limits-panel'
import { FallbackPanel, LatencyPanel, RetryPanel } from './outcome-panels'
import { Pipeline } from './pipeline'
import { QueuePanel, ShedPanel } from './queue-panel'
import { RefusalsPanel } from './refusals-panel'

const CALL_LINES: readonly Line[] = [
  { column: 'calls', label: 'calls', tone: 'flow', filled: true },
  { column: 'refused', label: 'refused', tone: 'refused' },
  { column: 'failures', label: 'failed', tone: 'bad' },
]
const LATENCY_LINES: readonly Line[] = [
  { column: 'p50Ms', label: 'p50', tone: 'flow' },
  { column: 'p99Ms', label: 'p99', tone: 'iso' },
]

export function GuardPage() {
  const here = route.value
  const cards = guardCards.value
  const wanted = here.page === 'guards' ? here.guard : undefined
  const lane = here.page === 'guards' ? here.lane : undefined
  const card = wanted === undefined ? cards[0] : cards.find(({ name }) => name === wanted)
  if (cards.length === 0 || card === undefined) {
    return (
      <Panel title="Guards">
        <Empty title={cards.length === 0 ? 'No guard yet' : 'No guard has this name'}>
          {wanted !== undefined && <Name text={wanted} full />}
          <p>
            <a href="#/fleet">Back to the fleet</a>
          </p>
        </Empty>
      </Panel>
    )
  }
  return (
    <div class="guard-layout">
      <GuardList chosen={card.name} />
      <div class="guard-main">
        <GuardView key={card.name} card={card} lane={lane} />
      </div>
    </div>
  )
}

/** Beside the guard on a wide page, a choice on a narrow one. */
function GuardList({ chosen }: { chosen: string }) {
  const cards = guardCards.value
  if (cards.length < 2) return null
  return (
    <nav class="guard-list" aria-label="Guards">
      <select
        class="guard-choice"
        aria-label="Guard"
        value={chosen}
        onChange={(event) => {
          location.hash = hrefOf({
            page: 'guards',
            guard: event.currentTarget.value,
            lane: undefined,
          })
        }}
      >
        {cards.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <ul>
        {cards.map(({ name }) => (
          <GuardLink key={name} name={name} chosen={name === chosen} />
        ))}
      </ul>
    </nav>
  )
}

function GuardLink({ name, chosen }: { name: string; chosen: boolean }) {
  return (
    <li>
      <a
        href={hrefOf({ page: 'guards', guard: name, lane: undefined })}
        aria-current={chosen ? 'true' : undefined}
      >
        <Name text={name} />
        <BreakerBadge look={lookOfGuard(name)} />
      </a>
    </li>
  )
}

function GuardView({ card, lane }: { card: GuardCard; lane: string | undefined }) {
  const tick = guardByName.value.get(card.name)
  const tracks = () => [tracksOf(card.name)]
  if (tick === undefined) {
    return (
      <Panel title={card.name}>
        <Empty title="No figures yet">The first ones arrive within a second.</Empty>
      </Panel>
    )
  }
  return (
    <>
      <div class="page-head">
        <h1>
          <Name text={card.name} />
        </h1>
        <BreakerBadge look={lookOfGuard(card.name)} />
        {tick.closed && (
          <Badge tone="iso" icon="left">
            closing
          </Badge>
        )}
        <LaneChoice guard={card.name} tick={tick} lane={lane} />
        <GuardActions card={card} tick={tick} lane={lane} />
      </div>
      <Pipeline card={card} tick={tick} lane={lane} />
      <div class="stacks">
        <div>
          {card.breaker !== undefined && <BreakerPanel card={card} tick={tick} lane={lane} />}
        </div>
        <div>
          {card.limits !== undefined && <LimitsPanel card={card} tick={tick} lane={lane} />}
          <KeysPanel guard={card.name} keys={tick.keys} />
        </div>
        <div>
          <RefusalsPanel guard={card.name} lane={lane} />
          <LatencyPanel tick={tick} />
          {card.queue !== undefined && <QueuePanel card={card} tick={tick} />}
          {card.retry !== undefined && <RetryPanel card={card} tick={tick} />}
          <FallbackPanel card={card} />
          {tick.shed !== undefined && <ShedPanel tick={tick} />}
        </div>
      </div>
      <div class="columns">
        <Panel title="Calls" note="per second, this pod">
          <Chart
            label={`Calls per second of ${card.name}`}
            tracks={tracks}
            lines={CALL_LINES}
            format={formatCount}
          />
        </Panel>
        <Panel title="Latency" note="this pod">
          <Chart
            label={`Latency of ${card.name}`}
            tracks={tracks}
            lines={LATENCY_LINES}
            format={formatMs}
          />
        </Panel>
      </div>
      {tick.lanes.length > 1 && <LanesPanel guard={card.name} tick={tick} />}
      <GuardPodsPanel guard={card.name} />
    </>
  )
}

function LaneChoice({
  guard,
  tick,
  lane,
}: {
  guard: string
  tick: GuardTick
  lane: string | undefined
}) {
  if (tick.lanes.length < 2 && lane === undefined) return null
  return (
    <label class="row">
      Lane
      <select
        value={lane ?? ''}
        onChange={(event) => {
          const chosen = event.currentTarget.value
          replaceRoute({ page: 'guards', guard, lane: chosen === '' ? undefined : chosen })
        }}
      >
        <option value="">all {tick.lanes.length} lanes</option>
        {tick.lanes.map((each) => (
          <option key={each.lane} value={each.lane}>
            {each.lane}
          </option>
        ))}
      </select>
    </label>
  )
}
