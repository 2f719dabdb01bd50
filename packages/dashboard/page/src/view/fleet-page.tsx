/**
 * The whole fleet: headline figures, guards, pods, and whether all pods agree. Figures are sums over all pods unless
 * labelled otherwise.
 */
import { computed } from '@preact/signals'
import { formatCount, formatMs, formatShare } from '../format'
import { totalsOf } from '../model/fleet-totals'
import { fleet, guardByName, guardCards, tracksOf } from '../model/live'
import { hrefOf } from '../model/route'
import { Agreement } from './agreement'
import { AuditPanel } from './audit-panel'
import { BreakerBadge } from './breaker-badge'
import { BREAKER_LOOKS, lookOfGuard } from './breaker-text'
import { Chart, type Line } from './chart'
import { Empty, Meter, Name, Panel, type Tone } from './elements'
import { leftTone, tightestOf } from './limit-text'
import { PodsTable } from './pods-table'
import { Spark } from './spark'

/** Sums over the reports of all pods. */
const totals = computed(() => {
  const sum = totalsOf(fleet.value?.pods ?? [])
  return { ...sum, alive: sum.alive + (fleet.value?.podsLeftOut ?? 0) }
})

/** Calls and refusals of each guard on all pods, by its name. */
const fleetRates = computed(() => {
  const known = fleet.value
  const sums = new Map<string, { calls: number; refused: number }>()
  for (const pod of known?.pods ?? []) {
    for (const [place, calls, refused] of pod.guards) {
      const name = known?.names[place] ?? ''
      const sum = sums.get(name) ?? { calls: 0, refused: 0 }
      sums.set(name, { calls: sum.calls + calls, refused: sum.refused + refused })
    }
  }
  return sums
})

const CALL_LINES: readonly Line[] = [
  { column: 'fleetCalls', label: 'calls', tone: 'flow', filled: true },
  { column: 'fleetRefused', label: 'refused', tone: 'refused' },
]
const LOAD_LINES: readonly Line[] = [
  { column: 'fleetInFlight', label: 'in flight', tone: 'flow', filled: true },
  { column: 'fleetWaiting', label: 'waiting', tone: 'warn' },
]

export function FleetPage() {
  if (guardCards.value.length === 0) {
    return (
      <Panel title="Guards">
        <Empty title="No guard yet">
          <p>
            A guard appears here as soon as it is created: <code>spillway.guard('openai', …)</code>,
            or a vendor in <code>spillway.yaml</code>.
          </p>
        </Empty>
      </Panel>
    )
  }
  const pod = () => [tracksOf(undefined)]
  return (
    <>
      <h1 class="visually-hidden">Fleet</h1>
      <Headline />
      <GuardGrid />
      <div class="columns">
        <Panel title="Calls" note="per second, all pods">
          <Chart
            label="Calls per second of all pods"
            tracks={pod}
            lines={CALL_LINES}
            format={formatCount}
          />
        </Panel>
        <Panel title="In flight and waiting" note="all pods">
          <Chart
            label="Calls in flight and waiting, all pods"
            tracks={pod}
            lines={LOAD_LINES}
            format={formatCount}
          />
        </Panel>
      </div>
      <PodsTable />
      <Agreement />
      <AuditPanel />
    </>
  )
}

function Headline() {
  const { calls, refused, decided, inFlight, waiting, alive, late } = totals.value
  const guards = guardCards.value.map(({ name }) => tracksOf(name))
  const pod = [tracksOf(undefined)]
  const p99 = Math.max(
    0,
    ...[...guardByName.value.values()].map(({ latency }) => latency?.p99Ms ?? 0),
  )
  return (
    <section class="headline" aria-label="Headline figures">
      <Kpi
        label="Pods alive"
        value={formatCount(alive)}
        hint={late > 0 ? `${late} late` : 'all report in time'}
        tone="good"
        testId="pods-alive"
      >
        <Spark tracks={pod} column="pods" />
      </Kpi>
      <Kpi
        label="Calls"
        value={formatCount(calls)}
        unit="/s"
        hint="all pods"
        tone="flow"
        testId="calls"
      >
        <Spark tracks={pod} column="fleetCalls" />
      </Kpi>
      <Kpi
        label="Refused"
        value={formatCount(refused)}
        unit="/s"
        hint={`${formatShare(refused / decided)} refused, all pods`}
        tone="refused"
        testId="refused"
      >
        <Spark tracks={pod} column="fleetRefused" />
      </Kpi>
      <Kpi
        label="In flight"
        value={formatCount(inFlight)}
        hint="all pods"
        tone="flow"
        testId="in-flight"
      >
        <Spark tracks={pod} column="fleetInFlight" />
      </Kpi>
      <Kpi
        label="Waiting"
        value={formatCount(waiting)}
        hint="in queues, all pods"
        tone="warn"
        testId="waiting"
      >
        <Spark tracks={pod} column="fleetWaiting" />
      </Kpi>
      <Kpi
        label="p99 latency"
        value={p99 === 0 ? '–' : formatMs(p99)}
        hint={p99 === 0 ? 'no answer in 10 s, this pod' : 'slowest guard, this pod'}
        tone="iso"
        testId="p99"
      >
        <Spark tracks={guards} column="p99Ms" />
      </Kpi>
    </section>
  )
}

function Kpi(props: {
  label: string
  value: string
  unit?: string
  hint: string
  tone: Tone
  testId: string
  children: preact.ComponentChildren
}) {
  return (
    <div class={`kpi tone-${props.tone}`}>
      <div class="kpi-label">{props.label}</div>
      <div class="kpi-value" data-testid={props.testId}>
        {props.value}
        {props.unit !== undefined && <span class="kpi-unit">{props.unit}</span>}
      </div>
      <div class="kpi-hint">{props.hint}</div>
      {props.children}
    </div>
  )
}

function GuardGrid() {
  return (
    <section aria-label="Guards">
      <ul class="guard-grid">
        {guardCards.value.map(({ name }) => (
          <GuardTile key={name} name={name} />
        ))}
      </ul>
    </section>
  )
}

function GuardTile({ name }: { name: string }) {
  const tick = guardByName.value.get(name)
  const look = lookOfGuard(name)
  const { calls, refused } = fleetRates.value.get(name) ?? { calls: 0, refused: 0 }
  const tightest = tightestOf(tick?.lanes ?? [])
  const slots = tick?.slots
  return (
    <li class={`tile tone-${BREAKER_LOOKS[look].tone}`}>
      <a class="tile-link" href={hrefOf({ page: 'guards', guard: name, lane: undefined })}>
        <Name text={name} />
      </a>
      <BreakerBadge look={look} />
      <div class="tile-figures">
        <span>
          <b>{formatCount(calls)}</b>/s calls
        </span>
        <span class={refused > 0 ? 'tone-refused tile-refused' : 'quiet'}>
          <b>{formatCount(refused)}</b>/s refused
        </span>
        <span class="quiet">
          {tick?.latency === undefined ? 'no answers' : `p99 ${formatMs(tick.latency.p99Ms)}`}
        </span>
      </div>
      {slots?.limit !== undefined && (
        <Meter
          label="slots in use on this pod"
          value={slots.active}
          most={slots.limit}
          tone={slots.active >= slots.limit ? 'warn' : 'flow'}
          words={`${formatCount(slots.active)} of ${formatCount(slots.limit)}`}
        />
      )}
      {tightest !== undefined && (
        <Meter
          label={`${tightest.limit.label} left`}
          value={tightest.left}
          most={1}
          tone={leftTone(tightest.left)}
          words={formatShare(tightest.left)}
        />
      )}
    </li>
  )
}
