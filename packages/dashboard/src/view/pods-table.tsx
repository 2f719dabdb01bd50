/** The pods that are alive, by what each says of itself. */
import { formatCount, formatMs, formatShare } from '../format'
import { fleet, hello } from '../model/live'
import type { PodRow } from '../wire'
import { askFor, may } from './act-dialog'
import { Badge, Name, Panel, Scroller, type Tone } from './bits'
import type { IconName } from './icons'

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
      <Scroller label="Pods">
        <table>
          <thead>
            <tr>
              <th scope="col">pod</th>
              <th scope="col">state</th>
              <th scope="col">pressure</th>
              <th scope="col" class="number">
                event loop
              </th>
              <th scope="col" class="number">
                in flight
              </th>
              <th scope="col" class="number">
                waiting
              </th>
              <th scope="col" class="number">
                memory
              </th>
              <th scope="col" class="number">
                up
              </th>
              <th scope="col">
                <span class="visually-hidden">actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {pods.map((pod) => (
              <Row key={pod.pod} pod={pod} />
            ))}
          </tbody>
        </table>
      </Scroller>
    </Panel>
  )
}

function Row({ pod }: { pod: PodRow }) {
  const { tone, icon, word } = stateOf(pod)
  const own = pod.pod === hello.value?.pod
  return (
    <tr data-pod={pod.pod}>
      <th scope="row">
        <Name text={pod.pod} /> {own && <span class="quiet">(this one)</span>}
      </th>
      <td>
        <Badge tone={tone} icon={icon}>
          {word}
        </Badge>
      </td>
      <td>
        <Pressure pod={pod} />
      </td>
      <td class="number">
        {formatMs(pod.loopMs)} <span class="quiet">{formatShare(pod.loopBusy)} busy</span>
      </td>
      <td class="number">{formatCount(pod.inFlight)}</td>
      <td class="number">{formatCount(pod.waiting)}</td>
      <td class="number">{formatCount(pod.memoryMb)} MB</td>
      <td class="number">{formatMs(Math.floor(pod.upMs / 1_000) * 1_000)}</td>
      <td class="number">
        {may('drain') && pod.state === 'up' && (
          <button
            type="button"
            class="small"
            onClick={() => askFor({ act: 'drain', pod: pod.pod })}
          >
            Drain<span class="visually-hidden"> {pod.pod}</span>
          </button>
        )}
      </td>
    </tr>
  )
}

function Pressure({ pod: { pressure, pressureBy } }: { pod: PodRow }) {
  if (pressure === undefined) return <span class="quiet">sheds nothing</span>
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
  if (state === 'asked') return { tone: 'iso', icon: 'left', word: 'asked to drain' }
  if (state === 'unknown') return { tone: 'quiet', icon: 'none', word: 'says nothing' }
  if (store === 'away' || store === 'apart' || store === 'off') {
    return { tone: 'warn', icon: 'warning', word: 'degraded' }
  }
  return { tone: 'good', icon: 'closed', word: 'up' }
}
