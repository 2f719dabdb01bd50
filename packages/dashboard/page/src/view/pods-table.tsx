/** The live pods, as each reports itself. */
import { formatCount, formatMs, formatShare } from '../format'
import { fleet, hello } from '../model/live'
import type { PodRow } from '../wire'
import { may, openActDialog } from './act-dialog'
import { Badge, Name, Panel, type Tone } from './elements'
import type { IconName } from './icons'
import { type Column, Table } from './table'

const COLUMNS: Column<PodRow>[] = [
  {
    title: 'pod',
    of: ({ pod }) => (
      <>
        <Name text={pod} /> {pod === hello.value?.pod && <span class="quiet">(this one)</span>}
      </>
    ),
  },
  { title: 'state', of: (pod) => <State pod={pod} /> },
  { title: 'pressure', of: (pod) => <Pressure pod={pod} /> },
  {
    title: 'event loop',
    number: true,
    of: ({ loopMs, loopBusy }) => (
      <>
        {formatMs(loopMs)} <span class="quiet">{formatShare(loopBusy)} busy</span>
      </>
    ),
  },
  { title: 'in flight', number: true, of: ({ inFlight }) => formatCount(inFlight) },
  { title: 'waiting', number: true, of: ({ waiting }) => formatCount(waiting) },
  { title: 'memory', number: true, of: ({ memoryMb }) => `${formatCount(memoryMb)} MB` },
  { title: 'up', number: true, of: ({ upMs }) => formatMs(Math.floor(upMs / 1_000) * 1_000) },
  {
    title: 'actions',
    untitled: true,
    number: true,
    of: ({ pod, state }) =>
      may('drain') &&
      state === 'up' && (
        <button type="button" class="small" onClick={() => openActDialog({ act: 'drain', pod })}>
          Drain<bdi class="visually-hidden"> {pod}</bdi>
        </button>
      ),
  },
]

export function PodsTable() {
  const known = fleet.value
  if (known === undefined) return null
  const { pods, podsLeftOut } = known
  return (
    <Panel
      title="Pods"
      note={podsLeftOut > 0 ? `and ${formatCount(podsLeftOut)} more` : undefined}
      class="pods"
    >
      <Table label="Pods" rows={pods} keyOf={({ pod }) => pod} columns={COLUMNS} />
    </Panel>
  )
}

function State({ pod }: { pod: PodRow }) {
  const { tone, icon, word } = stateOf(pod)
  return (
    <Badge tone={tone} icon={icon}>
      {word}
    </Badge>
  )
}

function Pressure({ pod: { pressure, pressureBy } }: { pod: PodRow }) {
  if (pressure === undefined) return <span class="quiet">not measured</span>
  const tone: Tone = pressure >= 1 ? 'refused' : pressure >= 0.7 ? 'warn' : 'good'
  return (
    <span class={`pressure tone-${tone}`}>
      <span class="bar" aria-hidden="true">
        <span
          class="bar-fill"
          style={{ transform: `scaleX(${Math.min(1, pressure).toFixed(3)})` }}
        />
      </span>
      {formatShare(pressure)}
      {pressureBy !== undefined && <span class="quiet"> {pressureBy}</span>}
    </span>
  )
}

function stateOf({ state, ageMs, store }: PodRow): { tone: Tone; icon: IconName; word: string } {
  if (ageMs > 5_000) return { tone: 'quiet', icon: 'none', word: `silent for ${formatMs(ageMs)}` }
  if (ageMs > 2_000) return { tone: 'warn', icon: 'waited', word: `late, ${formatMs(ageMs)}` }
  if (state === 'draining') return { tone: 'iso', icon: 'left', word: 'draining' }
  if (state === 'drain-requested') return { tone: 'iso', icon: 'left', word: 'drain requested' }
  if (state === 'unknown') return { tone: 'quiet', icon: 'none', word: 'no report' }
  if (store === 'unreachable' || store === 'untrusted' || store === 'off') {
    return { tone: 'warn', icon: 'warning', word: 'degraded' }
  }
  return { tone: 'good', icon: 'closed', word: 'up' }
}
